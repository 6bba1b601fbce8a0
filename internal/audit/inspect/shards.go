package inspect

import (
	"context"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/cold"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/service/config"
)

// Everywhere is the stored decisions of every shard, and the lookup by id in all of them.
type Everywhere struct {
	Decisions reader.Store
	Look      *lookup.Look
	// States are those that the desks of the shards keep, joined.
	States state.Store
	// Shards are in the order of DOCKET_SHARDS.
	Shards []OneShard
	dbs    []*store.Store
	days   []*cold.Days
}

// OneShard is a shard with its settings and its table.
type OneShard struct {
	Settings config.Settings
	Rows     *historydb.Reader
}

// Close closes what was opened.
func (e *Everywhere) Close() {
	for _, days := range e.days {
		days.Close()
	}
	for _, db := range e.dbs {
		db.Close()
	}
}

// Archived are the archived days of each shard.
func (e *Everywhere) Archived() []*cold.Days { return e.days }

// Warm is that of the archived days of each shard.
func (e *Everywhere) Warm(ctx context.Context) error {
	var all errgroup.Group
	for _, days := range e.days {
		all.Go(func() error { return days.Warm(ctx) })
	}
	return all.Wait()
}

// AskAll opens every shard whose database is known. It is nil if there is one database alone. open makes the pool of a
// shard; nothing is dialled.
func AskAll(s config.Settings, open func(config.Settings) (*store.Store, error), sight Sight) (*Everywhere, error) {
	every := s.EveryShard()
	if len(every) == 1 {
		return nil, nil //nolint:nilnil // there is nothing to ask together
	}
	all := &Everywhere{Look: &lookup.Look{Settings: s, Limits: sight.Limits, Hint: hint}}
	var shards []sharded.Shard
	var states []sharded.StatesShard
	for _, one := range every {
		db, err := open(one)
		if err != nil {
			all.Close()
			return nil, err
		}
		all.dbs = append(all.dbs, db)
		own := sight
		own.Days = ArchivedDays(one, db, sight.Shelf)
		all.days = append(all.days, own.Days)
		rows := historydb.NewReader(db.DB)
		all.Shards = append(all.Shards, OneShard{one, rows})
		shards = append(shards, sharded.Shard{Name: one.ShardName, Store: Decisions(rows, own.Days)})
		states = append(states, sharded.StatesShard{Name: one.ShardName, Store: rows})
		all.Look.Shards = append(all.Look.Shards, lookup.ShardLook{Name: one.ShardName, Look: Looking(one, db, own)})
	}
	all.Decisions, all.States = sharded.New(shards...), sharded.NewStates(states...)
	return all, nil
}
