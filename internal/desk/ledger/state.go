package ledger

import "slices"

// State is the state of a dead letter. The values are those of the table and of all outputs.
type State string

// The states.
const (
	// Pending waits for a decision by a person, or for the scheduled retry if its failure can pass with time.
	Pending State = "PENDING"
	// Processing is being retried: it has a row in the outbox, or its record is on its way through the consumer.
	Processing State = "PROCESSING"
	// Failed has used up its retries, or could not be published. Only a person can move it.
	Failed State = "FAILED"
	// Resolved is done: it is stored, or a person closed it with a reason.
	Resolved State = "RESOLVED"
)

// States returns all states in the order of a dead letter's life.
func States() []State { return []State{Pending, Processing, Failed, Resolved} }

// Act is the act that moved a dead letter, as in the audit.
type Act string

// The acts. Each is done by one function, in [Intake], [Decider], [Proposals], [Relay], [Watch], [Upkeep] and [Cases].
const (
	Entered    Act = "entered"     // it was read from a dead-letter topic
	Retried    Act = "retried"     // it is to be put back on its original topic
	Died       Act = "died"        // the retried record is dead again
	Stored     Act = "stored"      // the retried record has its row
	Refused    Act = "refused"     // Kafka did not take the retried record
	LeaseEnded Act = "lease_ended" // the retry's lease ended without news
	Closed     Act = "closed"      // a person resolved it
	Edited     Act = "edited"      // a person changed the payload; the state stays
	Removed    Act = "removed"     // it was resolved long ago
	Archived   Act = "archived"    // an archive has it, or no longer has it; the state stays
	Restored   Act = "restored"    // it was removed, and came back from an archive
	Changed    Act = "changed"     // a change outside the other acts; the state stays
	Proposed   Act = "proposed"    // a person proposed an edit for a second one; the state stays
	Approved   Act = "approved"    // a second person approved, and the next line is the edit; the state stays
	Rejected   Act = "rejected"    // a person ended a proposal; the state stays
	Reopened   Act = "reopened"    // a person says that a closed one is not done
	Assigned   Act = "assigned"    // somebody looks after it, or nobody any more; the state stays
	Snoozed    Act = "snoozed"     // it is hidden until a time, or no longer; the state stays
)

// Move is a legal transition.
type Move struct {
	From, To State // empty From: it enters; empty To: it leaves
	Act      Act
}

// Moves lists every legal transition. The database refuses all others.
func Moves() []Move {
	return []Move{
		{"", Pending, Entered},
		{Pending, Processing, Retried},
		{Failed, Processing, Retried},
		{Processing, Pending, Died},
		{Processing, Failed, Died},
		{Pending, Failed, Died}, // of a retry whose lease had ended
		{Processing, Failed, Refused},
		{Processing, Pending, LeaseEnded},
		{Processing, Resolved, Stored},
		{Pending, Resolved, Stored}, // of a retry whose lease had ended
		{Failed, Resolved, Stored},
		{Pending, Resolved, Closed},
		{Failed, Resolved, Closed},
		{Resolved, "", Removed},
		{Resolved, Pending, Reopened},
		{"", Resolved, Restored},
	}
}

// Legal reports whether a move is in [Moves].
func Legal(from, to State, by Act) bool { return slices.Contains(Moves(), Move{from, to, by}) }
