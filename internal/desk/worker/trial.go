package worker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/record/decision"
)

// TrialTable is the table, which is asked and keeps nothing. *postgres.Store is one.
type TrialTable interface {
	Prober
	// Compare says of each decision whether it has its row: [pipeline.Present], [pipeline.Conflicting], or 0 where there is none.
	Compare(ctx context.Context, logs []*decision.Log) ([]pipeline.Outcome, error)
	// Refusals asks the table about each row alone; see [pipeline.Store].
	Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) ([]error, error)
}

// Prober is the table's probe.
type Prober interface {
	// Probe writes a known-good row of the given time on a fresh connection and takes it back.
	Probe(ctx context.Context, at time.Time) error
}

// TrialLetters is where a trial reads letters. Any [ledger.Reader] is one.
type TrialLetters interface {
	Show(ctx context.Context, id string) (ledger.Entry, error)
	Values(ctx context.Context, f ledger.Filter, n, limit int, each func([]ledger.Entry) error) error
	Counts(ctx context.Context, f ledger.Filter) (map[ledger.State]int64, error)
}

// TrialConfig says how much a trial takes at a time.
type TrialConfig struct {
	MaxRecordBytes int64              // largest record after gunzip, as the consumer has it; default 16 MiB
	Portion        int                // most letters that are read, and most decisions that are asked about, at a time; default 200
	Hint           func(error) string // what to do about an error of the table; nil: nothing is said
}

// Trial is the dry run: it has the table take or refuse letters as a retry would, and keeps nothing. It is safe for concurrent
// use.
type Trial struct {
	cfg     TrialConfig
	letters TrialLetters
	table   TrialTable
}

// NewTrial makes one.
func NewTrial(cfg TrialConfig, letters TrialLetters, table TrialTable) *Trial {
	if cfg.MaxRecordBytes <= 0 {
		cfg.MaxRecordBytes = 16 << 20
	}
	if cfg.Portion <= 0 {
		cfg.Portion = 200
	}
	if cfg.Hint == nil {
		cfg.Hint = func(error) string { return "" }
	}
	return &Trial{cfg: cfg, letters: letters, table: table}
}

// Run tries what a retry of this filter would choose, PENDING and FAILED letters alone, at most limit (0: all). progress may
// be nil; it is told after each portion. An error is of the moment (a lost connection, a lock): try again. A table that does
// not take a known-good row is no error but a result, see [TrialResult.Unwell].
func (t *Trial) Run(ctx context.Context, f ledger.Filter, limit int64, progress func(done, total int64)) (TrialResult, error) {
	f, some := retriable(f)
	if !some {
		return t.begin(ctx, nil)
	}
	total, err := t.total(ctx, f, limit)
	if err != nil {
		return TrialResult{}, err
	}
	return t.begin(ctx, func(a *attempt) error {
		return t.letters.Values(ctx, f, t.cfg.Portion, int(limit), func(entries []ledger.Entry) error {
			if err := a.letters(ctx, entries); err != nil {
				return err
			}
			if progress != nil {
				progress(a.result.Total, max(total, a.result.Total))
			}
			return nil
		})
	})
}

// RunIDs tries the letters of these ids, or of their first characters, whatever their states.
func (t *Trial) RunIDs(ctx context.Context, ids []string, progress func(done, total int64)) (TrialResult, error) {
	total := int64(len(ids))
	return t.begin(ctx, func(a *attempt) error {
		for len(ids) > 0 {
			var entries []ledger.Entry
			for bytes := 0; len(ids) > 0 && len(entries) < t.cfg.Portion && bytes < trialBytes; ids = ids[1:] {
				e, err := t.letters.Show(ctx, ids[0])
				if err != nil {
					return fmt.Errorf("read %.12s for the trial: %w", ids[0], err)
				}
				entries = append(entries, e)
				bytes += len(e.Value)
			}
			if err := a.letters(ctx, entries); err != nil {
				return err
			}
			if progress != nil {
				progress(a.result.Total, total)
			}
		}
		return nil
	})
}

// RunValue tries one value, as an edited payload.
func (t *Trial) RunValue(ctx context.Context, value []byte) (TrialResult, error) {
	var e ledger.Entry
	e.Origin.Topic, e.Value = "docket-trial", value
	return t.begin(ctx, func(a *attempt) error { return a.letters(ctx, []ledger.Entry{e}) })
}

func (t *Trial) total(ctx context.Context, f ledger.Filter, limit int64) (int64, error) {
	counts, err := t.letters.Counts(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("count for the trial: %w", err)
	}
	var total int64
	for _, n := range counts {
		total += n
	}
	if limit > 0 {
		total = min(total, limit)
	}
	return total, nil
}

// retriable is the filter without what no retry would choose; some is false where nothing is left.
func retriable(f ledger.Filter) (_ ledger.Filter, some bool) {
	states := []ledger.State{ledger.Pending, ledger.Failed}
	if len(f.States) > 0 {
		states = slices.DeleteFunc(states, func(s ledger.State) bool { return !slices.Contains(f.States, s) })
	}
	f.States = states
	return f, len(states) > 0
}
