package verify

import (
	"time"

	"docket/internal/record/home"
)

// History has the events of a watched run: of the simulation, or of a campaign on real parts. Every field may be
// empty. An invariant that needs it is then undecided. All lists are in order of time.
type History struct {
	Seed  string // the argument to repeat the run
	Build string // the git hash of the build

	Commits   []Commit
	Attempts  []Attempt
	Cancels   []Cancel
	Publishes []Publish
	Carries   []Carry
	Faults    []Fault
	Heals     []time.Time
	Kills     []Kill
	Processes []Process
	// Homeless are the times of the checks whether everything is settled; see I14.
	Settled time.Time // when I7 first held; zero: never
	// Claims are answers that said until when they are complete. Moved are forwarded records that are in no topic any
	// more, or only in the evidence of an earlier time.
	Claims []Claim
	// Stored has when rows were stored, for rows without their StoredAt.
	Stored  map[Place]time.Time
	Moved   []Forwarded
	Backlog int     // decisions without a home when the last fault ended
	Rate    float64 // decisions a second that a healthy system stores; 0: not known

	// Pauses are those of the retry law; nil: 1 s and 2 s.
	Pauses []time.Duration
	// RebalanceTimeout is that of the group; 0: not known.
	RebalanceTimeout time.Duration

	// Reference is the evidence of a run of the same input without faults.
	Reference *Evidence

	// Texts are all outputs: logs, metrics, error bodies, traces, headers.
	Texts []Text
	// Markers are secrets and pieces of payloads that were planted and must be in none of the texts.
	Markers []string
}

// Outcome is how a call ended for its caller.
type Outcome uint8

// The outcomes.
const (
	Succeeded Outcome = iota + 1
	Failed
	Unknown // the answer was lost: it may have taken effect
)

// Commit is one offset commit for one partition.
type Commit struct {
	At        time.Time
	Process   string
	Group     string
	Topic     string
	TopicID   string // another id is another log; empty if it never changes
	Partition int32
	Offset    int64
	End       int64 // log end at that moment; -1: not known
	Lowest    int64 // lowest offset without a home at that moment, else the log end; -1: not known
	Outcome   Outcome
}

// Attempt is one try to store a whole batch, before a search for bad records.
type Attempt struct {
	Process string
	Batch   string // the same for all tries of one batch
	Begun   time.Time
	Ended   time.Time
	Outcome Outcome
	Code    string // if it failed
}

// Cancel says that a batch had to be given up from then on: its partition was revoked or the process was stopped.
type Cancel struct {
	At      time.Time
	Process string
	Batch   string
}

// Publish is one record sent to one of Docket's topics.
type Publish struct {
	At      time.Time
	Process string
	Batch   string    // the batch of the record
	Begun   time.Time // time of the poll of the batch; zero: not known
	Home    home.Home // Parked, DeadLetter or Exhausted
	ID      string    // dead-letter id
	Outcome Outcome
}

// Carry is one batch from poll to release.
type Carry struct {
	Process   string
	Partition int32
	Polled    time.Time
	Released  time.Time
}

// Kinds of faults that explain a failed commit.
const (
	FaultStop    = "stop"    // SIGSTOP: a process that continues as a zombie
	FaultNetwork = "network" // between a process and the brokers
	FaultBroker  = "broker"  // a broker killed or paused, a leader or a coordinator moved
)

// Fault is one injected fault.
type Fault struct {
	From, To time.Time // To zero: it never ended
	Kind     string    // one of the Fault constants, or any other name
	Name     string    // for people
	Systemic bool      // it makes the database refuse every row
	Code     string    // SQLSTATE that it causes, or empty
	Alone    bool      // the database had no other fault meanwhile, so nothing may be parked
	Signals  []string  // expected signals: series of /metrics or words of the log
	Raised   []string  // those of Signals that were seen
}

// Kill is a planned end of a process.
type Kill struct {
	At      time.Time
	Process string
	Point   string // failpoint, or empty for a random moment
}

// Process is one life of a process.
type Process struct {
	Name   string
	Began  time.Time
	Ended  time.Time // zero: it is still running
	Exit   int       // exit code if it ended
	Before Facts
	After  Facts
}

// Facts are the resources of an idle process; 0 means not known.
type Facts struct {
	RSS        int64 // bytes
	FDs        int
	Goroutines int
	Conns      int // to the database and to brokers
}

// Text is one output.
type Text struct {
	Name string // its place
	Body string
}
