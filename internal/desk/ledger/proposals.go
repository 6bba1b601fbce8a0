package ledger

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Evidence returns the members of a decision that only two persons can change: one proposes the edit, another
// approves it.
func Evidence() []string { return []string{"decision_id", "timestamp", "path", "result", "input"} }

// ProposalState is the state of a proposal.
type ProposalState string

// The states of a proposal. Nobody decided on one in the last two.
const (
	ProposalOpen     ProposalState = "OPEN"
	ProposalApproved ProposalState = "APPROVED" // the edit was made
	ProposalRejected ProposalState = "REJECTED"
	ProposalExpired  ProposalState = "EXPIRED" // nobody approved it in 7 days
	ProposalVoid     ProposalState = "VOID"    // its letter has another value or state by now
)

// Proposal is an edit that needs a second person. It is removed with its letter; the audit stays.
type Proposal struct {
	ID        int64
	LetterID  string
	State     ProposalState
	Members   []string // the changed ones of [Evidence]
	Retry     bool     // approval also retries the letter
	Value     []byte   // the new one, if one proposal is read; it may contain personal data
	By        string
	Why       string
	Vouched   bool   // a desk verified By; else a program claimed it, and Login counts
	Login     string // of the database session
	CreatedAt time.Time
	ExpiresAt time.Time
	// Decided says who approved or rejected it, when and why; At is zero before.
	Decided Decided
}

// Decided is the decision on a proposal.
type Decided struct {
	By, Why, Login string
	At             time.Time
}

// ProposalQuery chooses proposals. The zero value chooses the open ones.
type ProposalQuery struct {
	All      bool   // also those that were decided, have expired or are void
	LetterID string // whole; empty: of all letters
	Before   int64  // only those with a lower number; 0: all
}

// Draft is a proposed edit.
type Draft struct {
	LetterID      string
	Before, Value []byte // Before is the value that its author saw
	Retry         bool
}

// SecondPersonError says that the edit needs a second person. Nothing was changed.
type SecondPersonError struct{ ID string }

func (e *SecondPersonError) Error() string {
	return fmt.Sprintf("a second person has to approve this edit of %.12s", e.ID)
}

// Because is the reason why a proposal was not approved or not made.
type Because string

// The reasons.
const (
	BecauseEnded    Because = "open"    // it was approved or rejected before
	BecauseExpired  Because = "expired" // it is older than 7 days
	BecauseVoid     Because = "void"    // the letter has another value or state
	BecauseName     Because = "name"    // its author's name approves it
	BecauseLogin    Because = "login"   // its author's database login approves it
	BecauseOtherWay Because = "way"     // its author used the API and this person a database login, or the other way round
)

// ProposalError says that a proposal was not approved or not made. Nothing was changed.
type ProposalError struct {
	ID      int64 // 0: it was not made
	Because Because
	Of      string // of an edit; else rule or job
}

func (e *ProposalError) Error() string {
	text := map[Because]string{
		BecauseEnded:    "it was approved or rejected before",
		BecauseExpired:  "it has expired",
		BecauseVoid:     "the dead letter has changed since",
		BecauseName:     "you proposed it, and another person has to approve it",
		BecauseLogin:    "it was proposed with this database login, and another person has to approve it",
		BecauseOtherWay: "a token and a database login can be one person, and nothing tells",
	}[e.Because]
	if e.ID == 0 {
		return "nothing was proposed: " + text
	}
	of := e.Of
	if of == "" {
		of = "proposal"
	}
	return fmt.Sprintf("%s %d is not approved: %s", of, e.ID, text)
}

// Hint returns advice.
func (e *ProposalError) Hint() string {
	if e.Of != "" && (e.Because == BecauseEnded || e.Because == BecauseName || e.Because == BecauseExpired) {
		return map[string]string{"rule": "`docket dlq rules list --all` shows it; `docket dlq rules remove` withdraws it", "job": "`docket jobs show` shows it; `docket jobs stop` withdraws it"}[e.Of]
	}
	return map[Because]string{
		BecauseEnded:    "`docket dlq proposals --all` shows by whom",
		BecauseExpired:  "propose the edit again",
		BecauseVoid:     "look at the dead letter, then propose the edit again",
		BecauseName:     "`docket dlq reject` withdraws it",
		BecauseLogin:    "use a database login for each person, or the API of a desk with a token for each",
		BecauseOtherWay: "approve it in the way in which it was proposed: by the API, or by the command line with a login of your own",
	}[e.Because]
}

// SamePerson reports whether two names can be those of one person, as the function
// dead_letters_same_person does. The database decides by that one.
func SamePerson(one, other string) bool {
	a, oidcA := person(one)
	b, oidcB := person(other)
	if oidcA == oidcB || strings.Contains(a, "@") && strings.Contains(b, "@") {
		return a == b
	}
	a, _, _ = strings.Cut(a, "@")
	b, _, _ = strings.Cut(b, "@")
	return a == b
}

func person(name string) (bare string, byProvider bool) {
	bare, byProvider = strings.CutPrefix(strings.ToLower(strings.Trim(name, " ")), "oidc:")
	return strings.TrimLeft(bare, " "), byProvider
}

// Proposals are edits by two persons. Every step is a line in the audit.
type Proposals interface {
	// Touched returns the members of [Evidence] that another value of a letter would change, in any of its decisions.
	// These are all members if one of the values is unreadable. second reports whether they need a second person.
	Touched(ctx context.Context, id string, value []byte) (members []string, second bool, err error)
	// Propose adds a proposal to edit a PENDING or FAILED letter.
	Propose(ctx context.Context, d Draft, by Actor) (Proposal, error)
	// Approve makes the proposed edit, and retries the letter in the same transaction if that is proposed. The
	// proposer cannot approve. With [Actor].Vouched the names are compared, otherwise the database logins too. diff
	// is the diff that by saw, for the audit.
	Approve(ctx context.Context, id int64, diff string, lease time.Duration, by Actor) (Proposal, error)
	// Reject ends a proposal without an edit. Its author may reject it too.
	Reject(ctx context.Context, id int64, by Actor) (Proposal, error)
	// Proposal returns one proposal with its value.
	Proposal(ctx context.Context, id int64) (Proposal, error)
	// ListProposals lists the newest n proposals that a query chooses.
	ListProposals(ctx context.Context, q ProposalQuery, n int) ([]Proposal, error)
}
