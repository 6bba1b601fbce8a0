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

// TrialTable is the table, which judges rows and keeps none. *store.Store is one.
type TrialTable interface {
	Prober
	// Compare returns for each decision [pipeline.Present], [pipeline.Conflicting], or 0 if it has no row.
	Compare(ctx context.Context, logs []*decision.Log) ([]pipeline.Outcome, error)
	// Refusals asks the table about each row alone; see [pipeline.Store].
	Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) ([]error, error)
}

// Prober is the table's probe.
type Prober interface {
	// Probe writes a known-good row of the given time on a fresh connection and rolls it back.
	Probe(ctx context.Context, at time.Time) error
}

// TrialLetters are the letters of a trial. Any [ledger.Reader] is one.
type TrialLetters interface {
	Show(ctx context.Context, id string) (ledger.Entry, error)
	Values(ctx context.Context, f ledger.Filter, n, limit int, each func([]ledger.Entry) error) error
	Counts(ctx context.Context, f ledger.Filter) (map[ledger.State]int64, error)
}

// TrialConfig limits the size of a trial.
type TrialConfig struct {
	MaxRecordBytes int64              // largest inflated record, as in the consumer; default 16 MiB
	Portion        int                // limit of letters read, and of decisions tried, at a time; default 200
	Hint           func(error) string // advice for an error of the table; nil: none
}

// Trial is the dry run: the table takes or refuses letters as in a retry, and keeps nothing. It is safe for
// concurrent use.
type Trial struct {
	cfg     TrialConfig
	letters TrialLetters
	table   TrialTable
}

// NewTrial makes a trial.
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

// Run tries the letters that a retry with this filter would choose, only PENDING and FAILED ones, at most limit (0:
// all). progress may be nil; it is called after each portion.
//
// An error is transient (a lost connection, a lock): try again. A table that does not take a known-good row is a
// result, see [TrialResult.Unwell].
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

// RunIDs tries the letters with these ids or first characters, in any state.
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

// RunValue tries one value, such as an edited payload.
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

// retriable narrows a filter to letters that a retry may choose. some is false if there can be none.
func retriable(f ledger.Filter) (_ ledger.Filter, some bool) {
	states := []ledger.State{ledger.Pending, ledger.Failed}
	if len(f.States) > 0 {
		states = slices.DeleteFunc(states, func(s ledger.State) bool { return !slices.Contains(f.States, s) })
	}
	f.States = states
	return f, len(states) > 0
}
