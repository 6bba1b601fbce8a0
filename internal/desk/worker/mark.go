package worker

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/errclass"
)

// MarkConfig says how rows of edited letters are marked.
type MarkConfig struct {
	Interval       time.Duration // between two rounds; 0: 1 s
	MaxRecordBytes int64         // of an inflated value
	Observer       Observer      // nil: none
}

// markBatch limits the retries that are marked at a time, because each has its whole value.
const markBatch = 50

// Marking marks the rows of edited letters after their retries ended. A failure delays no retry: it is logged,
// counted and retried. Until then readers ask the ledger.
type Marking struct {
	cfg      MarkConfig
	ledger   ledger.Marker
	log      zerolog.Logger
	observer Observer
	told     map[int64]string // last logged code of retries whose rows cannot be marked
}

// NewMarking makes a marking.
func NewMarking(cfg MarkConfig, l ledger.Marker, log zerolog.Logger) *Marking {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	return &Marking{cfg: cfg, ledger: l, log: log, observer: observed(cfg.Observer), told: map[int64]string{}}
}

// Run marks until ctx ends, and returns nil then.
func (m *Marking) Run(ctx context.Context) error {
	t := trouble{log: m.log, work: "marking rows of edited dead letters"}
	return t.repeat(ctx, m.cfg.Interval, func(ctx context.Context) (more bool, err error) { return false, m.round(ctx) })
}

// round marks the due retries once. A retry that cannot be marked does not stop the others.
func (m *Marking) round(ctx context.Context) error {
	due, all, err := m.ledger.Unmarked(ctx, markBatch)
	if err != nil {
		return err
	}
	if all == 0 {
		clear(m.told)
	}
	var last error
	for _, u := range due {
		missing, err := m.mark(ctx, u)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil //nolint:nilerr // we stop: that is no failure
		case err != nil:
			last = err
		case missing == 0:
			all--
			delete(m.told, u.ID)
		default:
			m.tell(u, "no_row", missing)
		}
	}
	m.observer.Unmarked(all)
	return last
}

func (m *Marking) mark(ctx context.Context, u ledger.Unmarked) (missing int, err error) {
	rows := m.rows(u)
	_, missing, err = m.ledger.MarkEdited(ctx, u.ID, rows)
	if v := errclass.Classify(err); err != nil && !v.OfTheMoment() {
		m.tell(u, v.Code, len(rows))
	}
	return missing, err
}

// rows returns the published decisions, without those that are dead letters of their own.
func (m *Marking) rows(u ledger.Unmarked) []ledger.RowName {
	l := planned(u.Value, u.Children, m.cfg.MaxRecordBytes)
	rows := make([]ledger.RowName, len(l.sought))
	for i, s := range l.sought {
		rows[i] = ledger.RowName{ID: s.ID, Time: s.Time, Came: s.Raw}
	}
	return rows
}

// tell logs, once for each reason, that rows lack the mark of an edit.
func (m *Marking) tell(u ledger.Unmarked, code string, rows int) {
	if m.told[u.ID] == code {
		return
	}
	m.told[u.ID] = code
	m.log.Warn().Str("dead_letter", u.LetterID).Int64("audit_id", u.AuditID).Int("rows", rows).Str("code", code).
		Str("hint", "edited_audit_id is not set there: check the grants (docs/desk-grants.sql), who owns decision_logs, its policies and triggers, and whether the day is archived; the desk tries again").
		Msg("edited row not marked")
}
