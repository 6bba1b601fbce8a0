package deskcli

import (
	"context"
	"fmt"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
)

// lookEvery is how often it is looked how things stand.
const lookEvery = 500 * time.Millisecond

// follow waits until every retry has ended and says what became of each.
func (s *session) follow(ctx context.Context, fates []fate, wait, detach bool) error {
	var open int
	for _, f := range fates {
		if !f.ended {
			open++
		}
	}
	if open == 0 {
		return s.tellFates(fates)
	}
	there, err := s.running(ctx)
	if err != nil {
		return err
	}
	if detach || !there && !wait {
		err := s.tellFates(fates)
		s.tell("to see the result: docket dlq show %s --history\n", s.oneOf(fates))
		return err
	}
	p := s.progress("retrying")
	for {
		ended := int64(0)
		for i := range fates {
			if !fates[i].ended {
				if err := s.look(ctx, &fates[i]); err != nil && ctx.Err() == nil {
					p.end()
					return err
				}
			}
			if fates[i].ended {
				ended++
			}
		}
		if ended == int64(len(fates)) {
			p.end()
			return s.tellFates(fates)
		}
		p.at(ended, int64(len(fates)), "")
		if !sleep(ctx, lookEvery) {
			p.end()
			s.tell("the retries continue without this command. To see the results: docket dlq show %s --history\n", s.oneOf(fates))
			return s.tellFates(fates)
		}
	}
}

// oneOf is the id of the retry that has not ended, ID where there are several.
func (s *session) oneOf(fates []fate) string {
	id := ""
	for _, f := range fates {
		if f.ended {
			continue
		}
		if id != "" {
			return "ID"
		}
		id = short(f.ID, shortID)
	}
	return id
}

// sleep waits; false: ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// look finds out whether a retry has ended.
func (s *session) look(ctx context.Context, f *fate) error {
	audits, sendings, err := s.sys.Book.History(ctx, f.ID)
	if err != nil {
		return fmt.Errorf("look at the retry of %s: %w", s.id(f.ID), err)
	}
	if len(audits) == 0 {
		return nil
	}
	last := audits[len(audits)-1]
	if last.To == ledger.Processing {
		return nil
	}
	f.ended, f.State = true, string(last.To)
	switch last.Act {
	case ledger.Stored, ledger.Removed:
		f.Result, f.Detail = "stored", plain(last.Why)
	case ledger.Died:
		f.Result, f.Detail = "dead", "failed again"+because(sendings)+fmt.Sprintf(", attempt %d of %d", last.Attempts, s.settings.DeskMaxAttempts)
	case ledger.Refused:
		f.Result, f.Detail = "refused", "not published"+because(sendings)
	case ledger.LeaseEnded:
		f.Result, f.Detail = "lease_ended", "no result in time; it can be retried again"
	default:
		f.Result, f.Detail = string(last.Act), plain(last.Why)
	}
	return nil
}

// because is the code of the last retry.
func because(sendings []ledger.Sending) string {
	if n := len(sendings); n > 0 && sendings[n-1].Code != "" {
		return ": " + cli.Named(sendings[n-1].Code)
	}
	return ""
}
