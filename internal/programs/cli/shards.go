package cli

import (
	"bytes"
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

// ShardWhere is where a record is by what one shard has.
type ShardWhere struct {
	Of    config.Settings
	Found *inspect.Whereabouts // nil: the shard was not asked
	Err   error                // why not
}

// WhereInShards looks in each of the shards that may have the record, one after another, until the context ends. It tells
// each answer.
func WhereInShards(ctx context.Context, shards []config.Settings, q inspect.Query, look func(context.Context, config.Settings, inspect.Query) (*inspect.Whereabouts, error), tell func(ShardWhere)) {
	if q.ID == "" && !slices.ContainsFunc(shards, func(one config.Settings) bool { return knows(one, q.Topic) }) {
		q = inspect.Query{ID: q.Text, Text: q.Text} // an id may look like a place
	}
	for _, one := range shardsOf(shards, q) {
		found, err := look(ctx, one, q)
		if ctx.Err() != nil {
			return
		}
		tell(ShardWhere{one, found, err})
	}
}

// Whole leaves out that the whole id is needed, if a shard has the id: then it is whole.
func Whole(all []ShardWhere) []ShardWhere {
	if !slices.ContainsFunc(all, func(one ShardWhere) bool { return one.Found != nil && one.Found.Has() }) {
		return all
	}
	return withoutWhole(all)
}

func withoutWhole(all []ShardWhere) []ShardWhere {
	all = slices.Clone(all)
	for i := range all {
		if f := all[i].Found; f != nil && f.Whole != nil {
			known := *f
			known.Whole = nil
			all[i].Found = &known
		}
	}
	return all
}

// WhereOfShards is [Where] for several shards. It is settled if one of them says where the record is.
func WhereOfShards(all []ShardWhere) (text string, report []byte, settled bool) {
	var people, programs bytes.Buffer
	var out jsonShards[jsonShardWhere]
	for _, one := range Whole(all) {
		name := one.Of.ShardName
		if one.Err != nil {
			out.NotAsked = append(out.NotAsked, notAsked{name, one.Err.Error()})
			out.Freshness = "PARTIAL"
			say(&people, "PARTIAL: shard %s was not asked: %v\n", name, one.Err)
			continue
		}
		say(&people, "shard %s:\n", name)
		settled = showWhere(&people, one.Of, one.Found) == Done || settled
		out.Shards = append(out.Shards, jsonShardWhere{name, whereOf(one.Of, one.Found)})
	}
	printJSON(&programs, out)
	return people.String(), programs.Bytes(), settled
}

// whereInShards prints each answer as soon as it is there.
func whereInShards(ctx context.Context, env Env, s config.Settings, q inspect.Query, since time.Time, o inspect.Options, asJSON bool) int {
	var all []ShardWhere
	WhereInShards(ctx, s.EveryShard(), q, func(ctx context.Context, one config.Settings, q inspect.Query) (*inspect.Whereabouts, error) {
		return whereIn(ctx, one, q, since, o)
	}, func(one ShardWhere) {
		all = append(all, one)
		switch text, _, _ := WhereOfShards(withoutWhole([]ShardWhere{one})); { // the others are not known yet
		case one.Err != nil:
			put(env.Stderr, text)
		case !asJSON:
			put(env.Stdout, text)
		}
	})
	_, report, settled := WhereOfShards(all)
	switch {
	case ctx.Err() != nil:
		return Failed
	case asJSON:
		put(env.Stdout, string(report))
	default:
		for _, one := range Whole(all) {
			if one.Found == nil {
				continue
			}
			for _, of := range one.Found.Whole {
				say(env.Stdout, "shard %s: not searched completely: %s\n", one.Of.ShardName, plainly(of))
			}
		}
	}
	if !settled {
		return Failed
	}
	return Done
}

// put prints lines that are safe to print.
func put(w io.Writer, lines string) {
	_, _ = io.WriteString(w, lines) // the reader is gone
}

// shardsOf returns the shards that may have a record: one if it has a place, all for an id.
func shardsOf(all []config.Settings, q inspect.Query) []config.Settings {
	if q.ID != "" {
		return all
	}
	i := slices.IndexFunc(all, func(one config.Settings) bool {
		if _, source := one.Source(q.Topic); source {
			return one.Share().Has(q.Partition)
		}
		return knows(one, q.Topic)
	})
	if i < 0 {
		return all
	}
	return all[i : i+1]
}

// knows reports whether a topic is one of a shard.
func knows(one config.Settings, topic string) bool {
	_, source := one.Source(topic)
	return source || slices.Contains([]string{one.KafkaParkingTopic, one.KafkaDLQTopic, one.KafkaParkingDLQTopic}, topic)
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
