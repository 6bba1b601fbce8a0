package ledger

import (
	"context"
	"fmt"
	"time"
)

// Limits of snoozes and rules.
const (
	// LongestHold is how long a snooze or a rule may hold.
	LongestHold = 366 * 24 * time.Hour
	// MostActs is how many letters a rule may move.
	MostActs = 1_000_000
	// DefaultActs and DefaultFailures are those of a rule that does not say.
	DefaultActs     = 1000
	DefaultFailures = 5
	// LongestName limits the name of a person who is assigned, in bytes.
	LongestName = 64
)

// Rule is a standing order for the dead letters of one fingerprint. Only its state and its counters change.
type Rule struct {
	ID          int64
	Fingerprint string
	Topic       string // original; empty: each
	Act         Act    // Snoozed, Retried or Closed
	// After is how long a letter waits since it last changed. Rate is in letters a second; 0: no limit.
	After time.Duration
	Rate  float64
	// Most is how many letters it may move in all. Failures is after how many failed retries in a row it stops.
	Most     int64
	Failures int
	State    RuleState
	By, Why  string
	Vouched  bool   // a desk verified By
	Login    string // of the database session
	// CreatedAt and EndsAt are by the database's clock.
	CreatedAt, EndsAt time.Time
	Approved          Decided // zero: it needed nobody, or nobody did
	Acted             int64   // letters that it moved
	ActedAt           time.Time
	Ended             Decided // by a person, or by the rule itself
}

// Actor returns the author of what the rule does, as the audit has it.
func (r Rule) Actor() Actor {
	return Actor{Name: fmt.Sprintf("rule %d of %s", r.ID, r.By), Why: r.Why, Rule: r.ID}
}

// RuleState is the state of a rule.
type RuleState string

// The states of a rule.
const (
	RuleProposed RuleState = "PROPOSED" // it waits for a second person
	RuleActive   RuleState = "ACTIVE"
	RuleOver     RuleState = "OVER"    // its time has passed
	RuleStopped  RuleState = "STOPPED" // it stopped itself
	RuleRemoved  RuleState = "REMOVED" // a person removed it
)

// Snoozing chooses letters by whether they are snoozed.
type Snoozing string

// The choices. A letter is snoozed while its own snooze or that of its group holds, unless it is RESOLVED.
const (
	SnoozedToo  Snoozing = ""
	NotSnoozed  Snoozing = "no"
	OnlySnoozed Snoozing = "only"
)

// Nobody chooses letters that nobody is assigned to.
const Nobody = "-"

// GroupEvent is one line of a group's history. Lines are never changed or removed.
type GroupEvent struct {
	ID       int64
	At       time.Time
	Act      string // assigned, snoozed, rule_added, rule_proposed, rule_approved, rule_stopped or rule_removed
	Rule     int64  // 0: none
	By, Why  string
	Login    string // of the database session
	Program  string // its application_name
	FromHost string // its address
}

// Mark is a place in the order in which a rule looks at letters: by first failure, then by id. The zero value is before
// all of them.
type Mark struct {
	FirstFailed time.Time
	LetterID    string
}

// Turn says how far one turn of a rule may go.
type Turn struct {
	After Mark          // it looks at letters behind this place
	Look  int           // at so many of them
	Move  int           // and moves so many of these
	Lease time.Duration // of a retry
}

// Acting is the result of one turn of a rule.
type Acting struct {
	Moved   int
	Stopped string // why it stopped itself; empty: it did not
	// Next is where the next turn looks on. It is zero after the last letter. It stays where it was while letters before
	// the end of this look may be due.
	Next Mark
	More bool // another turn may move letters at once
}

// Cases are the acts by which people look after letters, and rules. Every change is in the audit.
type Cases interface {
	// Assign assigns a letter, or a group by its whole fingerprint, to a person. An empty name assigns nobody.
	Assign(ctx context.Context, id, to string, by Actor) error
	AssignGroup(ctx context.Context, fingerprint, to string, by Actor) error
	// Snooze hides PENDING and FAILED letters until a time. The zero time ends their own snooze. A group is snoozed by a
	// [Rule].
	Snooze(ctx context.Context, ids []string, until time.Time, by Actor) ([]Outcome, error)
	// Reopen moves letters that a person or a rule closed back to PENDING. Those that are stored or in an archive stay.
	Reopen(ctx context.Context, ids []string, by Actor) ([]Outcome, error)
	// Snoozed counts the letters that are snoozed and not resolved.
	Snoozed(ctx context.Context) (int64, error)
	// AddRule adds a rule. The caller sets Fingerprint, Topic, Act, After, Rate, Most, Failures and EndsAt. A snooze
	// takes the place of the one before. Another rule of the same group and topic is a [*RuleExistsError].
	AddRule(ctx context.Context, r Rule, by Actor) (Rule, error)
	// ApproveRule approves a rule that another person made. A [*ProposalError] says why not.
	ApproveRule(ctx context.Context, id int64, by Actor) (Rule, error)
	// RemoveRule ends a rule. One that ended before stays as it is.
	RemoveRule(ctx context.Context, id int64, by Actor) (Rule, error)
	// Rules lists the newest n rules of a fingerprint, or of all: those that hold or wait, or all.
	Rules(ctx context.Context, fingerprint string, all bool, n int) ([]Rule, error)
	// ActRule does one turn of a rule: it moves letters, each once for one failure, in one transaction.
	ActRule(ctx context.Context, id int64, t Turn) (Acting, error)
	// GroupHistory returns the newest n lines of a group, newest first.
	GroupHistory(ctx context.Context, fingerprint string, n int) ([]GroupEvent, error)
	// ApproveJob approves a job that another person made, so that a desk takes it.
	ApproveJob(ctx context.Context, id int64, by Actor) (Job, error)
}

// RuleExistsError says that the group and topic have such a rule. Nothing was changed.
type RuleExistsError struct{ ID int64 }

func (e *RuleExistsError) Error() string {
	return fmt.Sprintf("rule %d holds for this group and topic already; remove it first", e.ID)
}

// Validate returns a [*InvalidError] for the first invalid field of a new rule, at the present time.
func (r Rule) Validate(now time.Time) error {
	problem := func(field, text string) error { return &InvalidError{Field: field, Problem: text} }
	switch {
	case r.Act != Snoozed && r.Act != Retried && r.Act != Closed:
		return problem("act", "a rule snoozes, retries or resolves")
	case len(r.Fingerprint) != FingerprintLength:
		return problem("fingerprint", "give the whole fingerprint of a group")
	case len(r.Topic) > 249:
		return problem("topic", "no topic has such a long name")
	case r.After < 0 || r.After > LongestHold:
		return problem("after", "give a duration up to 366 days")
	case !(r.Rate >= 0) || r.Rate > 1e6: // NaN is neither
		return problem("rate", "give letters a second, 0 for no limit")
	case r.Act != Snoozed && (r.Most < 1 || r.Most > MostActs):
		return problem("most", "give 1 to 1,000,000 letters")
	case r.Act != Snoozed && (r.Failures < 1 || r.Failures > 1000):
		return problem("failures", "give 1 to 1,000 failed retries")
	}
	return Holdable(r.EndsAt, now)
}

// Holdable returns a [*InvalidError] if nothing may hold until that time.
func Holdable(until, now time.Time) error {
	if !until.After(now) || until.Sub(now) > LongestHold {
		return &InvalidError{Field: "until", Problem: "give a time in the future, at most 366 days from now"}
	}
	return nil
}
