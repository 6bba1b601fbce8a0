package deskcli

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
)

// mostProposals is how many proposals are listed.
const mostProposals = 1000

func (s *session) proposals() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "proposals [NUMBER] [flags]", Short: "List edits that wait for a second person, or show one with its diff", DisableFlagsInUseLine: true,
		Long: "List edits that wait for a second person, or show one with its diff.\n\n" +
			"An edit that changes decision_id, timestamp, path, result or input is a proposal. A second person approves\n" +
			"it within 7 days. The diff can hold personal data, so only one proposal shows it.",
		Example: "  docket dlq proposals\n  docket dlq proposals 7\n  docket dlq proposals --all --json",
		Args:    atMostOneProposal, ValidArgsFunction: s.completeProposals,
	}
	c.Flags().BoolVar(&all, "all", false, fmt.Sprintf("also list those that were approved or rejected, have expired or are void; the newest %d", mostProposals))
	usage(c, []string{"DOCKET_DATABASE_URL"}, "listed or shown, also if there are none", "no such proposal, or the command failed")
	c.RunE = s.run(func(args []string) (work, error) {
		if len(args) == 0 {
			return func(ctx context.Context) error { return s.listProposals(ctx, all) }, nil
		}
		id, err := proposalID(args)
		if err == nil && all {
			err = misuse("--all lists; it needs no number")
		}
		return func(ctx context.Context) error {
			p, diff, err := s.proposal(ctx, id)
			if err != nil {
				return err
			}
			s.showProposal(p, diff)
			return nil
		}, err
	})
	return c
}

func (s *session) approve() *cobra.Command {
	var d deciding
	c := &cobra.Command{
		Use: "approve NUMBER [flags]", Short: "Approve an edit that somebody else proposed, and make it", DisableFlagsInUseLine: true,
		Long: "Approve an edit that somebody else proposed, and make it.\n\n" +
			"You see the diff and are asked. The edit, your approval and the retry are one step. The database refuses\n" +
			"the name and the login that proposed it, so each person needs a login of their own. A proposal of the\n" +
			"API is approved by the API.",
		Example: "  docket dlq approve 7 --operator oleg --reason 'the path is the one of the policy'",
		Args:    oneProposal, ValidArgsFunction: s.completeProposals,
	}
	flags := c.Flags()
	flags.BoolVar(&d.wait, "wait", false, waitText)
	flags.BoolVar(&d.detach, "detach", false, "do not wait for the result")
	flags.BoolVar(&d.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	c.MarkFlagsMutuallyExclusive("wait", "detach")
	declareReason(c, &d)
	usage(c, []string{"DOCKET_DATABASE_URL"}, "the payload is edited; and stored, if the proposal retries it; with --detach, or while no desk runs: it will be sent",
		"it was not approved; or the retry failed again or was refused; you answered no; or the command failed")
	c.RunE = s.run(func(args []string) (work, error) {
		id, by, err := s.decidesOn(args, &d)
		if err == nil && !d.yes && !s.asks() {
			err = misuse("cannot ask for confirmation without a terminal: give --yes")
		}
		return func(ctx context.Context) error { return s.approves(ctx, id, by, &d) }, err
	})
	return c
}

func (s *session) reject() *cobra.Command {
	var d deciding
	c := &cobra.Command{
		Use: "reject NUMBER [flags]", Short: "Reject an edit that was proposed, or withdraw your own", DisableFlagsInUseLine: true,
		Long:    "Reject an edit that was proposed, or withdraw your own. The dead letter is not changed.",
		Example: "  docket dlq reject 7 --operator oleg --reason 'the user is right as it is'",
		Args:    oneProposal, ValidArgsFunction: s.completeProposals,
	}
	declareReason(c, &d)
	usage(c, []string{"DOCKET_DATABASE_URL"}, "rejected", "it was approved or rejected before, or the command failed")
	c.RunE = s.run(func(args []string) (work, error) {
		id, by, err := s.decidesOn(args, &d)
		return func(ctx context.Context) error {
			p, err := s.sys.Book.Reject(ctx, id, by)
			if err != nil {
				return fmt.Errorf("proposal %d: %w", id, err)
			}
			s.toldProposal(p)
			return nil
		}, err
	})
	return c
}

func declareReason(c *cobra.Command, d *deciding) {
	c.Flags().StringVar(&d.operator, "operator", "", operatorText)
	c.Flags().StringVar(&d.reason, "reason", "", "why you do this: `TEXT` for the audit log (required)")
}

// decidesOn is which proposal, and who decides on it.
func (s *session) decidesOn(args []string, d *deciding) (int64, ledger.Actor, error) {
	id, err := proposalID(args)
	if err != nil {
		return 0, ledger.Actor{}, err
	}
	by, err := s.actor(d, "")
	return id, by, err
}

func oneProposal(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return misuse("give one number, as `docket dlq proposals` prints it")
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
		return 0, misuse("%s is not the number of a proposal", quoted(args[0]))
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
		CreatedAt: at(p.CreatedAt), ExpiresAt: at(p.ExpiresAt), DecidedBy: p.Decided.By, DecidedWhy: p.Decided.Why, DecidedLogin: p.Decided.Login, DecidedAt: at(p.Decided.At),
	}
	if isJSON(p.Value) {
		out.Payload = p.Value
	} else {
		out.Base64 = p.Value
	}
	return out
}

func (s *session) listProposals(ctx context.Context, all bool) error {
	list, err := s.sys.Book.ListProposals(ctx, all, mostProposals)
	if err != nil {
		return err // it names the act
	}
	switch {
	case s.asJSON:
		s.print(listOf(list, "", proposalOf))
		return nil
	case len(list) == 0:
		s.tell("no edit waits for a second person\n")
		return nil
	}
	now := s.now()
	var rows [][]cell
	for _, p := range list {
		rows = append(rows, []cell{
			{full: fmt.Sprint(p.ID)}, {full: string(p.State)}, {full: s.id(p.LetterID)}, {full: strings.Join(p.Members, ", ")}, {full: plain(p.By)}, {full: plain(p.Login)},
			{full: moment(p.CreatedAt, now), brief: ago(p.CreatedAt, now)}, {full: moment(p.ExpiresAt, now), brief: ago(p.ExpiresAt, now)}, {full: plain(p.Why)}, {full: plain(p.Decided.By)},
		})
	}
	columns := []column{
		{title: "proposal", right: true}, {title: "state", paint: s.paintState}, {title: "dead letter"}, {title: "changes", rank: 3, least: 10}, {title: "by", rank: 1, least: 8}, {title: "login", rank: 6, least: 8},
		{title: "proposed", rank: 4}, {title: "expires", rank: 2}, {title: "reason", rank: 5, least: 12}, {title: "decided by", rank: 7, least: 8},
	}
	s.table(columns, rows, "")
	return nil
}

// proposal finds one, and what it would change of the payload that is there: nobody has to believe what its author says of that.
// Where it cannot be approved any more there is no diff.
func (s *session) proposal(ctx context.Context, id int64) (p ledger.Proposal, diff string, err error) {
	p, err = s.sys.Book.Proposal(ctx, id)
	if err != nil {
		return p, "", fmt.Errorf("proposal %d: %w", id, err)
	}
	if p.State != ledger.ProposalOpen {
		return p, "", nil
	}
	e, err := s.entry(ctx, p.LetterID)
	if err != nil {
		return p, "", err
	}
	before, _, err := inflated(e.Value, int64(s.settings.MaxRecordBytes))
	if err != nil {
		before = e.Value
	}
	after, _, err := inflated(p.Value, int64(s.settings.MaxRecordBytes))
	if err != nil {
		after = p.Value
	}
	return p, difference(before, after), nil
}

// difference is what another payload changes, JSON set out in lines.
func difference(before, after []byte) string {
	return udiff.Unified("before", "after", lined(pretty(before)), lined(pretty(after)))
}

func (s *session) showProposal(p ledger.Proposal, diff string) {
	if s.asJSON {
		out := proposalOf(p)
		out.Diff = diff
		s.print(out)
		return
	}
	now := s.now()
	s.say("%s %d, %s\n", s.paint(bold, "Proposal"), p.ID, s.paintState(string(p.State)))
	s.field("dead letter", p.LetterID)
	s.field("changes", strings.Join(p.Members, ", "))
	s.field("proposed by", plain(p.By)+", "+signedBy(p)+": "+plainAll(p.Why))
	s.field("proposed", moment(p.CreatedAt, now))
	if p.Decided.At.IsZero() {
		s.field("expires", moment(p.ExpiresAt, now))
	} else {
		s.field(strings.ToLower(string(p.State)), moment(p.Decided.At, now)+" by "+plain(p.Decided.By)+", login "+plain(p.Decided.Login)+": "+plainAll(p.Decided.Why))
	}
	if p.State == ledger.ProposalOpen {
		then := "keeps its state until somebody retries it"
		if p.Retry {
			then = "is retried"
		}
		s.field("once approved", "the dead letter "+then)
	}
	if diff != "" {
		s.say("\n%s\n", s.diff(strings.TrimSuffix(diff, "\n")))
	}
	s.heading("What you can do now")
	for _, a := range proposalActions(p) {
		s.say("  %s\n    %s\n", a.Text, s.paint(cyan, a.Command))
	}
}

// signedBy is how the author of a proposal is known.
func signedBy(p ledger.Proposal) string {
	if p.Vouched {
		return "a user of the API of the desk with login " + plain(p.Login)
	}
	return "login " + plain(p.Login)
}

func proposalActions(p ledger.Proposal) []action {
	look := action{"look at the dead letter", "docket dlq show " + short(p.LetterID, shortID) + " --payload --history"}
	if p.State != ledger.ProposalOpen {
		return []action{look}
	}
	way := "approve it, as another person with a login of their own"
	command := fmt.Sprintf("docket dlq approve %d --operator NAME --reason '...'", p.ID)
	if p.Vouched {
		way, command = "approve it, as another admin of the API", fmt.Sprintf("POST /api/v1/proposals/%d/approve", p.ID)
	}
	return []action{{way, command}, {"reject it, or withdraw it", fmt.Sprintf("docket dlq reject %d --operator NAME --reason '...'", p.ID)}, look}
}

// toldProposal says what became of a proposal, in a line.
func (s *session) toldProposal(p ledger.Proposal) {
	if s.asJSON {
		p.Value = nil
		s.print(proposalOf(p))
		return
	}
	s.say("proposal %d of dead letter %s is %s\n", p.ID, s.id(p.LetterID), s.paintState(string(p.State)))
}

func (s *session) approves(ctx context.Context, id int64, by ledger.Actor, d *deciding) error {
	p, diff, err := s.proposal(ctx, id)
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
	if s.asJSON {
		s.tell("%s\n", plainLines(strings.TrimSuffix(diff, "\n")))
	} else {
		s.say("%s\n", s.diff(diff))
	}
	if !d.yes {
		ok, err := s.yes(ctx, fmt.Sprintf("Approve this edit of %s by %s?", short(p.LetterID, shortID), plain(p.By)), false)
		if err != nil || !ok {
			s.tell("nothing was changed\n")
			return errors.Join(err, endError(cli.Failed))
		}
	}
	p, err = s.sys.Book.Approve(ctx, id, diff, s.settings.DeskLease, by)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if !s.asJSON {
		s.toldProposal(p)
	}
	if !p.Retry {
		e, err := s.entry(ctx, p.LetterID)
		if err != nil {
			return err
		}
		return s.tellFates([]fate{{ID: p.LetterID, Result: "edited", State: string(e.State), ended: true}})
	}
	return s.follow(ctx, []fate{{ID: p.LetterID, Result: "retried", State: string(ledger.Processing)}}, d.wait, d.detach)
}

// propose writes an edit down for a second person, and says who has to do what.
func (s *session) propose(ctx context.Context, draft ledger.Draft, by ledger.Actor) error {
	p, err := s.sys.Book.Propose(ctx, draft, by)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if s.asJSON {
		s.toldProposal(p)
		return nil
	}
	s.say("proposal %d: it changes %s of dead letter %s, and nothing is changed until another person approves it\n", p.ID, strings.Join(p.Members, ", "), s.id(p.LetterID))
	s.say("it expires %s. Another person looks at it and approves or rejects it, with a database login of their own:\n", stamped(p.ExpiresAt))
	s.say("  docket dlq proposals %[1]d\n  docket dlq approve %[1]d --operator NAME --reason '...'\n  docket dlq reject %[1]d --operator NAME --reason '...'\n", p.ID)
	return nil
}

func (s *session) completeProposals(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return s.suggest(func(ctx context.Context, _ string) ([]string, error) {
		if len(args) > 0 {
			return nil, nil
		}
		list, err := s.sys.Book.ListProposals(ctx, false, suggested)
		var out []string
		for _, p := range list {
			out = append(out, fmt.Sprintf("%d\t%s", p.ID, plain(short(p.LetterID, shortID)+" "+strings.Join(p.Members, ", ")+" by "+p.By)))
		}
		return out, err
	})(c, args, begun)
}
