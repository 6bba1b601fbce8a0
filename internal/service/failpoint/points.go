package failpoint

// Point is a place in the life of a record at which something can be made to happen.
type Point string

// The points, in the order in which a record reaches them. "Before" and "after" are meant literally: the acts before the
// point are done, and the acts after it have not begun. Bytes that were sent may or may not have arrived.
const (
	Polled              Point = "polled"                 // records were taken over from the client
	Parsed              Point = "parsed"                 // a batch was read; the first write of it is about to begin
	TxBegun             Point = "tx-begun"               // BEGIN was sent, no row
	RowsSent            Point = "rows-sent"              // the insert was sent
	CommitSent          Point = "commit-sent"            // COMMIT was sent
	CommitAcked         Point = "commit-acked"           // the answer to COMMIT came, nobody has read it
	Stored              Point = "stored"                 // a write returned, its decisions have no home in the books yet
	FirstPause          Point = "first-pause"            // in the pause before the second try of a batch
	SecondPause         Point = "second-pause"           // in the pause before the third
	Classified          Point = "classified"             // the failure of a batch was judged; the first probe is about to begin
	ProbeOpen           Point = "probe-open"             // the probe's row was taken and not rolled back
	HalfStored          Point = "half-stored"            // a part of a batch that failed as a whole is stored
	Holding             Point = "holding"                // a partition began to hold
	DLQSent             Point = "dlq-sent"               // a dead letter was sent
	DLQAcked            Point = "dlq-acked"              // its answer came, nobody has read it
	ParkingSent         Point = "parking-sent"           // the same for the parking topic, in the consumer
	ParkingPartlyAcked  Point = "parking-partly-acked"   // of the records to park the first half was answered, the others were not sent
	ParkingAcked        Point = "parking-acked"          // see parking-sent
	SpoolTmpCreated     Point = "spool-tmp-created"      // the data file is there under its temporary name, empty
	SpoolTmpHalfWritten Point = "spool-tmp-half-written" // half of its bytes were written
	SpoolTmpSynced      Point = "spool-tmp-synced"       // it was synced
	SpoolMetaWritten    Point = "spool-meta-written"     // the meta was written and synced under its temporary name
	SpoolMetaRenamed    Point = "spool-meta-renamed"     // the meta has its name, the data has not
	SpoolRenamed        Point = "spool-renamed"          // the data has its name, the directory was not synced
	SpoolDirSynced      Point = "spool-dir-synced"       // the directory was synced; from here on it is a home
	Settled             Point = "settled"                // every decision of a batch has its home, the commit is about to begin
	OffsetCommitSent    Point = "offset-commit-sent"     // the commit of an offset was sent
	OffsetCommitAcked   Point = "offset-commit-acked"    // its answer came, nobody has read it
	Revoking            Point = "revoking"               // a partition is being given up to another member, the callback waits for its batch
	Losing              Point = "losing"                 // a partition was lost
	Draining            Point = "draining"               // the program stops and waits for the batch in hand
	SpoolFilePublished  Point = "spool-file-published"   // recovery: the lines of a file were acknowledged, it is about to be deleted
	SpoolFileUnlinked   Point = "spool-file-unlinked"    // recovery: the data file was deleted, the directory was not synced
	ReplayStored        Point = "replay-stored"          // replayer: a write returned, the parking offset is not committed
	ReParkedSent        Point = "re-parked-sent"         // replayer: a record was sent to the parking topic again
	ReParked            Point = "re-parked"              // replayer: the answer to that came, the parking offset is not committed
	ParkingDLQSent      Point = "parking-dlq-sent"       // replayer: a record that it gave up was sent
	ParkingDLQAcked     Point = "parking-dlq-acked"      // replayer: the answer to that came, the parking offset is not committed
)

// Description describes a point.
type Description struct {
	Point Point
	K     int    // number in the catalogue of faults, 0 where it is not in there
	Where string // the part that is wrapped
	Fails bool   // the action error is possible
}

const (
	atSource    = "the assignment"
	atDatabase  = "the database's port"
	atPublisher = "the publisher's port"
	onPostgres  = "the connection to Postgres"
	onKafka     = "a connection to Kafka"
	onDisk      = "the spool's file system"
)

// Table lists every point there is.
func Table() []Description {
	return []Description{
		{Polled, 1, atSource, false},
		{Parsed, 2, atDatabase, true},
		{TxBegun, 3, onPostgres, true},
		{RowsSent, 4, onPostgres, true},
		{CommitSent, 5, onPostgres, true},
		{CommitAcked, 6, onPostgres, true},
		{Stored, 6, atDatabase, true},
		{FirstPause, 7, atDatabase, false},
		{SecondPause, 8, atDatabase, false},
		{Classified, 9, atDatabase, true},
		{ProbeOpen, 10, onPostgres, true},
		{HalfStored, 11, atDatabase, true},
		{Holding, 0, atSource, false},
		{DLQSent, 12, onKafka, true},
		{DLQAcked, 13, onKafka, true},
		{ParkingSent, 12, onKafka, true},
		{ParkingPartlyAcked, 14, atPublisher, true},
		{ParkingAcked, 13, onKafka, true},
		{SpoolTmpCreated, 15, onDisk, true},
		{SpoolTmpHalfWritten, 16, onDisk, true},
		{SpoolTmpSynced, 17, onDisk, true},
		{SpoolMetaWritten, 20, onDisk, true},
		{SpoolMetaRenamed, 20, onDisk, true},
		{SpoolRenamed, 18, onDisk, true},
		{SpoolDirSynced, 19, onDisk, true},
		{Settled, 0, atSource, true},
		{OffsetCommitSent, 21, onKafka, true},
		{OffsetCommitAcked, 22, onKafka, true},
		{Revoking, 23, atSource, false},
		{Losing, 23, atSource, false},
		{Draining, 24, atSource, false},
		{SpoolFilePublished, 25, onDisk, true},
		{SpoolFileUnlinked, 26, onDisk, true},
		{ReplayStored, 27, atDatabase, true},
		{ReParkedSent, 28, onKafka, true},
		{ReParked, 28, onKafka, true},
		{ParkingDLQSent, 29, onKafka, true},
		{ParkingDLQAcked, 29, onKafka, true},
	}
}

func describe(name string) (Description, bool) {
	for _, p := range Table() {
		if string(p.Point) == name {
			return p, true
		}
	}
	return Description{}, false
}
