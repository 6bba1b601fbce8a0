package verify

import (
	"time"

	"docket/internal/record/home"
)

// History is what happened in a run that was watched: by the simulation, or by the campaign on real parts. Every field
// may be empty; what cannot be decided without it is reported so. All lists are in order of time.
type History struct {
	Seed  string // how to run it again, as it is typed
	Build string // which build was run: a git hash

	Commits   []Commit
	Attempts  []Attempt
	Cancels   []Cancel
	Publishes []Publish
	Carries   []Carry
	Faults    []Fault
	Heals     []time.Time
	Kills     []Kill
	Processes []Process
	// Homeless are the times at which it was looked at whether everything is settled; see I14.
	Settled time.Time // when I7 was first seen to hold; zero: never
	Backlog int       // decisions without a home at the last heal
	Rate    float64   // decisions a second that the system stores when it is well; 0: not known

	// Pauses are those of the retry law, 1 s and 2 s where nil.
	Pauses []time.Duration
	// RebalanceTimeout is what members may take; 0: not known.
	RebalanceTimeout time.Duration

	// Reference is what a run of the same input without faults left behind.
	Reference *Evidence

	// Texts are everything that was written or shown: logs, metrics, error bodies, traces, headers.
	Texts []Text
	// Markers are secrets and pieces of payloads that were planted and may be in none of the texts.
	Markers []string
}

// Outcome is how a call ended, as its caller knows it.
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
	TopicID   string // another id is another log; empty where it never changes
	Partition int32
	Offset    int64
	End       int64 // log end at that moment; -1 where it is not known
	Lowest    int64 // lowest offset without a home at that moment, the log end where all have one; -1 where it is not known
	Outcome   Outcome
}

// Attempt is one try to store a whole batch, before any search for bad records.
type Attempt struct {
	Process string
	Batch   string // the same for all tries of one batch
	Begun   time.Time
	Ended   time.Time
	Outcome Outcome
	Code    string // where it failed
}

// Cancel says that a batch was to be given up from then on: its partition was revoked or the process was stopped.
type Cancel struct {
	At      time.Time
	Process string
	Batch   string
}

// Publish is one record sent to a topic of ours.
type Publish struct {
	At      time.Time
	Process string
	Batch   string    // which it belongs to
	Begun   time.Time // when the batch was polled; zero where it is not known
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

// Kinds of faults that excuse a refused commit.
const (
	FaultStop    = "stop"    // SIGSTOP: a process that goes on as a zombie
	FaultNetwork = "network" // between a process and the brokers
	FaultBroker  = "broker"  // a broker killed or paused, a leader or a coordinator moved
)

// Fault is one injected fault.
type Fault struct {
	From, To time.Time // To zero: never healed
	Kind     string    // one of the Fault constants, or any other name
	Name     string    // for people
	Systemic bool      // it makes the database refuse every row
	Code     string    // SQLSTATE that it causes, where there is one
	Alone    bool      // nothing else was wrong with the database meanwhile, so that nothing may be parked either
	Signals  []string  // what it has to raise: series of /metrics or words of the log
	Raised   []string  // those of Signals that were seen
}

// Kill is the end of a process that the schedule brought about.
type Kill struct {
	At      time.Time
	Process string
	Point   string // failpoint, empty where it was at random
}

// Process is one life of a process.
type Process struct {
	Name   string
	Began  time.Time
	Ended  time.Time // zero: it is still there
	Exit   int       // where it ended
	Before Facts
	After  Facts
}

// Facts are what a process holds at a moment at rest; a field that is 0 is not known.
type Facts struct {
	RSS        int64 // bytes
	FDs        int
	Goroutines int
	Conns      int // to the database and to brokers
}

// Text is something that was written or shown.
type Text struct {
	Name string // where it was
	Body string
}
