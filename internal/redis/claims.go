package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"docket/internal/history/claims"
)

//go:embed claim.lua
var claimSource string

var claimScript = redis.NewScript(claimSource)

// Claims keeps claims in Redis, in the hash slot of the group. It is safe for concurrent use.
type Claims struct {
	client   redis.UniversalClient
	tag      string
	patience time.Duration // for one call
}

var _ claims.Port = (*Claims)(nil)

// NewClaims prepares the claims of a consumer group. It dials nobody. The error has no text of the URL.
func NewClaims(cfg Config, group string) (*Claims, error) {
	client, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &Claims{client, "{docket:" + group + "}:read:", cmp.Or(cfg.Patience, Deadline)}, nil
}

// Begin implements [claims.Port].
func (c *Claims) Begin(ctx context.Context, key string, p claims.Priority, lease time.Duration) (int64, error) {
	return c.run(ctx, key, "begin", int(p), lease.Microseconds())
}

// Keep implements [claims.Port].
func (c *Claims) Keep(ctx context.Context, key string, version int64, lease time.Duration) (bool, error) {
	got, err := c.run(ctx, key, "keep", version, lease.Microseconds())
	return got != 0, err
}

// End implements [claims.Port].
func (c *Claims) End(ctx context.Context, key string, version int64) (bool, error) {
	got, err := c.run(ctx, key, "end", version, 0)
	return got != 0, err
}

// run runs the script once, within its patience.
func (c *Claims) run(ctx context.Context, key string, args ...any) (version int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, c.patience)
	defer cancel()
	version, err = claimScript.Run(ctx, c.client, []string{c.tag + key}, args...).Int64()
	if err == nil && version < 0 {
		err = errors.New("the script answered what it cannot answer")
	}
	if err != nil {
		return 0, fmt.Errorf("%s a claim in Redis: %w", args[0], err)
	}
	return version, nil
}

// Close ends all connections.
func (c *Claims) Close() { _ = c.client.Close() }
