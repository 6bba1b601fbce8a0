package edits

import (
	"context"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/letters"
	"docket/internal/programs/cli/term"
)

// view finds and prints proposals.
type view struct{ frame.Call }

// decides is the number of a proposal, and the person who decides.
func (v view) decides(args []string, g frame.Signature) (int64, ledger.Actor, error) {
	id, err := proposalID(args)
	if err != nil {
		return 0, ledger.Actor{}, err
	}
	by, err := v.Actor(g, "")
	return id, by, err
}

// find finds a proposal, with its diff against the stored payload. So the approver need not trust the author. A proposal that is not
// open has no diff.
func (v view) find(ctx context.Context, id int64) (p ledger.Proposal, diff string, err error) {
	p, err = v.Sys.Book.Proposal(ctx, id)
	if err != nil {
		return p, "", fmt.Errorf("proposal %d: %w", id, err)
	}
	if p.State != ledger.ProposalOpen {
		return p, "", nil
	}
	e, err := v.Entry(ctx, p.LetterID)
	if err == nil {
		e, err = v.WithPayload(ctx, e)
	}
	if err != nil {
		return p, "", err
	}
	before, _, err := letters.Inflate(e.Value, int64(v.Settings.MaxRecordBytes))
	if err != nil {
		before = e.Value
	}
	after, _, err := letters.Inflate(p.Value, int64(v.Settings.MaxRecordBytes))
	if err != nil {
		after = p.Value
	}
	return p, difference(before, after), nil
}

// difference is the diff of two payloads, with JSON indented.
func difference(before, after []byte) string {
	return udiff.Unified("before", "after", lined(term.Pretty(before)), lined(term.Pretty(after)))
}

func (v view) show(p ledger.Proposal, diff string) {
	if v.AsJSON {
		out := proposalOf(p)
		out.Diff = diff
		v.Print(out)
		return
	}
	now := v.Now()
	v.Say("%s %d, %s\n", v.Paint(term.Bold, "Proposal"), p.ID, v.PaintState(string(p.State)))
	v.Field("dead letter", p.LetterID)
	v.Field("changes", strings.Join(p.Members, ", "))
	v.Field("proposed by", term.Brief(p.By)+", "+signedBy(p)+": "+p.Why)
	v.Field("proposed", term.Moment(p.CreatedAt, now))
	if p.Decided.At.IsZero() {
		v.Field("expires", term.Moment(p.ExpiresAt, now))
	} else {
		v.Field(strings.ToLower(string(p.State)), term.Moment(p.Decided.At, now)+" by "+term.Brief(p.Decided.By)+", login "+term.Brief(p.Decided.Login)+": "+p.Decided.Why)
	}
	if p.State == ledger.ProposalOpen {
		then := "keeps its state until somebody retries it"
		if p.Retry {
			then = "is retried"
		}
		v.Field("once approved", "the dead letter "+then)
	}
	if diff != "" {
		v.Say("\n%s\n", v.Diff(strings.TrimSuffix(diff, "\n")))
	}
	v.Actions(v.actions(p))
}

// signedBy is how the author of a proposal is known.
func signedBy(p ledger.Proposal) string {
	if p.Vouched {
		return "a user of the API of the desk with login " + term.Brief(p.Login)
	}
	return "login " + term.Brief(p.Login)
}

// command ends a proposal. A desk knows the person by the token.
func (v view) command(act string, id int64) string {
	operator := " --operator NAME"
	if v.Sys.Desk != nil {
		operator = ""
	}
	return fmt.Sprintf("docket dlq %s %d%s --reason '...'", act, id, operator)
}

func (v view) actions(p ledger.Proposal) []term.Action {
	look := term.Action{Text: "look at the dead letter", Command: "docket dlq show " + term.Cut(p.LetterID, frame.ShortID) + " --payload --history"}
	if p.State != ledger.ProposalOpen {
		return []term.Action{look}
	}
	way := "approve it, as another person with a login of their own"
	command := v.command("approve", p.ID)
	if p.Vouched {
		way = "approve it, as another admin of the API"
		if v.Sys.Desk == nil {
			command = fmt.Sprintf("POST /api/v1/proposals/%d/approve", p.ID)
		}
	}
	return []term.Action{{Text: way, Command: command}, {Text: "reject it, or withdraw it", Command: v.command("reject", p.ID)}, look}
}

// told prints the state of a proposal, in a line.
func (v view) told(p ledger.Proposal) {
	if v.AsJSON {
		p.Value = nil
		v.Print(proposalOf(p))
		return
	}
	v.Say("proposal %d of dead letter %s is %s\n", p.ID, v.ID(p.LetterID), v.PaintState(string(p.State)))
}

// propose stores an edit for a second person, and prints the next steps.
func (v view) propose(ctx context.Context, draft ledger.Draft, by ledger.Actor) error {
	p, err := v.Sys.Book.Propose(ctx, draft, by)
	if err != nil {
		return frame.Unchanged(err)
	}
	if v.AsJSON {
		v.told(p)
		return nil
	}
	v.Say("proposal %d: it changes %s of dead letter %s, and nothing is changed until another person approves it\n", p.ID, strings.Join(p.Members, ", "), v.ID(p.LetterID))
	own := "a database login"
	if v.Sys.Desk != nil {
		own = "a token"
	}
	v.Say("it expires %s. Another person looks at it and approves or rejects it, with %s of their own:\n", term.Stamp(p.ExpiresAt), own)
	v.Say("  docket dlq proposals %d\n  %s\n  %s\n", p.ID, v.command("approve", p.ID), v.command("reject", p.ID))
	return nil
}
