package inspect

import (
	"context"
	"fmt"

	"github.com/jackc/pgerrcode"
	"github.com/rs/zerolog"

	"docket/internal/audit/verify"
	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/history/lookup"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/service/app"
)

// lookUp asks the table for the rows of these decisions. It passes each on, with whether it has the decision's
// payload.
func (s *System) lookUp(ctx context.Context, ds []*verify.Decision, each func(d *verify.Decision, row verify.Row, equal bool)) error {
	if len(ds) == 0 {
		return nil
	}
	sought := make([]store.Sought, len(ds))
	for i, d := range ds {
		sought[i] = store.Sought{ID: d.ID, Time: d.Time, Raw: d.Body}
	}
	found, err := s.db.Lookup(ctx, sought)
	if err != nil {
		return err
	}
	for _, f := range found {
		each(ds[f.N], rowOf(f), f.Equal)
	}
	return nil
}

// watched returns the context for all questions to the database. If one of them goes to a standby, nothing that it lacks is proof.
func (s *System) watched(ctx context.Context) context.Context {
	ctx, s.asked = db.WatchStandby(ctx)
	return ctx
}

// standby reports whether one of these questions went to a standby.
func (s *System) standby() bool { return s.asked != nil && s.asked() }

// behind says that the table and the ledger of a standby were asked.
const behind = "the rows of decision_logs and the ledger: " + lookup.StandbyBehind

func rowOf(f store.Found) verify.Row {
	return verify.Row{
		Place: verify.Place{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Index: f.Index},
		ID:    f.ID, Time: f.Time, StoredAt: f.StoredAt,
	}
}

// mostTried limits the dead letters that are tried.
const mostTried = 10_000

// try inserts each dead letter of the part that the table refused, alone, and rolls it back.
func (a *audit) try(ctx context.Context, truth *verify.Truth, ev *verify.Evidence) error {
	ev.Tried = make(map[string]verify.Trial)
	var db *store.Store
	for _, f := range ev.Forwarded {
		d := truth.At(f.Place)
		refused := f.Kind == string(envelope.Data) || f.Kind == string(envelope.Exhausted)
		if _, done := ev.Tried[f.ID]; done || !refused || d == nil || d.Code != "" || a.tried == mostTried {
			continue
		}
		if db == nil {
			var err error
			if db, err = a.sys.writable(); err != nil {
				return err
			}
			defer db.Close()
		}
		a.tried++
		trial, err := tryOne(ctx, db, d)
		if err != nil {
			return err
		}
		if f.Code == errclass.CodeTooSlow && (trial.Code == pgerrcode.QueryCanceled || trial.Code == errclass.CodeTimeout) {
			trial.Code = errclass.CodeTooSlow
		}
		ev.Tried[f.ID] = trial
	}
	return nil
}

// writable opens the database with the consumer's settings for writing.
func (s *System) writable() (*store.Store, error) {
	return store.Open(db.Config{
		URL: s.settings.DatabaseURL.Reveal(), Fresh: app.FreshDatabaseURL(s.settings), StoreTimeout: s.settings.StoreTimeout, ApplicationName: "docket-inspect", MaxConns: 1,
	}, zerolog.Nop())
}

func tryOne(ctx context.Context, db *store.Store, d *verify.Decision) (verify.Trial, error) {
	read, refused := decision.Decode(d.Body, int64(len(d.Body)))
	if refused != nil || len(read.Parts) != 1 || read.Parts[0].Err != nil {
		return verify.Trial{}, fmt.Errorf("%v does not read alone as it did in its record", d.Place)
	}
	outcome, err := db.Try(ctx, pipeline.Row{
		Log: &read.Parts[0].Log, Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: d.Index,
	})
	switch {
	case ctx.Err() != nil:
		return verify.Trial{}, ctx.Err()
	case err != nil:
		v := errclass.Classify(err)
		return verify.Trial{Code: v.Code, Class: v.Class.String()}, nil
	case outcome == pipeline.Conflicting:
		return verify.Trial{Code: errclass.CodeIDConflict, Class: errclass.Data.String()}, nil
	}
	return verify.Trial{Stored: true}, nil
}
