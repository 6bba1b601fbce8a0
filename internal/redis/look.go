package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"docket/internal/consumer/limit"
)

// Server describes the Redis that has the buckets of a group; of a cluster, the node.
type Server struct {
	Version   string
	Role      string // master or slave; empty: the server does not tell
	Policy    string // maxmemory-policy
	MaxMemory int64  // bytes; 0: no limit
	// Cluster is the state of the cluster, ok if all is well; empty: the server is none.
	Cluster string
	// Ahead is how far the server's clock is ahead of the one here.
	Ahead time.Duration
	// Took is the time of one call for rows.
	Took time.Duration
}

// FaultError says why Redis cannot count.
type FaultError struct {
	// Code is timeout, refused, network, tls, or the code of an error reply: OOM, READONLY, MOVED, NOPERM and so on.
	Code string
	err  error
}

func (e *FaultError) Error() string { return "Redis cannot count: " + e.Code }
func (e *FaultError) Unwrap() error { return e.err }

// Look takes a row on trial, from buckets of its own that it removes, and describes the server. An error is a
// [*FaultError], or says that the URL is wrong.
func Look(ctx context.Context, cfg Config, group string) (*Server, error) {
	client, err := open(cfg)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // it was only asked
	s, err := look(ctx, client, group)
	if err != nil {
		return nil, &FaultError{codeOf(err), err}
	}
	return s, nil
}

func look(ctx context.Context, client redis.UniversalClient, group string) (*Server, error) {
	keys := Keys(group + "}:check") // the tag ends before it, so the slot is that of the buckets
	trial := Limit{client: client, keys: keys, fixed: []any{limit.Least, 1, 1}}
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("ask for a PONG: %w", err)
	}
	began := time.Now()
	a, err := trial.run(ctx, true, 1, 1)
	took := time.Since(began)
	if err != nil {
		return nil, err
	}
	if err := client.Del(ctx, keys...).Err(); err != nil {
		return nil, fmt.Errorf("remove the trial: %w", err)
	}
	node, err := nodeOf(ctx, client, keys[0])
	if err != nil {
		return nil, err
	}
	text, err := node.Info(ctx).Result()
	if err != nil {
		return nil, fmt.Errorf("ask for INFO: %w", err)
	}
	info := infoOf(text)
	s := &Server{Version: info["redis_version"], Role: info["role"], Policy: info["maxmemory_policy"], Took: took}
	s.Ahead = time.UnixMicro(a.at).Sub(began.Add(took / 2))
	s.MaxMemory, _ = strconv.ParseInt(info["maxmemory"], 10, 64) // a server that does not tell counts as without limit
	if info["cluster_enabled"] == "1" {
		text, err := node.ClusterInfo(ctx).Result()
		if err != nil {
			return nil, fmt.Errorf("ask for CLUSTER INFO: %w", err)
		}
		s.Cluster = infoOf(text)["cluster_state"]
	}
	return s, nil
}

// nodeOf returns the node that has a key.
func nodeOf(ctx context.Context, client redis.UniversalClient, key string) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		node, err := c.MasterForKey(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("find the node of a key: %w", err)
		}
		return node, nil
	}
	return nil, fmt.Errorf("a client of another kind: %T", client)
}

// infoOf reads lines of name:value.
func infoOf(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}
