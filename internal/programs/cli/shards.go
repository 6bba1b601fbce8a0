package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/service/config"
)

// unopenedError is the error of a system that could not be opened.
type unopenedError struct{ error }

func (e unopenedError) Unwrap() error { return e.error }

func unlookedOrUnopened(env Env, err error) int {
	if unopened := (unopenedError{}); errors.As(err, &unopened) {
		return Unopened(env, unopened.error)
	}
	return unlooked(env, err)
}

// whereIn looks in one database and its topics.
func whereIn(ctx context.Context, s config.Settings, q inspect.Query, since time.Time, o inspect.Options) (*inspect.Whereabouts, error) {
	sys, err := inspect.Open(s, o)
	if err != nil {
		return nil, unopenedError{err}
	}
	defer sys.Close()
	return sys.Find(ctx, q, since)
}

// jsonShards is the answer of several shards.
type jsonShards[T any] struct {
	Freshness string     `json:"freshness,omitempty"` // PARTIAL: not every shard was asked
	Shards    []T        `json:"shards"`
	NotAsked  []notAsked `json:"shards_not_asked,omitempty"`
}

type notAsked struct {
	Shard string `json:"shard"`
	Why   string `json:"why"`
}

// jsonShardWhere is the answer of one shard.
type jsonShardWhere struct {
	Shard string `json:"shard"`
	jsonWhere
}

// whereInShards looks in every shard that may have the record, one after another. It is done if one of them says where
// it is.
func whereInShards(ctx context.Context, env Env, s config.Settings, q inspect.Query, since time.Time, o inspect.Options, asJSON bool) int {
	result := Failed
	var out jsonShards[jsonShardWhere]
	for _, one := range shardsOf(s, q) {
		found, err := whereIn(ctx, one, q, since, o)
		switch {
		case ctx.Err() != nil:
			return Failed
		case err != nil:
			out.NotAsked = append(out.NotAsked, notAsked{one.ShardName, err.Error()})
			out.Freshness = "PARTIAL"
			say(env.Stderr, "PARTIAL: shard %s was not asked: %v\n", one.ShardName, err)
			continue
		case asJSON:
			if showWhere(io.Discard, one, found) == Done {
				result = Done
			}
			out.Shards = append(out.Shards, jsonShardWhere{one.ShardName, whereOf(one, found)})
			continue
		}
		say(env.Stdout, "shard %s:\n", one.ShardName)
		if showWhere(env.Stdout, one, found) == Done {
			result = Done
		}
	}
	if asJSON {
		printJSON(env.Stdout, out)
	}
	return result
}

// shardsOf returns the shards that may have a record: one if it has a place, all for an id.
func shardsOf(s config.Settings, q inspect.Query) []config.Settings {
	all := s.ByShard()
	if q.ID != "" {
		return all
	}
	i := slices.IndexFunc(all, func(one config.Settings) bool {
		if _, source := one.Source(q.Topic); source {
			return one.Share().Has(q.Partition)
		}
		return slices.Contains([]string{one.KafkaParkingTopic, one.KafkaDLQTopic, one.KafkaParkingDLQTopic}, q.Topic)
	})
	if i < 0 {
		return all
	}
	return all[i : i+1]
}

// eachShard runs a command for every shard, and returns the worst exit code.
func eachShard(env Env, s config.Settings, asJSON bool, run func(one config.Settings) int) int {
	if !s.OfAllShards() {
		return run(s)
	}
	if asJSON {
		InShard(env, s)
		return Misuse
	}
	worst := Done
	for _, one := range s.ByShard() {
		say(env.Stdout, "shard %s:\n", one.ShardName)
		worst = max(worst, run(one))
	}
	return worst
}
