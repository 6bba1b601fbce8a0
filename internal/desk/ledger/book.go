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
	// ErrLost says that what was leased has another owner now.
	ErrLost = errors.New("somebody else has it now")
)

// RefusedError says that a dead letter is not in a state for what was asked. Nothing was changed.
type RefusedError struct {
	ID    string
	State State
	Act   Act
	By    string // who moved it last
	At    time.Time
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%.12s is %s since %s, by %s", e.ID, e.State, e.At.UTC().Format(time.RFC3339), e.By)
}

// Outcome is what became of one of several dead letters that something was asked for: Err is nil, [ErrNotFound] or a
// [*RefusedError].
type Outcome struct {
	ID  string
	Err error
}

// EnteredCount is what became of letters that were entered.
type EnteredCount struct {
	New       int     // rows that were not there
	Known     int     // delivered or sent again: nothing changed
	DeadAgain int     // retries that ended dead
	Left      int     // not entered: their clients brought too many in this hour, and their range says that they are in Kafka
	Groups    []Group // fingerprints that were never seen before, with their message and one path
}

// Intake takes what is read from the dead-letter topics.
type Intake interface {
	// Enter enters letters in one transaction. It may be repeated with the same letters at any time. A letter of an id
	// that is there, or was there and is removed, changes nothing, whatever its state. A letter that carries the mark of a retry, or stands for the record
	// at the place where a retry was published, is that retry's end where its value is the one that was retried: attempts + 1, and
	// PENDING, or FAILED once attempts has reached maxAttempts; a second copy of the same retry changes nothing. Where its value is another
	// it is one of several decisions of the retried record: a dead letter of its own, with that Parent.
	// Where the ledger bounds its growth, what a client brings beyond that in an hour, by the ledger's clock, is not entered: it is in a [Surplus] once this returns.
	// Letters without a Parent count, by the order of their place in the topic.
	Enter(ctx context.Context, letters []Letter, maxAttempts int, by Actor) (EnteredCount, error)
}

// Decider is what people, and the schedule, decide. Every change is one transaction with its audit.
type Decider interface {
	// Retry moves PENDING and FAILED letters to PROCESSING, each with its row in the outbox, for the lease.
	Retry(ctx context.Context, ids []string, lease time.Duration, by Actor) ([]Outcome, error)
	// RetryMatching does so with at most n letters that filter chooses, are PENDING or FAILED (or only those of
	// filter.States among these), last moved before the given time, and were not touched by the job of by; oldest failure
	// first. It returns the outbox rows' ids; fewer than n: there are no more.
	RetryMatching(ctx context.Context, filter Filter, before time.Time, n int, lease time.Duration, by Actor) ([]int64, error)
	// Resolve moves PENDING and FAILED letters to RESOLVED. by.Why is the note.
	Resolve(ctx context.Context, ids []string, by Actor) ([]Outcome, error)
	// ResolveMatching is to Resolve what RetryMatching is to Retry; it returns how many it moved.
	ResolveMatching(ctx context.Context, filter Filter, before time.Time, n int, by Actor) (int, error)
	// Edit gives a PENDING or FAILED letter another value, keeps the one before and the diff in the audit, and, where it
	// was to be retried as well (lease above 0), retries it in the same transaction. A [*SecondPersonError] says that it needs a proposal.
	Edit(ctx context.Context, id string, value []byte, diff string, lease time.Duration, by Actor) error
}

// Placed is where the broker put a record.
type Placed struct {
	SendingID int64
	Partition int32
	Offset    int64
}

// Relay is the outbox, as whoever publishes it sees it.
type Relay interface {
	// Claim takes at most n rows that are due, for as long as lease, in the order in which they were written. Of two
	// rows with one key the later is never claimed while the earlier is claimed by somebody else or waits to be tried again.
	Claim(ctx context.Context, holder string, n int, lease time.Duration) ([]Sending, error)
	// Published notes what the broker has. Rows that are not claimed by holder any more are noted all the same: the record
	// is in the topic. extend is how long from now the letter's lease lasts.
	Published(ctx context.Context, holder string, placed []Placed, extend time.Duration) error
	// Unpublished notes that the broker did not take a row: it is due again after pause, or, where giveUp is said, the
	// letter is FAILED for code. ErrLost: the row is not holder's any more, and nothing was noted.
	Unpublished(ctx context.Context, holder string, id int64, code string, pause time.Duration, giveUp bool) error
}

// Awaited is a retry that was published and has not ended, or one that was given up and may be in its topic all the same.
type Awaited struct {
	Sending
	State    State // of its letter
	Children []int // places of decisions of it that are dead letters of their own by now
	Looks    int   // how often it was looked for
}

// Watch learns how retries end.
type Watch interface {
	// Awaited lists at most n that are due to be looked for.
	Awaited(ctx context.Context, n int) ([]Awaited, error)
	// Stored ends retries, and those of the same letters with the same value: the letters are RESOLVED. why says where the row is,
	// one line for each id. A retry that was published with another value has an end of its own.
	Stored(ctx context.Context, ids []int64, why []string, by Actor) error
	// LookAgain puts off the next look.
	LookAgain(ctx context.Context, ids []int64, after time.Duration) error
}

// Upkeep is what has to be done now and then.
type Upkeep interface {
	// EndLeases returns letters whose lease ended to PENDING, some thousands at a time, and withdraws what was not published of
	// them. It says how many.
	EndLeases(ctx context.Context, by Actor) (int, error)
	// Remove removes at most n letters that were resolved before the given time; their audit stays. It says how many. One that a person
	// closed may be the only copy of a decision: it stays until an archive has it, unless it has no value.
	Remove(ctx context.Context, resolvedBefore time.Time, n int, by Actor) (int, error)
	// Unarchived is how many letters that were resolved before the given time stay because no archive has them.
	Unarchived(ctx context.Context, resolvedBefore time.Time) (int64, error)
	// Compact sums up the counters.
	Compact(ctx context.Context) error
	// Duty takes a duty that at most one desk does at a time, where it was not done within every; it is the holder's for
	// lease. done notes that it was done now. alive tells others that holder is there.
	Duty(ctx context.Context, name, holder string, every, lease time.Duration) (mine bool, err error)
	DutyDone(ctx context.Context, name, holder string) error
	// Desks lists who renewed the duty "desk:<holder>" within the given time.
	Desks(ctx context.Context, within time.Duration) ([]string, error)
	// Remembered and Remember keep a small text under a name, as what was last told to whom.
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
	Remember(ctx context.Context, name, text string) error
}

// Reader looks.
type Reader interface {
	List(ctx context.Context, f Filter, p Page) (List, error)
	// Show finds a letter by its id, or by its first characters, at least 6, with its payload.
	Show(ctx context.Context, id string) (Entry, error)
	// Claims gives the letters whose value claims a decision_id, at most n, newest failure first, without payloads.
	Claims(ctx context.Context, decisionID string, n int) ([]Entry, error)
	// History is the audit of a letter, oldest first, and its retries. It works for letters that were removed, too.
	History(ctx context.Context, id string) ([]Audit, []Sending, error)
	// Values gives the letters that filter chooses in portions of at most n, by id, with payloads, until each returns an error.
	Values(ctx context.Context, f Filter, n, limit int, each func([]Entry) error) error
	Groups(ctx context.Context, f Filter) ([]Group, error)
	Counts(ctx context.Context, f Filter) (map[State]int64, error)
	Report(ctx context.Context) ([]ReportLine, error)
	// OldestFound is the earliest Kafka timestamp of unresolved letters, by dead-letter topic.
	OldestFound(ctx context.Context) (map[string]time.Time, error)
}

// Job is work on many dead letters.
type Job struct {
	ID        int64
	Act       Act // Retried or Closed
	Filter    Filter
	Rate      float64 // letters a second; 0: as fast as it goes
	Limit     int64   // 0: none
	State     JobState
	Operator  string
	Reason    string
	Matched   int64 // when it was made
	Sent      int64 // moved by it so far
	Stored    int64
	Dead      int64
	Refused   int64
	CreatedAt time.Time
	StartedAt time.Time // zero: not yet
	EndedAt   time.Time // zero: not yet
	Note      string    // what it is doing, or why it stopped
	StoppedBy string
	Owner     string
}

// Open is how many retries of it have not ended.
func (j Job) Open() int64 { return j.Sent - j.Stored - j.Dead - j.Refused }

// JobState is where a job stands.
type JobState string

// The states of a job.
const (
	JobWaiting JobState = "WAITING" // for a desk to take it
	JobRunning JobState = "RUNNING"
	JobStopped JobState = "STOPPED" // by a person or by itself; it can be resumed
	JobDone    JobState = "DONE"
)

// Jobs is work on many.
type Jobs interface {
	// CreateJob writes a job down; a desk takes it. Act, Filter, Rate, Limit, Operator and Reason are the caller's.
	CreateJob(ctx context.Context, j Job) (Job, error)
	Job(ctx context.Context, id int64) (Job, error)
	// ListJobs lists the newest n.
	ListJobs(ctx context.Context, n int) ([]Job, error)
	// StopJob stops one that is WAITING or RUNNING: whoever works on it sees that at its next step.
	StopJob(ctx context.Context, id int64, why string, by Actor) (Job, error)
	// ResumeJob makes a STOPPED one WAITING again. Who resumed it and why is added to its reason.
	ResumeJob(ctx context.Context, id int64, by Actor) (Job, error)
	// TakeJob takes one that is WAITING, or RUNNING with an owner whose lease ended; ErrNotFound: there is none.
	TakeJob(ctx context.Context, holder string, lease time.Duration) (Job, error)
	// KeepJob renews the lease, writes down the note and returns the job as it stands; ErrLost: it is not holder's any more, or it was stopped.
	KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (Job, error)
	// EndJob ends it, DONE or STOPPED, with a note.
	EndJob(ctx context.Context, id int64, holder string, state JobState, note string) error
	// FirstEnds are the outcomes and codes of the job's n retries that ended first.
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
}
