package letters

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/jobs"
	"docket/internal/programs/cli/term"
)

// Results follows retries and prints the result of each dead letter.
type Results struct{ frame.Call }

// Fate is the result of a retry, an edit or a resolve of one dead letter.
type Fate struct {
	ID     string `json:"id"`
	Result string `json:"result"` // retried, stored, dead, refused, unknown, lease_ended, edited, resolved, assigned, snoozed, awake or reopened
	State  string `json:"state,omitempty"`
	Detail string `json:"detail,omitempty"`
	Ended  bool   `json:"-"` // there is nothing to wait for
}

func (f Fate) good() bool {
	return slices.Contains([]string{"stored", "resolved", "retried", "edited", "assigned", "snoozed", "awake", "reopened"}, f.Result)
}

func moved(o ledger.Outcome, retry bool) Fate {
	f := Fate{ID: o.ID, Result: "resolved", State: string(ledger.Resolved), Ended: true}
	if retry {
		f = Fate{ID: o.ID, Result: "retried", State: string(ledger.Processing)}
	}
	var refused *ledger.RefusedError
	switch {
	case o.Err == nil:
		return f
	case errors.As(o.Err, &refused):
		return Fate{
			ID: o.ID, Result: "refused", State: string(refused.State), Ended: true,
			Detail: fmt.Sprintf("nothing was changed: %s since %s, by %s%s", refused.State, term.Stamp(refused.At), term.Brief(refused.By), Meanwhile(refused.State)),
		}
	case errors.Is(o.Err, ledger.ErrNotFound), errors.Is(o.Err, ledger.ErrAmbiguous):
		return Fate{ID: o.ID, Result: "refused", Detail: notThere(o.Err), Ended: true}
	case frame.Lost(o.Err):
		return Fate{ID: o.ID, Result: "unknown", Detail: frame.Unchanged(o.Err).Error(), Ended: true}
	}
	return Fate{ID: o.ID, Result: "refused", Detail: o.Err.Error(), Ended: true}
}

// Meanwhile says what to do about a dead letter that cannot be moved.
func Meanwhile(state ledger.State) string {
	if state == ledger.Processing {
		return "; wait for the result of that retry"
	}
	return "; nothing to do"
}

// Show prints the result of each dead letter. The command fails where one of them failed.
func (rs Results) Show(fates []Fate) error {
	bad := false
	for _, f := range fates {
		bad = bad || !f.good()
	}
	if rs.AsJSON {
		rs.Print(frame.ListOf(fates, "", func(f Fate) Fate { return f }))
	} else {
		var rows [][]term.Cell
		for _, f := range fates {
			rows = append(rows, []term.Cell{{Full: rs.ID(f.ID)}, {Full: f.Result}, {Full: f.State}, {Full: f.Detail}})
		}
		rs.TableWith([]term.Column{{Title: "id"}, {Title: "result"}, {Title: "state", Paint: rs.PaintState}, {Title: "detail"}}, rows, "", len(rows) > 1)
	}
	if bad {
		return frame.Exit(cli.Failed)
	}
	return nil
}

// Follow waits until every retry has ended and prints the results.
func (rs Results) Follow(ctx context.Context, fates []Fate, flags Waiting) error {
	var open int
	for _, f := range fates {
		if !f.Ended {
			open++
		}
	}
	if open == 0 {
		return rs.Show(fates)
	}
	there, err := jobs.Running(ctx, rs.Call)
	if err != nil {
		return rs.begun(fates, err)
	}
	if flags.detach || !there && !flags.wait {
		err := rs.Show(fates)
		rs.Tell("to see the result: docket dlq show %s --history\n", rs.oneOf(fates))
		return err
	}
	p := rs.Progress("retrying")
	for {
		ended := int64(0)
		for i := range fates {
			if !fates[i].Ended {
				if err := rs.look(ctx, &fates[i]); err != nil && ctx.Err() == nil {
					p.End()
					return rs.begun(fates, err)
				}
			}
			if fates[i].Ended {
				ended++
			}
		}
		if ended == int64(len(fates)) {
			p.End()
			return rs.Show(fates)
		}
		p.At(ended, int64(len(fates)), "")
		if !frame.Sleep(ctx, frame.LookEvery) {
			p.End()
			rs.Tell("the retries continue without this command. To see the results: docket dlq show %s --history\n", rs.oneOf(fates))
			return rs.Show(fates)
		}
	}
}

// begun prints what was done before an error, and how to see the rest.
func (rs Results) begun(fates []Fate, err error) error {
	_ = rs.Show(fates) // the error says more
	rs.Tell("the retries continue without this command. To see the results: docket dlq show %s --history\n", rs.oneOf(fates))
	return err
}

// oneOf is the id of the retry that has not ended, ID where there are several.
func (rs Results) oneOf(fates []Fate) string {
	id := ""
	for _, f := range fates {
		if f.Ended {
			continue
		}
		if id != "" {
			return "ID"
		}
		id = term.Cut(f.ID, frame.ShortID)
	}
	return id
}

// look finds out whether a retry has ended.
func (rs Results) look(ctx context.Context, f *Fate) error {
	audits, sendings, err := rs.Sys.Book.History(ctx, f.ID)
	if err != nil {
		return fmt.Errorf("look at the retry of %s: %w", rs.ID(f.ID), err)
	}
	if len(audits) == 0 {
		return nil
	}
	last := audits[len(audits)-1]
	if last.To == ledger.Processing {
		return nil
	}
	f.Ended, f.State = true, string(last.To)
	switch last.Act {
	case ledger.Stored, ledger.Removed:
		f.Result, f.Detail = "stored", term.Brief(last.Why)
	case ledger.Died:
		f.Result, f.Detail = "dead", fmt.Sprintf("failed again%s, attempt %d", because(sendings), last.Attempts)
		if rs.Sys.Desk == nil { // else it is a setting of the desk
			f.Detail += fmt.Sprintf(" of %d", rs.Settings.DeskMaxAttempts)
		}
	case ledger.Refused:
		f.Result, f.Detail = "refused", "not published"+because(sendings)
	case ledger.LeaseEnded:
		f.Result, f.Detail = "lease_ended", "no result in time; it can be retried again"
	default:
		f.Result, f.Detail = string(last.Act), term.Brief(last.Why)
	}
	return nil
}

// because is the code of the last retry, with advice where a setting decides.
func because(sendings []ledger.Sending) string {
	n := len(sendings)
	if n == 0 || sendings[n-1].Code == "" {
		return ""
	}
	text := ": " + cli.Named(sendings[n-1].Code)
	if sendings[n-1].Code == worker.CodeForeignTopic {
		text += ", as no retry may go to " + term.Brief(sendings[n-1].Topic) + ": if it is the topic of a lane, name the lane in the desk's DOCKET_LANES, else see DOCKET_DESK_RETRY_TOPICS"
	}
	return text
}

// Tried prints the result of a dry run. Exit 1: not all would be stored.
func (rs Results) Tried(r worker.TrialResult) error {
	switch findings := r.Findings(); {
	case rs.AsJSON:
		rs.Print(r)
	case len(findings) < 3:
		rs.Say("dry run, nothing was changed: %s\n", r.String())
	default:
		rs.Say("dry run of %s, nothing was changed:\n", term.Grouped(r.Total))
		for _, finding := range findings {
			rs.Say("  %s\n", finding)
		}
	}
	if !rs.AsJSON && r.Unwell == nil {
		for _, f := range r.StillFail {
			rs.Tell("to explain %s: docket classify %s\n", f.Code, term.ShellWord(f.Code))
		}
	}
	if r.Unwell != nil || r.Fails() > 0 {
		return frame.Exit(cli.Failed)
	}
	return nil
}
