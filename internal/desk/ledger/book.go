package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that a caller decides by.
var (
	// ErrNotFound says that there is no such dead letter or job.
	ErrNotFound = errors.New("not in the ledger")
	// ErrAmbiguous says that the first characters of an id fit more than one.
	ErrAmbiguous = errors.New("more than one id starts with it; give more characters")
	// ErrLost says that a lease has another owner now.
	ErrLost = errors.New("it has another owner now")
)

// AmbiguousError is an [ErrAmbiguous] with the first whole ids that fit.
type AmbiguousError struct{ IDs []string }

func (*AmbiguousError) Error() string { return ErrAmbiguous.Error() }

// Is reports whether target is [ErrAmbiguous].
func (*AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// RefusedError says that the state of a dead letter does not allow the request. Nothing was changed.
type RefusedError struct {
	ID    string
	State State
	Act   Act
	By    string // the last operator or program that moved it
	At    time.Time
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%.12s is %s since %s, by %s", e.ID, e.State, e.At.UTC().Format(time.RFC3339), e.By)
}

// Outcome is the result for one of several dead letters: Err is nil, [ErrNotFound] or a [*RefusedError].
type Outcome struct {
	ID  string
	Err error
}

// EnteredCount is the result of entering letters.
type EnteredCount struct {
	New       int     // new rows
	Known     int     // delivered or sent again: nothing changed
	DeadAgain int     // retries that ended dead
	Left      int     // not entered, because their clients exceeded the hourly limit; a range says that they are in Kafka
	Groups    []Group // fingerprints never seen before, with their message and one path
}

// Intake takes records of the dead-letter topics.
type Intake interface {
	// Enter enters letters in one transaction. It may be repeated with the same letters at any time. A letter whose
	// id is known, even if it was removed, changes nothing.
	//
	// A letter can be the end of a retry: it carries the retry's mark, or has the place where the retry was
	// published. With the value of the retry it adds one attempt. The letter becomes PENDING, or FAILED once attempts
	// reach maxAttempts. A second copy of the same retry changes nothing. With another value it is one of several
	// decisions of the retried record: a dead letter of its own, with that Parent.
	//
	// If the ledger limits its growth, a client's letters beyond the hourly limit are not entered, by the ledger's
	// clock. They are in a [Surplus] once Enter returns. Letters without a Parent count, in the order of their place
	// in the topic.
	Enter(ctx context.Context, letters []Letter, maxAttempts int, by Actor) (EnteredCount, error)
}

// Decider changes letters for people and for the schedule. Every change is one transaction with its audit.
type Decider interface {
	// Retry moves PENDING and FAILED letters to PROCESSING, each with its row in the outbox, for the lease.
	Retry(ctx context.Context, ids []string, lease time.Duration, by Actor) ([]Outcome, error)
	// RetryMatching does the same for at most n letters that match filter, oldest failure first. Their state is
	// PENDING or FAILED, and filter.States can limit it further. They were last moved before the given time, and were
	// not touched by the job of by. It returns the ids of the outbox rows. Fewer than n mean that there are no more.
	RetryMatching(ctx context.Context, filter Filter, before time.Time, n int, lease time.Duration, by Actor) ([]int64, error)
	// Resolve moves PENDING and FAILED letters to RESOLVED. by.Why is the note.
	Resolve(ctx context.Context, ids []string, by Actor) ([]Outcome, error)
	// ResolveMatching resolves the letters that RetryMatching would retry. It returns how many it moved.
	ResolveMatching(ctx context.Context, filter Filter, before time.Time, n int, by Actor) (int, error)
	// Edit gives a PENDING or FAILED letter another value, and keeps the old value and the diff in the audit. If its value is
	// neither seen nor the new one, an [*EditedError] says so, and nothing is changed; an empty seen is not compared. With a
	// lease above 0 it also retries the letter in the same transaction. A [*SecondPersonError] says that it needs a
	// proposal.
	Edit(ctx context.Context, id string, seen Version, value []byte, diff string, lease time.Duration, by Actor) error
}

// Placed is the place of a published record.
type Placed struct {
	SendingID int64
	Partition int32
	Offset    int64
}

// Relay is the outbox, for its publishers.
type Relay interface {
	// Claim takes at most n due rows for the lease, in the order in which they were written. Rows of one key keep
	// their order. The later is not claimed while another holder has the earlier, or while the earlier waits for its
	// next try.
	Claim(ctx context.Context, holder string, n int, lease time.Duration) ([]Sending, error)
	// Published notes acknowledged records, even if holder has lost its claim, because the record is in the topic.
	// The letter's lease lasts for extend from now.
	Published(ctx context.Context, holder string, placed []Placed, extend time.Duration) error
	// Unpublished notes that the broker did not take a row. It is due again after pause. With giveUp the letter
	// becomes FAILED with code. ErrLost: holder has lost the row, and nothing was noted.
	Unpublished(ctx context.Context, holder string, id int64, code string, pause time.Duration, giveUp bool) error
}

// Awaited is a retry that was published and has not ended. It may also be one that was given up and could still be in
// its topic.
type Awaited struct {
	Sending
	State    State // of its letter
	Children []int // indexes of its decisions that have become dead letters of their own
	Looks    int   // how often it was looked for
}

// Possible names a dead letter that a published retry becomes if it dies. Index is [envelope.NoIndex] for its whole
// record. Else only the decision at that place of the record becomes the letter.
type Possible struct {
	SendingID int64
	LetterID  string // by the place where the retry was published, and the value that was sent
	Index     int
}

// Watch tracks how retries end.
type Watch interface {
	// Awaited lists at most n retries that are due to be looked for.
	Awaited(ctx context.Context, n int) ([]Awaited, error)
	// Stored ends retries, and those of the same letters with the same value, as stored. The letters become RESOLVED.
	// why says for each id where the row is, in one line. A retry published with another value is not ended.
	Stored(ctx context.Context, ids []int64, why []string, by Actor) error
	// Overtaken ends retries whose dead letters entered before their places were noted. It returns how many.
	// [Intake.Enter] could not know such a letter for a retry if it came without a mark. Possible letters that are
	// not in the ledger mean nothing. A whole record ends its retry as in Enter, and the letter stays one of its own.
	// A part is noted as a dead letter of its own.
	Overtaken(ctx context.Context, possible []Possible, maxAttempts int, by Actor) (ended int, err error)
	// LookAgain postpones the next look.
	LookAgain(ctx context.Context, ids []int64, after time.Duration) error
}

// Upkeep has the regular tasks.
type Upkeep interface {
	// EndLeases returns letters with an expired lease to PENDING, some thousands at a time, and withdraws their
	// unpublished retries. It returns how many.
	EndLeases(ctx context.Context, by Actor) (int, error)
	// Remove removes at most n letters that were resolved before the given time, and returns how many. Their audit
	// stays. A letter that a person closed may be the only copy of a decision. It stays until an archive has it,
	// unless it has no value.
	Remove(ctx context.Context, resolvedBefore time.Time, n int, by Actor) (int, error)
	// Unarchived counts the letters resolved before the given time that stay because no archive has them.
	Unarchived(ctx context.Context, resolvedBefore time.Time) (int64, error)
	// Compact sums up the counter rows.
	Compact(ctx context.Context) error
	// Duty takes a duty that at most one desk does at a time, unless it was done within every. The holder has it for
	// lease; with 0 it gives the duty back, which is not done. DutyDone notes that it was done now.
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
	DutyDone(ctx context.Context, name, holder string) error
	// Desks lists the holders that renewed the duty "desk:<holder>" within the given time.
	Desks(ctx context.Context, within time.Duration) ([]string, error)
	// Remembered and Remember read and write a small text under a name, such as the last report to a channel.
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
	Remember(ctx context.Context, name, text string) error
}

// Reader reads the ledger.
type Reader interface {
	List(ctx context.Context, f Filter, p Page) (List, error)
	// Show finds a letter by its id, or by its first characters, at least 6, with its payload.
	Show(ctx context.Context, id string) (Entry, error)
	// Claims returns the letters whose value claims a decision_id, at most n, newest failure first, without payloads.
	Claims(ctx context.Context, decisionID string, n int) ([]Entry, error)
	// History returns the audit of a letter, oldest first, and its retries. It also works for removed letters.
	History(ctx context.Context, id string) ([]Audit, []Sending, error)
	// Values passes the matching letters with payloads to each, in portions of at most n, by id, until each returns
	// an error.
	Values(ctx context.Context, f Filter, n, limit int, each func([]Entry) error) error
	Groups(ctx context.Context, f Filter) ([]Group, error)
	Counts(ctx context.Context, f Filter) (map[State]int64, error)
	Report(ctx context.Context) ([]ReportLine, error)
	// OldestFound returns the earliest Kafka timestamp of unresolved letters, by dead-letter topic.
	OldestFound(ctx context.Context) (map[string]time.Time, error)
}

// Job is work on many dead letters.
type Job struct {
	ID        int64
	Act       Act // Retried or Closed
	Filter    Filter
	Rate      float64 // letters a second; 0: no limit
	Limit     int64   // 0: no limit
	State     JobState
	Operator  string
	Reason    string
	Matched   int64 // when the job was created
	Sent      int64 // moved by the job so far
	Stored    int64
	Dead      int64
	Refused   int64
	CreatedAt time.Time
	StartedAt time.Time // zero: not yet
	EndedAt   time.Time // zero: not yet
	Note      string    // its present activity, or why it stopped
	StoppedBy string
	Owner     string
	// Vouched says that a desk verified Operator. ApprovedBy is the second person of a job that needs one; empty: none.
	Vouched    bool
	ApprovedBy string
}

// Open returns how many of its retries have not ended.
func (j Job) Open() int64 { return j.Sent - j.Stored - j.Dead - j.Refused }

// JobState is the state of a job.
type JobState string

// The states of a job.
const (
	JobProposed JobState = "PROPOSED" // it waits for a second person
	JobWaiting  JobState = "WAITING"  // until a desk takes it
	JobRunning  JobState = "RUNNING"
	JobStopped  JobState = "STOPPED" // by a person or by itself; it can be resumed
	JobDone     JobState = "DONE"
)

// Jobs manages jobs.
type Jobs interface {
	// CreateJob adds a job; a desk takes it later. The caller sets Act, Filter, Rate, Limit, Operator and Reason.
	CreateJob(ctx context.Context, j Job) (Job, error)
	Job(ctx context.Context, id int64) (Job, error)
	// ListJobs lists the newest n of those with a number below before; 0: of all.
	ListJobs(ctx context.Context, before int64, n int) ([]Job, error)
	// StopJob stops a job that is WAITING or RUNNING. Its desk sees that at its next step.
	StopJob(ctx context.Context, id int64, why string, by Actor) (Job, error)
	// ResumeJob makes a STOPPED job WAITING again, and adds the operator and why to its reason.
	ResumeJob(ctx context.Context, id int64, by Actor) (Job, error)
	// TakeJob takes a job that is WAITING, or RUNNING with an expired lease. ErrNotFound: there is none.
	TakeJob(ctx context.Context, holder string, lease time.Duration) (Job, error)
	// KeepJob renews the lease, writes the note and returns the job. ErrLost: holder has lost it, or it was stopped.
	KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (Job, error)
	// EndJob ends a job as DONE or STOPPED, with a note.
	EndJob(ctx context.Context, id int64, holder string, state JobState, note string) error
	// FirstEnds returns the outcomes and codes of the n retries of the job that ended first.
	FirstEnds(ctx context.Context, id int64, n int) ([]Sending, error)
}

// Book is the whole ledger.
type Book interface {
	Intake
	Growth
	Decider
	Proposals
	Relay
	Watch
	Marker
	Upkeep
	Reader
	Jobs
	Cases
}
