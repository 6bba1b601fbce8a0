package ledgermodel

import (
	"context"
	"time"

	"docket/internal/desk/ledger"
)

// Edit implements [ledger.Decider]. It does not read decisions in the new value.
func (b *Book) Edit(ctx context.Context, id string, seen ledger.Version, value []byte, diff string, lease time.Duration, by ledger.Actor) error {
	if by.Name == "" {
		return ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	outcomes, free := b.free([]string{id})
	if err := outcomes[0].Err; err != nil {
		return err
	}
	e := free[0]
	if seen != "" && seen != ledger.VersionOf(e.Value) && !sameValue(e.Value, value) {
		return &ledger.EditedError{ID: id}
	}
	if b.fourEyes && len(touched(e.Value, value)) > 0 {
		return &ledger.SecondPersonError{ID: id}
	}
	if !sameValue(e.Value, value) {
		was := e.Value
		e.Value, e.Edited = value, true
		b.move(e, e.State, ledger.Edited, by, now)
		line := &b.lines[len(b.lines)-1]
		line.Original, line.Diff = was, diff
	}
	if lease > 0 {
		b.retry(free, lease, by, now)
	}
	return nil
}
