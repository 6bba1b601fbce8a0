package verify

import (
	"io/fs"
	"time"

	"docket/internal/record/home"
)

// Evidence is a system as it was read once. It must be read in this order: Committed, Spool, Replayed, the parking
// topic, the dead-letter topic, the parking dead-letter topic, Rows. Records move only in this direction. So a moving
// record is seen at least once, and the evidence is sound while the system works.
type Evidence struct {
	// At is the time when the reading began.
	At time.Time
	// Live says that the table and its constraints may have been repaired since the records were judged. A finding
	// that this can explain is a warning, not a violation. The same holds for records that an earlier release
	// refused.
	Live bool
	// Settled says that all faults are over, the source is stopped and the wait is over.
	Settled bool

	// Committed (CO) has the committed offsets of the source topics; a partition without a commit is missing. With
	// lanes there are several source topics, each with the offsets of its own group.
	Committed Offsets
	// Ends are the log ends of the source topics, read after Committed; nil if they were not read.
	Ends Offsets
	// Spool (SP) is the content of the directories; nil if none was read. Records of the valid files are in
	// Forwarded.
	Spool []SpoolDir
	// Replayed (CR) has the committed offsets of the replayer in the parking topic by partition. A parked record is a
	// home only at or above them.
	Replayed map[int32]int64
	// Forwarded are the records in the spool, the parking topic, the dead-letter topic and the parking dead-letter
	// topic. They come in this order, and by offset in a partition.
	Forwarded []Forwarded
	// Rows (T) are rows of the table: all if AllRows is true, else those with an identity in Truth.
	Rows    []Row
	AllRows bool
	// Unequal are the decisions of Truth whose payload differs, as JSON, from the row with their identity, according
	// to the server. Rows that have their Raw are compared here and need no entry.
	Unequal []Place
	// Forgotten are decisions of Truth without a row whose archived day was given up on purpose. Nothing tells whether
	// they had a row.
	Forgotten []Place
	// Standby says that Rows and Books are of a standby of Postgres, which may be behind. Only the things that it
	// has are proof.
	Standby bool
	// Tried has the results of inserting forwarded decisions alone, by dead-letter id.
	Tried map[string]Trial

	// Books is the evidence from the ledger; nil if it was not read. It is read last.
	Books *Books

	// Metrics are the series of each process, by its name or URL; nil if none was read.
	Metrics map[string]Metrics
}

// Row is a row of the table.
type Row struct {
	Place
	ID       string
	Time     time.Time
	StoredAt time.Time // zero if it was not read
	Raw      []byte    // the payload if it was read; nil if the server compared it
}

// Forwarded is a record that was found in one of Docket's topics or in the spool.
type Forwarded struct {
	Place               // its origin by its headers
	Home      home.Home // Parked, DeadLetter, Exhausted or Spooled
	Found     string    // the topic or the spooled file
	At        Position  // its place in that topic; zero in the spool
	To        string    // its destination topic
	Kind      string    // x-failure-kind
	Code      string    // x-failure-code
	Message   string    // x-failure-message, without text of the server
	ID        string    // x-dead-letter-id
	Entry     string    // of a dead letter: its id in the ledger, which differs if x-dead-letter-id is missing or invalid
	By        string    // x-consumer: the process that forwarded it
	Client    string    // the proven uploader, or empty
	AnyClient bool      // its client is not proven, so it may be anyone's
	RetryOf   string    // the mark of its retry, or empty
	Attempt   int       // x-retry-attempt
	NotBefore time.Time // zero: due now
	FailedAt  time.Time // x-failed-at
	Stamp     time.Time // Kafka timestamp
	Key       Sum
	Value     Sum
	NoOrigin  bool // its headers name no origin
	Unproven  bool // its headers are not proven; then NoOrigin, too
	Unplaced  bool // refused before it came to Kafka: partition and offset are NoPlace
	WrongID   bool // its dead-letter id does not match its origin and value
	Whole     bool // it is part of a dead letter of a whole record, which has several decisions today
	Settled   bool // parked, and below Replayed: it has another home, or it is lost
}

// Position is the place of a record in a topic.
type Position struct {
	Partition int32
	Offset    int64
}

// SpoolDir is the content of one spool directory.
type SpoolDir struct {
	Dir   string
	Mode  fs.FileMode // of the directory
	Files []SpoolFile // all entries except the lock; those of corrupt/ have that prefix
}

// SpoolFile is one entry of a spool directory.
type SpoolFile struct {
	Name     string
	Mode     fs.FileMode
	Modified time.Time
	Lines    int    // of a readable data file
	Broken   string // the fault of a data file, without its content, or empty
}

// Trial is the result of inserting a decision alone and rolling it back.
type Trial struct {
	Stored bool   // the table would store it today
	Code   string // else the code of its refusal
	Class  string // and the class of that code, as in errclass
}

// Metrics are series as in /metrics, `name{labels}`, with their values.
type Metrics map[string]float64
