// Package check checks everything that Docket relies on, before it goes live: brokers, topics, ACLs, the table, the
// spool's disk, Redis and the place of archives. It changes nothing, and does not show the result.
package check

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/kafka"
	"docket/internal/postgres/schema"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Level is the result of a check.
type Level string

// The levels.
const (
	OK   Level = "ok"   // as it should be
	Warn Level = "warn" // it works, but should be changed
	Fail Level = "fail" // it does not work, or records could get lost
)

// Result is the result of one check.
type Result struct {
	Level  Level  `json:"level"`
	What   string `json:"what"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"` // advice, empty if all is well
}

// Timeout limits all checks together, but those of archives.
const Timeout = time.Minute

// All checks everything in the settings of the consumer and the replayer. It checks the desk if the settings name its
// group. open opens the place of archives; nil: the program does not read them.
func All(ctx context.Context, s config.Settings, open Opener) []Result {
	return append(Seen(ctx, s, open), spool(s)...)
}

// Seen is All without the spool, which only the host of a consumer sees.
func Seen(ctx context.Context, s config.Settings, open Opener) []Result {
	return seen(ctx, s, open, Timeout)
}

func seen(ctx context.Context, s config.Settings, open Opener, within time.Duration) []Result {
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	of := func(look func(config.Settings) []Result) (all []Result) {
		if !s.OfAllShards() {
			return look(s)
		}
		for _, of := range s.ByShard() {
			for _, r := range look(of) {
				r.What = "shard " + of.ShardName + ", " + r.What
				all = append(all, r)
			}
		}
		return all
	}
	// The archives of all shards come last and have a time of their own. So a storage that hangs takes none of the other checks,
	// and these none of it.
	all := append(of(func(s config.Settings) []Result { return one(limited, s) }), former(limited, s)...)
	return append(all, of(func(s config.Settings) []Result { return archives(ctx, s, open) })...)
}

// one checks all that a process of one shard needs, or of a Docket without shards.
func one(ctx context.Context, s config.Settings) []Result {
	all := cluster(ctx, s)
	all = append(all, database(ctx, s)...)
	all = append(all, keys(ctx, s)...)
	return append(all, limits(ctx, s)...)
}

// Uploads checks the settings of the collector: brokers, and the topics that it writes to.
func Uploads(ctx context.Context, s config.Settings) []Result {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	return append(described(ctx, s, append(s.SourceTopics(), s.KafkaDLQTopic), nil), headerKey(s)...)
}

// headerKey checks for the key without which anyone who can write to a topic can forge the collector's headers.
func headerKey(s config.Settings) []Result {
	r := report{what: "header key"}
	if s.HeaderKey == "" {
		r.add(Warn, "nothing proves that a collector wrote a record", "set DOCKET_HEADER_KEY_FILE for all programs; make a key with: openssl rand -hex 32")
	}
	return r.results("set")
}

// Failed reports whether any check failed.
func Failed(all []Result) bool {
	for _, r := range all {
		if r.Level == Fail {
			return true
		}
	}
	return false
}

// report collects the findings about one thing.
type report struct {
	what string
	all  []Result
}

func (r *report) add(level Level, detail, hint string) {
	r.all = append(r.all, Result{level, r.what, detail, hint})
}

// results returns the findings, or one ok with this detail.
func (r *report) results(fine string) []Result {
	if len(r.all) == 0 {
		r.add(OK, fine, "")
	}
	return r.all
}

func cluster(ctx context.Context, s config.Settings) []Result {
	topics := append(s.SourceTopics(), s.KafkaParkingTopic, s.KafkaDLQTopic, s.KafkaParkingDLQTopic)
	var groups []string
	for _, l := range s.Lanes() {
		groups = append(groups, l.Group)
	}
	groups = append(groups, s.ParkingGroup)
	if s.DeskGroup != "" {
		groups = append(groups, s.DeskGroup)
	}
	return described(ctx, s, topics, groups)
}

func described(ctx context.Context, s config.Settings, topics, groups []string) []Result {
	cfg, err := app.Kafka(s, "check")
	if err != nil {
		return []Result{{Fail, "brokers", err.Error(), "correct the settings that are named"}}
	}
	c, err := kafka.Describe(ctx, cfg, topics, groups)
	if err != nil {
		return []Result{broken("brokers", err)}
	}
	return judge(s, c)
}

func database(ctx context.Context, s config.Settings) []Result {
	db, err := app.OpenDatabase(s, config.Consumer, zerolog.Nop())
	if err != nil {
		return []Result{{Fail, "database", err.Error(), "correct DOCKET_DATABASE_URL"}}
	}
	defer db.Close()
	var all []Result
	for _, c := range schema.New(db.DB).Check(ctx, db.Probe) {
		r := Result{Level(c.Level.String()), "database " + c.Name, c.Detail, c.Hint}
		if c.Name == "table" && c.Level == schema.Fail && s.AutoMigrate {
			r.Level, r.Hint = Warn, "the program creates it at the start, because DOCKET_AUTO_MIGRATE is true; check again then"
		}
		all = append(all, r)
	}
	return append(all, foreign(ctx, s, db)...)
}
