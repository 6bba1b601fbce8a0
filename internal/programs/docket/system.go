package docket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/audit/inspect"
	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/history/archive/shelf"
	"docket/internal/history/cold/cache"
	"docket/internal/history/complete"
	"docket/internal/kafka"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/desk"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// open prepares the system that commands work on: the ledger and the table in Postgres, and Kafka for the loss horizon alone. It dials
// nobody.
func open(env cli.Env, s config.Settings) (*frame.System, error) {
	shelves := func(where string) (archive.Shelf, error) { return shelf.Open(where, s) }
	all, err := inspect.AskAll(s, func(one config.Settings) (*store.Store, error) {
		return app.OpenDatabase(one, env.Program, zerolog.Nop())
	}, inspect.Sight{Shelf: shelves})
	if err != nil {
		return nil, err
	}
	if s.OfAllShards() {
		return &frame.System{Decisions: all.Decisions, States: all.States, Complete: completeInShards(all), Look: all.Look, Close: all.Close}, nil
	}
	sys, err := openOne(env, s, shelves)
	if err != nil {
		return nil, err
	}
	if all == nil {
		if s.Share() != nil { // the other shards are not asked, so no answer is complete
			sys.Complete = &complete.Answers{}
		}
		return sys, nil
	}
	// The ledger and the table to archive are those of the shard. Decisions are asked of all.
	own := sys.Close
	sys.Decisions, sys.States, sys.Complete, sys.Look = all.Decisions, all.States, completeInShards(all), all.Look
	sys.Close = func() { all.Close(); own() }
	return sys, nil
}

// completeInShards joins what is known of the shards.
func completeInShards(all *inspect.Everywhere) *complete.Answers {
	answers := make([]*complete.Answers, len(all.Shards))
	for i, one := range all.Shards {
		answers[i] = desk.CompleteOnce(one.Settings, one.Rows)
	}
	return complete.Joined(answers...)
}

// openOne is open for one database.
func openOne(env cli.Env, s config.Settings, open func(string) (archive.Shelf, error)) (*frame.System, error) {
	db, err := app.OpenDatabase(s, env.Program, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	book := ledgerdb.New(db.DB)
	decisions := historydb.NewReader(db.DB)
	days := inspect.ArchivedDays(s, db, open)
	if unsafe := (*cache.UnsafeError)(nil); errors.As(days.CacheFault, &unsafe) {
		_, _ = fmt.Fprintf(env.Stderr, "%s: %v; %s\n", env.Program, unsafe, unsafe.Hint()) // the command answers without it
	}
	calendar := desk.Calendar(decisions, days, time.Now)
	if s.Share() != nil { // each shard has days of its own
		calendar = nil
	}
	return &frame.System{
		Calendar: calendar,
		Book:     book, Trial: desk.NewTrial(s, book, db), Decisions: inspect.Decisions(decisions, days), States: decisions,
		Complete: desk.CompleteOnce(s, decisions), Close: func() { days.Close(); db.Close() },
		Backlog: func(ctx context.Context) (worker.Backlog, error) { return desk.Backlog(ctx, s) },
		Left:    decisions.Left, Noted: decisions.LettersNoted,
		Days: historydb.NewArchives(db.DB), Letters: historydb.NewLetterArchives(db.DB), Shelf: open, Look: inspect.Looking(s, db, inspect.Sight{Shelf: open, Days: days}),
		RestoreLimit: func() (frame.RestoreLimit, error) { return restoreLimit(s) },
		Horizon: func(ctx context.Context, now time.Time) ([]worker.HorizonLine, error) {
			brokers, err := app.Kafka(s, "horizon")
			if err != nil {
				return nil, err
			}
			reader, err := kafka.NewReader(brokers)
			if err != nil {
				return nil, err
			}
			defer reader.Close()
			return desk.NewHorizon(s, reader, book).Look(ctx, now), nil
		},
	}, nil
}

// restoreLimit opens the limit on the rows of a restore, nil for none.
func restoreLimit(s config.Settings) (frame.RestoreLimit, error) {
	limits, err := app.OpenRestoreLimits(s, zerolog.Nop()) // the restore itself says what it waits for
	if err != nil || limits == nil {
		return nil, err
	}
	return limits, nil
}
