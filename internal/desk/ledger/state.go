package ledger

import "slices"

// State is where a dead letter stands. The values are those of the table and of everything that is shown.
type State string

// The states.
const (
	// Pending waits for a decision: of a person, or of the scheduled retry where time can heal it.
	Pending State = "PENDING"
	// Processing is being retried: it has a row in the outbox, or its record is on its way through the consumer.
	Processing State = "PROCESSING"
	// Failed was retried as often as is allowed, or could not be published. Only a person moves it on.
	Failed State = "FAILED"
	// Resolved needs nothing any more: it is stored, or a person said why not.
	Resolved State = "RESOLVED"
)

// States lists all states in the order of a dead letter's life.
func States() []State { return []State{Pending, Processing, Failed, Resolved} }

// Act is what moved a dead letter, as the audit has it.
type Act string

// The acts. Each is done by one function, in [Intake], [Decider], [Proposals], [Relay], [Watch] and [Upkeep].
const (
	Entered    Act = "entered"     // it was read from a dead-letter topic
	Retried    Act = "retried"     // it is to be put back on its original topic
	Died       Act = "died"        // the retried record is dead again
	Stored     Act = "stored"      // the retried record has its row
	Refused    Act = "refused"     // Kafka did not take the retried record
	LeaseEnded Act = "lease_ended" // nothing was heard of the retry for too long
	Closed     Act = "closed"      // a person resolved it
	Edited     Act = "edited"      // a person changed the payload; the state stays
	Removed    Act = "removed"     // it was resolved long ago
	Archived   Act = "archived"    // an archive has it, or none any more; the state stays
	Restored   Act = "restored"    // it was removed, and came back from an archive
	Changed    Act = "changed"     // somebody changed what no other act changes; the state stays
	Proposed   Act = "proposed"    // a person wants to change the payload, and a second one is to look; the state stays
	Approved   Act = "approved"    // a second person did, and the next line is the edit; the state stays
	Rejected   Act = "rejected"    // a person ended a proposal; the state stays
)

// Move is a legal transition.
type Move struct {
	From, To State // From empty: it enters; To empty: it leaves
	Act      Act
}

// Moves lists every legal transition. The database refuses all others, whoever asks for them.
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
		{"", Resolved, Restored},
	}
}

// Legal says whether there is such a move.
func Legal(from, to State, by Act) bool { return slices.Contains(Moves(), Move{from, to, by}) }
