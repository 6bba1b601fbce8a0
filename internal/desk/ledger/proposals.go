package ledger

import (
	"context"
	"fmt"
	"time"
)

// Evidence are the members of a decision that two persons change: one proposes the edit, another approves it.
func Evidence() []string { return []string{"decision_id", "timestamp", "path", "result", "input"} }

// ProposalState is what became of a proposal.
type ProposalState string

// The states of a proposal. The last two are those of one that nobody decided.
const (
	ProposalOpen     ProposalState = "OPEN"
	ProposalApproved ProposalState = "APPROVED" // and the edit was made
	ProposalRejected ProposalState = "REJECTED"
	ProposalExpired  ProposalState = "EXPIRED" // nobody approved it in 7 days
	ProposalVoid     ProposalState = "VOID"    // the value or the state of its letter is another by now
)

// Proposal is an edit that needs a second person. It goes with its letter; the audit of that stays.
type Proposal struct {
	ID        int64
	LetterID  string
	State     ProposalState
	Members   []string // of [Evidence] that it changes
	Retry     bool     // the letter is retried once it is approved
	Value     []byte   // the new one, where one proposal is asked for; personal data may be in it
	By        string
	Why       string
	Vouched   bool   // By was named by a desk, which knows who that is; else it is what a program said, and Login counts
	Login     string // of the session
	CreatedAt time.Time
	ExpiresAt time.Time
	// Decided is who approved or rejected it, when and why; At zero: nobody has.
	Decided Decided
}

// Decided is who decided on a proposal.
type Decided struct {
	By, Why, Login string
	At             time.Time
}

// Draft is an edit as somebody proposes it.
type Draft struct {
	LetterID      string
	Before, Value []byte // Before is the value that its author saw
	Retry         bool
}

// SecondPersonError says that an edit changes what one person may not change alone. Nothing was changed.
type SecondPersonError struct{ ID string }

func (e *SecondPersonError) Error() string {
	return fmt.Sprintf("a second person has to approve this edit of %.12s", e.ID)
}

// Because is why a proposal was not approved or not made.
type Because string

// The reasons.
const (
	BecauseEnded    Because = "open"    // it was approved or rejected before
	BecauseExpired  Because = "expired" // it is older than 7 days
	BecauseVoid     Because = "void"    // the value or the state of the letter is another
	BecauseName     Because = "name"    // the name of its author approves
	BecauseLogin    Because = "login"   // the database login of its author approves
	BecauseOtherWay Because = "way"     // its author came by the API and this person by a database login, or the other way round
)

// ProposalError says that a proposal was not approved or not made. Nothing was changed.
type ProposalError struct {
	ID      int64 // 0: it was not made
	Because Because
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
	return fmt.Sprintf("proposal %d is not approved: %s", e.ID, text)
}

// Hint says what to do about it.
func (e *ProposalError) Hint() string {
	return map[Because]string{
		BecauseEnded:    "`docket dlq proposals --all` shows by whom",
		BecauseExpired:  "propose the edit again",
		BecauseVoid:     "look at the dead letter, then propose the edit again",
		BecauseName:     "`docket dlq reject` withdraws it",
		BecauseLogin:    "use a database login for each person, or the API of a desk with a token for each",
		BecauseOtherWay: "approve it in the way in which it was proposed: by the API, or by the command line with a login of your own",
	}[e.Because]
}

// Proposals are edits by two persons. Every step has its line in the audit.
type Proposals interface {
	// Touched are the members of [Evidence] that another value of a letter would change, in any of its decisions: all of them where one of the
	// two values cannot be read. second says whether a second person is asked for that.
	Touched(ctx context.Context, id string, value []byte) (members []string, second bool, err error)
	// Propose writes down an edit of a PENDING or FAILED letter for a second person.
	Propose(ctx context.Context, d Draft, by Actor) (Proposal, error)
	// Approve makes the edit of a proposal, and retries the letter in the same transaction where that is proposed. The proposer cannot approve:
	// with [Actor].Vouched the names are held against each other, else the database logins as well. diff is what by saw, for the audit.
	Approve(ctx context.Context, id int64, diff string, lease time.Duration, by Actor) (Proposal, error)
	// Reject ends a proposal without an edit. Its author may do so, too.
	Reject(ctx context.Context, id int64, by Actor) (Proposal, error)
	// Proposal shows one, with its value.
	Proposal(ctx context.Context, id int64) (Proposal, error)
	// ListProposals lists the newest n: those that are open, or all.
	ListProposals(ctx context.Context, all bool, n int) ([]Proposal, error)
}
