package verify

import (
	"io/fs"
	"time"

	"docket/internal/record/home"
)

// Evidence is a system at one look. It has to be read in this order: Committed, Spool, Replayed, the parking topic, the
// dead-letter topic, the parking dead-letter topic, Rows. Records move that way only, so a record on the move is seen
// at least once and the look is sound while the system works.
type Evidence struct {
	// At is when the look began.
	At time.Time
	// Topic is the source.
	Topic string
	// Live says that the table and its constraints may have been mended since the records were judged; what a campaign
	// counts as broken for that reason alone is a warning here. So is what an earlier release refused and this one stores.
	Live bool
	// Settled says that all faults are healed, the source is stopped and the wait is over.
	Settled bool

	// Committed (CO) is the committed offset of the source by partition; a partition without a commit is not in it.
	Committed map[int32]int64
	// Ends are the log ends of the source, read after Committed; nil where they were not asked for.
	Ends map[int32]int64
	// Spool (SP) is what the directories held; nil where none was looked at. What the valid files hold is in Forwarded.
	Spool []SpoolDir
	// Replayed (CR) is the committed offset of the replayer in the parking topic by partition. A parked record is a home
	// only at or above it.
	Replayed map[int32]int64
	// Forwarded is what was found in the spool, the parking topic, the dead-letter topic and the parking dead-letter
	// topic, in this order and inside a topic's partition in order of offset.
	Forwarded []Forwarded
	// Rows (T) are rows of the table: all of them where AllRows is true, else those with an identity that Truth has.
	Rows    []Row
	AllRows bool
	// Unequal are the decisions of Truth whose payload is not, as JSON, that of the row with their identity. The server
	// decides that. Rows that carry their Raw are compared here and need no entry.
	Unequal []Place
	// Tried is what inserting a forwarded decision alone came to, by dead-letter id, where it was tried.
	Tried map[string]Trial

	// Books are what the ledger of dead letters holds; nil where it was not looked at. They are read last.
	Books *Books

	// Metrics are the series of each process that was asked, by its name or URL; nil where none was.
	Metrics map[string]Metrics
}

// Row is a row of the table.
type Row struct {
	Place
	ID       string
	Time     time.Time
	StoredAt time.Time // zero where it was not read
	Raw      []byte    // the payload, where the evidence has it; nil where the server was asked instead
}

// Forwarded is a record that was found in a topic of ours or in the spool.
type Forwarded struct {
	Place               // where its headers say that it was first read
	Home      home.Home // Parked, DeadLetter, Exhausted or Spooled
	Found     string    // the topic or the spooled file that it was found in
	At        Position  // where in that topic; zero in the spool
	To        string    // the topic that it goes to
	Kind      string    // x-failure-kind
	Code      string    // x-failure-code
	Message   string    // x-failure-message: words of ours
	ID        string    // x-dead-letter-id
	Entry     string    // of a dead letter: the id by which the desk enters it, which is another where x-dead-letter-id is missing or none
	By        string    // x-consumer: who forwarded it
	Client    string    // that uploaded it, where a key proves that; empty where none does
	AnyClient bool      // nothing proves whose it is, so it may be anybody's
	RetryOf   string    // the mark of the retry that it brings, empty where it brings none
	Attempt   int       // x-retry-attempt
	NotBefore time.Time // zero: due now
	FailedAt  time.Time // x-failed-at
	Stamp     time.Time // Kafka timestamp
	Key       Sum
	Value     Sum
	NoOrigin  bool // its headers do not say where it was first read
	Unproven  bool // nothing proves that its headers are ours: NoOrigin, too
	Unplaced  bool // refused before it came to Kafka: partition and offset are NoPlace
	WrongID   bool // its dead-letter id is not that of its origin and value
	Settled   bool // parked, and below Replayed: it has another home, or it is lost
}

// Position is where a record stands in a topic.
type Position struct {
	Partition int32
	Offset    int64
}

// SpoolDir is one spool directory as it was found.
type SpoolDir struct {
	Dir   string
	Mode  fs.FileMode // of the directory
	Files []SpoolFile // all entries but the lock, those of corrupt/ with that prefix
}

// SpoolFile is one entry of a spool directory.
type SpoolFile struct {
	Name     string
	Mode     fs.FileMode
	Modified time.Time
	Lines    int    // of a data file that could be read
	Broken   string // what is wrong with a data file, in words of ours; empty where nothing is
}

// Trial is what inserting a decision alone, and taking it back, came to.
type Trial struct {
	Stored bool   // the table would take it today
	Code   string // else the code it is refused with
	Class  string // and the class of that code, as errclass spells it
}

// Metrics are series as /metrics has them, `name{labels}`, with their values.
type Metrics map[string]float64
