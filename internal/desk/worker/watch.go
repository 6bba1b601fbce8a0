package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// WatchConfig says how published retries are looked for.
type WatchConfig struct {
	Interval       time.Duration // between two rounds, and before the second look for a retry; 0: 250 ms
	MaxPause       time.Duration // longest pause between two looks for one retry; pauses double; 0: 30 s
	MaxRecordBytes int64         // of an inflated value
	MaxAttempts    int           // retries that end dead before a letter is FAILED; 0: 3
}

// watchBatch limits the retries that are looked for at a time, because each has its whole value.
const watchBatch = 200

// lookupBatch limits the decisions that are looked up together.
const lookupBatch = 1000

// watchBytes limits the inflated decisions in memory; those of the last record may exceed it.
const watchBytes = 16 << 20

// Watcher finds stored retries from the table alone, because the consumer does not report them. Retries that end dead
// come through the [Intake]. The watcher ends those whose dead letters came before their places were noted.
type Watcher struct {
	cfg    WatchConfig
	ledger ledger.Watch
	table  Table
	actor  ledger.Actor
	log    zerolog.Logger
}

// NewWatcher makes a watcher.
func NewWatcher(cfg WatchConfig, l ledger.Watch, table Table, actor ledger.Actor, log zerolog.Logger) *Watcher {
	if cfg.Interval <= 0 {
		cfg.Interval = 250 * time.Millisecond
	}
	if cfg.MaxPause <= 0 {
		cfg.MaxPause = 30 * time.Second
	}
	if cfg.MaxAttempts <= 0 {
		cfg.MaxAttempts = 3
	}
	return &Watcher{cfg: cfg, ledger: l, table: table, actor: actor, log: log}
}

// Run looks until ctx ends, and returns nil then.
func (w *Watcher) Run(ctx context.Context) error {
	t := trouble{log: w.log, work: "looking for the rows of retried records"}
	return t.repeat(ctx, w.cfg.Interval, func(ctx context.Context) (more bool, err error) {
		looked, err := w.round(ctx)
		return looked == watchBatch, err
	})
}

// round looks once for the due retries, up to a batch, and returns their number.
func (w *Watcher) round(ctx context.Context) (looked int, err error) {
	awaited, err := w.ledger.Awaited(ctx, watchBatch)
	if err != nil {
		return 0, err
	}
	looks := make([]look, len(awaited))
	for from := 0; from < len(awaited); {
		to, bytes := from, 0
		for ; to < len(awaited) && bytes < watchBytes; to++ {
			looks[to] = w.plan(awaited[to])
			bytes += looks[to].bytes
		}
		if err := w.find(ctx, looks[from:to]); err != nil {
			return 0, err
		}
		for ; from < to; from++ {
			looks[from].forget()
		}
	}
	var stored []int64
	var why []string
	var missed []ledger.Awaited
	again := map[time.Duration][]int64{}
	for i, a := range awaited {
		if at := looks[i].why(); at != "" {
			stored, why = append(stored, a.ID), append(why, at)
			continue
		}
		missed = append(missed, a)
		pause := doubling(w.cfg.Interval, w.cfg.MaxPause, a.Looks)
		again[pause] = append(again[pause], a.ID)
	}
	late := w.overtaken(ctx, missed) // which keeps no other retry from its end
	for pause, ids := range again {
		if err := w.ledger.LookAgain(ctx, ids, pause); err != nil {
			return 0, err
		}
	}
	if err := w.stored(ctx, stored, why); err != nil {
		return 0, err
	}
	return len(awaited), late
}

// A letter can only have overtaken its retry if it began to enter before the place was noted. So long after that every such
// letter is in the ledger. A few later looks are for retries that an earlier release left open, or that could not be looked for.
const (
	overtakenWithin = 2 * time.Minute
	overtakenEvery  = 16 // looks
	overtakenBatch  = 10_000
)

// overtaken ends the retries whose dead letters came before their places were noted.
func (w *Watcher) overtaken(ctx context.Context, missed []ledger.Awaited) (last error) {
	var possible []ledger.Possible
	for i, a := range missed {
		if time.Since(a.Published.Stamp) < overtakenWithin || a.Looks%overtakenEvery == 0 {
			possible = append(possible, w.possible(a)...)
		}
		for len(possible) > 0 && (len(possible) >= overtakenBatch || i == len(missed)-1) {
			n := min(len(possible), overtakenBatch)
			if _, err := w.ledger.Overtaken(ctx, possible[:n], w.cfg.MaxAttempts, w.actor); err != nil {
				last = err
			}
			possible = possible[n:]
		}
	}
	return last
}

// possible names the dead letters that a published retry has become if it died. A rest of an upload that shares one
// letter is not among them.
func (w *Watcher) possible(a ledger.Awaited) (all []ledger.Possible) {
	if a.Published.Stamp.IsZero() {
		return nil
	}
	place := envelope.Origin{Topic: a.Published.Topic, Partition: a.Published.Partition, Offset: a.Published.Offset}
	as := func(at, index int, value []byte) {
		place.Index = at
		all = append(all, ledger.Possible{SendingID: a.ID, LetterID: envelope.ID(place, value), Index: index})
	}
	as(envelope.NoIndex, envelope.NoIndex, a.Value)
	read, refused := decodeSafely(a.Value, w.cfg.MaxRecordBytes)
	switch {
	case refused:
	case read.Sole:
		as(0, envelope.NoIndex, a.Value)
	default:
		for i := range read.Parts {
			if p := &read.Parts[i]; !slices.Contains(a.Children, p.Index) {
				as(p.Index, p.Index, p.Value)
			}
		}
	}
	return all
}

// stored ends retries together, or one by one if that fails because of one of them.
func (w *Watcher) stored(ctx context.Context, ids []int64, why []string) error {
	if len(ids) == 0 {
		return nil
	}
	err := w.ledger.Stored(ctx, ids, why, w.actor)
	if len(ids) == 1 || errclass.Classify(err).Class != errclass.Data {
		return err
	}
	var last error
	for i := range ids {
		if err := w.ledger.Stored(ctx, ids[i:i+1], why[i:i+1], w.actor); err != nil {
			last = err
		}
	}
	return last
}

// look is the search for one retried record.
type look struct {
	parts  int      // decisions in it; 0: nothing to find
	sought []Sought // without those that are dead letters of their own; empty after the lookup
	wanted int      // number of sought decisions
	bytes  int      // of them
	rows   int      // of them, found with an equal payload
	first  Found    // the first of them
}

// plan returns the decisions to look for. It finds nothing in an unreadable value, or while an unreadable decision of
// it is not a dead letter of its own yet: that one is still to come.
func (w *Watcher) plan(a ledger.Awaited) look {
	return planned(a.Value, a.Children, w.cfg.MaxRecordBytes)
}

func planned(value []byte, children []int, maxBytes int64) look {
	read, refused := decodeSafely(value, maxBytes)
	if refused {
		return look{}
	}
	l := look{parts: len(read.Parts)}
	for i := range read.Parts {
		p := &read.Parts[i]
		switch {
		case slices.Contains(children, p.Index):
		case p.Err != nil:
			return look{}
		default:
			l.sought = append(l.sought, Sought{ID: p.Log.ID, Time: p.Log.Time, Raw: p.Log.Came()})
			l.bytes += len(p.Log.Came())
		}
	}
	l.wanted = len(l.sought)
	return l
}

// forget frees the decisions.
func (l *look) forget() { l.sought = nil }

// find looks up the decisions of many retries together.
func (w *Watcher) find(ctx context.Context, looks []look) error {
	type of struct{ look, n int }
	var sought []Sought
	var whose []of
	flush := func() error {
		found, err := w.table.Lookup(ctx, sought)
		if err != nil {
			return err
		}
		equal := make([]bool, len(sought))
		for _, f := range found {
			if !f.Equal || equal[f.N] {
				continue
			}
			equal[f.N] = true
			l := &looks[whose[f.N].look]
			if l.rows++; whose[f.N].n == 0 {
				l.first = f
			}
		}
		sought, whose = sought[:0], whose[:0]
		return nil
	}
	for i := range looks {
		for n, s := range looks[i].sought {
			sought, whose = append(sought, s), append(whose, of{i, n})
			if len(sought) == lookupBatch {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	if len(sought) == 0 {
		return nil
	}
	return flush()
}

// why says in one line where the rows are. It is empty until every decision has its row or is a dead letter of its
// own.
func (l *look) why() string {
	if l.parts == 0 || l.rows < l.wanted {
		return ""
	}
	return storedWhy(l.parts, l.rows, l.first)
}

func storedWhy(decisions, rows int, first Found) string {
	switch {
	case decisions == 1 && rows == 1:
		return fmt.Sprintf("row of %s/%d/%d", first.Topic, first.Partition, first.Offset)
	case decisions == rows:
		return fmt.Sprintf("all of %d decisions are rows, the first of %s/%d/%d", decisions, first.Topic, first.Partition, first.Offset)
	case decisions-rows == 1:
		return fmt.Sprintf("%d of %d decisions are rows, 1 is a dead letter of its own", rows, decisions)
	}
	return fmt.Sprintf("%d of %d decisions are rows, %d are dead letters of their own", rows, decisions, decisions-rows)
}

// decodeSafely reads a value. A panic of the decoder is a refusal, as in the consumer.
func decodeSafely(value []byte, maxBytes int64) (read decision.Record, refused bool) {
	defer func() {
		if recover() != nil {
			refused = true
		}
	}()
	read, err := decision.Decode(value, maxBytes)
	return read, err != nil
}
