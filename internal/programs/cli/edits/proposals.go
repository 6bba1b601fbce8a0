package edits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/letters"
	"docket/internal/programs/cli/term"
)

// mostProposals is how many proposals are listed.
const mostProposals = 1000

// proposals is docket dlq proposals.
type proposals struct {
	proposalView
	all bool
}

// Proposals makes the command that lists proposals, or shows one.
func Proposals(call frame.Call) *cobra.Command {
	v := &proposals{proposalView: proposalView{call}}
	c := &cobra.Command{
		Use: "proposals [NUMBER] [flags]", Short: "List edits that wait for a second person, or show one with its diff", DisableFlagsInUseLine: true,
		Long: "List edits that wait for a second person, or show one with its diff.\n\n" +
			"An edit that changes decision_id, timestamp, path, result or input is a proposal. A second person approves\n" +
			"it within 7 days. The diff can hold personal data, so only one proposal shows it.",
		Example: "  docket dlq proposals\n  docket dlq proposals 7\n  docket dlq proposals --all --json",
		Args:    atMostOneProposal, ValidArgsFunction: completeProposals(call),
	}
	c.Flags().BoolVar(&v.all, "all", false, fmt.Sprintf("also list those that were approved or rejected, have expired or are void; the newest %d", mostProposals))
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed or shown, also if there are none", "no such proposal, or the command failed")
	c.RunE = v.Run(v.check)
	return c
}

// check looks at flags and arguments.
func (v *proposals) check(args []string) (frame.Work, error) {
	if len(args) == 0 {
		return v.listed, nil
	}
	id, err := proposalID(args)
	if err == nil && v.all {
		err = frame.Misuse("--all lists; it needs no number")
	}
	return func(ctx context.Context) error {
		p, diff, err := v.find(ctx, id)
		if err != nil {
			return err
		}
		v.show(p, diff)
		return nil
	}, err
}

// approve is docket dlq approve.
type approve struct {
	proposalView
	frame.Signature
	letters.Waiting
	yes bool
}

// Approve makes the command that approves a proposal.
func Approve(call frame.Call) *cobra.Command {
	v := &approve{proposalView: proposalView{call}}
	c := &cobra.Command{
		Use: "approve NUMBER [flags]", Short: "Approve an edit that somebody else proposed, and make it", DisableFlagsInUseLine: true,
		Long: "Approve an edit that somebody else proposed, and make it.\n\n" +
			"You see the diff and are asked. The edit, your approval and the retry are one step. The database refuses\n" +
			"the name and the login that proposed it, so each person needs a login of their own. A proposal of the\n" +
			"API is approved by the API.",
		Example: "  docket dlq approve 7 --operator oleg --reason 'the path is the one of the policy'",
		Args:    oneProposal, ValidArgsFunction: completeProposals(call),
	}
	flags := c.Flags()
	v.Waiting.Declare(c)
	flags.BoolVar(&v.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	c.MarkFlagsMutuallyExclusive("wait", "detach")
	v.Signature.Declare(flags, frame.ReasonText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "the payload is edited; and stored, if the proposal retries it; with --detach, or while no desk runs: it will be sent",
		"it was not approved; or the retry failed again or was refused; you answered no; or the command failed")
	c.RunE = v.Run(func(args []string) (frame.Work, error) {
		id, by, err := v.decides(args, v.Signature)
		if err == nil && !v.yes && !v.Asks() {
			err = frame.Misuse("cannot ask for confirmation without a terminal: give --yes")
		}
		return func(ctx context.Context) error { return v.approved(ctx, id, by) }, err
	})
	return c
}

// reject is docket dlq reject.
type reject struct {
	proposalView
	frame.Signature
}

// Reject makes the command that rejects a proposal.
func Reject(call frame.Call) *cobra.Command {
	v := &reject{proposalView: proposalView{call}}
	c := &cobra.Command{
		Use: "reject NUMBER [flags]", Short: "Reject an edit that was proposed, or withdraw your own", DisableFlagsInUseLine: true,
		Long:    "Reject an edit that was proposed, or withdraw your own. The dead letter is not changed.",
		Example: "  docket dlq reject 7 --operator oleg --reason 'the user is right as it is'",
		Args:    oneProposal, ValidArgsFunction: completeProposals(call),
	}
	v.Signature.Declare(c.Flags(), frame.ReasonText)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "rejected", "it was approved or rejected before, or the command failed")
	c.RunE = v.Run(func(args []string) (frame.Work, error) {
		id, by, err := v.decides(args, v.Signature)
		return func(ctx context.Context) error {
			p, err := v.Sys.Book.Reject(ctx, id, by)
			if err != nil {
				return fmt.Errorf("proposal %d: %w", id, err)
			}
			v.told(p)
			return nil
		}, err
	})
	return c
}

// proposalView finds and prints proposals.
type proposalView struct{ frame.Call }

// decides is the number of a proposal, and the person who decides.
func (v proposalView) decides(args []string, g frame.Signature) (int64, ledger.Actor, error) {
	id, err := proposalID(args)
	if err != nil {
		return 0, ledger.Actor{}, err
	}
	by, err := v.Actor(g, "")
	return id, by, err
}

func oneProposal(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return frame.Misuse("give one number, as `docket dlq proposals` prints it")
	}
	return nil
}

func atMostOneProposal(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return oneProposal(c, args)
}

func proposalID(args []string) (int64, error) {
	id, err := strconv.ParseInt(args[0], 10, 64)
	if err != nil || id < 1 {
		return 0, frame.Misuse("%s is not the number of a proposal", term.Quoted(args[0]))
	}
	return id, nil
}

// jsonProposal is a proposal. Its payload and its diff are there where one is shown.
type jsonProposal struct {
	ID           int64           `json:"proposal"`
	State        string          `json:"state"`
	DeadLetter   string          `json:"dead_letter"`
	Members      []string        `json:"members"`
	Retry        bool            `json:"retry"`
	By           string          `json:"by"`
	Why          string          `json:"why"`
	Login        string          `json:"login"`
	Vouched      bool            `json:"vouched"` // by was named by the API of a desk
	CreatedAt    *time.Time      `json:"created_at"`
	ExpiresAt    *time.Time      `json:"expires_at"`
	DecidedBy    string          `json:"decided_by,omitempty"`
	DecidedWhy   string          `json:"decided_why,omitempty"`
	DecidedLogin string          `json:"decided_login,omitempty"`
	DecidedAt    *time.Time      `json:"decided_at,omitempty"`
	Diff         string          `json:"diff,omitempty"`
	Payload      json.RawMessage `json:"payload,omitempty"`
	Base64       []byte          `json:"payload_base64,omitempty"`
}

func proposalOf(p ledger.Proposal) jsonProposal {
	out := jsonProposal{
		ID: p.ID, State: string(p.State), DeadLetter: p.LetterID, Members: append([]string{}, p.Members...), Retry: p.Retry, By: p.By, Why: p.Why, Login: p.Login, Vouched: p.Vouched,
		CreatedAt: frame.UTC(p.CreatedAt), ExpiresAt: frame.UTC(p.ExpiresAt), DecidedBy: p.Decided.By, DecidedWhy: p.Decided.Why, DecidedLogin: p.Decided.Login, DecidedAt: frame.UTC(p.Decided.At),
	}
	if term.IsJSON(p.Value) {
		out.Payload = p.Value
	} else {
		out.Base64 = p.Value
	}
	return out
}

func (v *proposals) listed(ctx context.Context) error {
	list, err := v.Sys.Book.ListProposals(ctx, v.all, mostProposals)
	if err != nil {
		return err // it names the act
	}
	switch {
	case v.AsJSON:
		v.Print(frame.ListOf(list, "", proposalOf))
		return nil
	case len(list) == 0:
		v.Tell("no edit waits for a second person\n")
		return nil
	}
	now := v.Now()
	var rows [][]term.Cell
	for _, p := range list {
		rows = append(rows, []term.Cell{
			{Full: fmt.Sprint(p.ID)}, {Full: string(p.State)}, {Full: v.ID(p.LetterID)}, {Full: strings.Join(p.Members, ", ")}, {Full: term.Brief(p.By)}, {Full: term.Brief(p.Login)},
			{Full: term.Moment(p.CreatedAt, now), Brief: term.Ago(p.CreatedAt, now)}, {Full: term.Moment(p.ExpiresAt, now), Brief: term.Ago(p.ExpiresAt, now)}, {Full: term.Brief(p.Why)}, {Full: term.Brief(p.Decided.By)},
		})
	}
	columns := []term.Column{
		{Title: "proposal", Right: true}, {Title: "state", Paint: v.PaintState}, {Title: "dead letter"}, {Title: "changes", Rank: 3, Least: 10}, {Title: "by", Rank: 1, Least: 8}, {Title: "login", Rank: 6, Least: 8},
		{Title: "proposed", Rank: 4}, {Title: "expires", Rank: 2}, {Title: "reason", Rank: 5, Least: 12}, {Title: "decided by", Rank: 7, Least: 8},
	}
	v.Table(columns, rows, "")
	return nil
}

// find finds a proposal, with its diff against the stored payload. So the approver need not trust the author. A proposal that is not
// open has no diff.
func (v proposalView) find(ctx context.Context, id int64) (p ledger.Proposal, diff string, err error) {
	p, err = v.Sys.Book.Proposal(ctx, id)
	if err != nil {
		return p, "", fmt.Errorf("proposal %d: %w", id, err)
	}
	if p.State != ledger.ProposalOpen {
		return p, "", nil
	}
	e, err := v.Entry(ctx, p.LetterID)
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

func (v proposalView) show(p ledger.Proposal, diff string) {
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
	v.Actions(proposalActions(p))
}

// signedBy is how the author of a proposal is known.
func signedBy(p ledger.Proposal) string {
	if p.Vouched {
		return "a user of the API of the desk with login " + term.Brief(p.Login)
	}
	return "login " + term.Brief(p.Login)
}

func proposalActions(p ledger.Proposal) []term.Action {
	look := term.Action{Text: "look at the dead letter", Command: "docket dlq show " + term.Cut(p.LetterID, frame.ShortID) + " --payload --history"}
	if p.State != ledger.ProposalOpen {
		return []term.Action{look}
	}
	way := "approve it, as another person with a login of their own"
	command := fmt.Sprintf("docket dlq approve %d --operator NAME --reason '...'", p.ID)
	if p.Vouched {
		way, command = "approve it, as another admin of the API", fmt.Sprintf("POST /api/v1/proposals/%d/approve", p.ID)
	}
	return []term.Action{{Text: way, Command: command}, {Text: "reject it, or withdraw it", Command: fmt.Sprintf("docket dlq reject %d --operator NAME --reason '...'", p.ID)}, look}
}

// told prints the state of a proposal, in a line.
func (v proposalView) told(p ledger.Proposal) {
	if v.AsJSON {
		p.Value = nil
		v.Print(proposalOf(p))
		return
	}
	v.Say("proposal %d of dead letter %s is %s\n", p.ID, v.ID(p.LetterID), v.PaintState(string(p.State)))
}

// approved shows a proposal, asks, and makes the edit.
func (v *approve) approved(ctx context.Context, id int64, by ledger.Actor) error {
	p, diff, err := v.find(ctx, id)
	if err != nil {
		return err
	}
	if p.State != ledger.ProposalOpen {
		because := map[ledger.ProposalState]ledger.Because{ledger.ProposalExpired: ledger.BecauseExpired, ledger.ProposalVoid: ledger.BecauseVoid}[p.State]
		if because == "" {
			because = ledger.BecauseEnded
		}
		return &ledger.ProposalError{ID: id, Because: because}
	}
	if v.AsJSON {
		v.Tell("%s\n", term.Lines(strings.TrimSuffix(diff, "\n")))
	} else {
		v.Say("%s\n", v.Diff(diff))
	}
	if !v.yes {
		ok, err := v.Confirm(ctx, fmt.Sprintf("Approve this edit of %s by %s?", term.Cut(p.LetterID, frame.ShortID), term.Brief(p.By)), false)
		if err != nil || !ok {
			v.Tell("nothing was changed\n")
			return errors.Join(err, frame.Exit(cli.Failed))
		}
	}
	p, err = v.Sys.Book.Approve(ctx, id, diff, v.Settings.DeskLease, by)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if !v.AsJSON {
		v.told(p)
	}
	if !p.Retry {
		e, err := v.Entry(ctx, p.LetterID)
		if err != nil {
			return err
		}
		return letters.Results{Call: v.Call}.Tell([]letters.Fate{{ID: p.LetterID, Result: "edited", State: string(e.State), Ended: true}})
	}
	return letters.Results{Call: v.Call}.Follow(ctx, []letters.Fate{{ID: p.LetterID, Result: "retried", State: string(ledger.Processing)}}, v.Waiting)
}

// propose stores an edit for a second person, and prints the next steps.
func (v proposalView) propose(ctx context.Context, draft ledger.Draft, by ledger.Actor) error {
	p, err := v.Sys.Book.Propose(ctx, draft, by)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if v.AsJSON {
		v.told(p)
		return nil
	}
	v.Say("proposal %d: it changes %s of dead letter %s, and nothing is changed until another person approves it\n", p.ID, strings.Join(p.Members, ", "), v.ID(p.LetterID))
	v.Say("it expires %s. Another person looks at it and approves or rejects it, with a database login of their own:\n", term.Stamp(p.ExpiresAt))
	v.Say("  docket dlq proposals %[1]d\n  docket dlq approve %[1]d --operator NAME --reason '...'\n  docket dlq reject %[1]d --operator NAME --reason '...'\n", p.ID)
	return nil
}

// completeProposals suggests the numbers of open proposals.
func completeProposals(call frame.Call) frame.Completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		return call.Suggest(func(ctx context.Context, _ string) ([]string, error) {
			if len(args) > 0 {
				return nil, nil
			}
			list, err := call.Sys.Book.ListProposals(ctx, false, frame.Suggested)
			var out []string
			for _, p := range list {
				out = append(out, fmt.Sprintf("%d\t%s", p.ID, term.Brief(term.Cut(p.LetterID, frame.ShortID)+" "+strings.Join(p.Members, ", ")+" by "+p.By)))
			}
			return out, err
		})(c, args, begun)
	}
}
