package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/home"
)

// ErrNotOurs is returned by a commit if its partition is no longer ours, or if the records were settled under another
// assignment. It is final: the next owner reads the uncommitted records again.
var ErrNotOurs = errors.New("the partition is not ours")

// ErrLeaving ends a wait for records because the partition is being given up or the program stops.
var ErrLeaving = errors.New("the partition is being given up")

// Assignment is one partition for as long as it is assigned. After the partition was lost and won again, a new
// Assignment with a new [home.Account] begins, once the handler of the old one has returned.
//
// Take, Ready and Fetch are for one goroutine. Everything else is safe for concurrent use.
type Assignment struct {
	session   *session
	topic     string
	partition int32
	account   *home.Account
	member    string // the group member that it was assigned to; it fences zombies

	ctx     context.Context // of the handler; cancelled when the partition is lost
	cancel  context.CancelFunc
	leaving context.Context
	leave   context.CancelFunc
	done    chan struct{} // the handler has returned

	gathered bool          // Ready gathered the batch that Fetch takes next
	fetched  time.Time     // Fetch took the last batch then; zero before the first
	pace     time.Duration // in which manyRecords came, at the last batch
	carried  time.Duration // from the last batch but one to the next call of Ready

	commits chan struct{} // holds the single right to commit

	mu        sync.Mutex
	dead      bool // nothing may be committed any more
	queue     []*kgo.Record
	taken     []stamp // records that were taken and are not committed, in offset order
	bytes     int64
	since     time.Time        // when the oldest queued record came, or later if some before it were taken
	arrived   chan struct{}    // closed and replaced when records come
	full      bool             // the queue was full and has not drained to half since
	promised  bool             // Ready promised a batch
	asked     bool             // the handler waits for a first record
	rewind    *kgo.EpochOffset // offset from which dropped records are read again; nil: none were dropped
	dated     int64            // one past the offset of the record that due is of; 0: none
	due       time.Time        // when that record is due, by SourceConfig's Due
	inHand    int64            // bytes of the batch that Fetch took last, until the next call, or of the records that Take took
	lent      int64            // bytes of it that are in slabs
	reserved  int64            // bytes of it that are promised to the next batch
	keeps     bool             // an uncompressed answer may be kept in memory by records in hand
	holds     int
	finished  bool       // the handler returned and the partition is still assigned
	faulty    *partFault // nil when well
	position  int64      // one past the last polled offset, -1 before any
	start     int64      // the group's committed offset at the start, -1 if none
	committed int64      // last committed here or found at the start, -1 if none
	epoch     int32      // the leader's, of committed
	tried     int64      // the last offset of which a commit was sent; -1: none
	noted     string     // the note beside committed
	doubt     bool       // a commit of an earlier offset, for its note, had no answer
	end       int64      // one past the last readable offset, as last reported; -1 before that
}

// partFault is a fault of a partition, and the pause before it is read again.
type partFault struct {
	err      *FaultError
	resting  bool      // paused until next
	next     time.Time // resting: when to read again; else: when silence counts as healthy
	failures int
	final    bool // until a new assignment
}

func newAssignment(base context.Context, s *session, topic string, partition int32, member string) *Assignment {
	a := &Assignment{
		session: s, topic: topic, partition: partition, member: member,
		account: home.NewAccount(topic, partition),
		done:    make(chan struct{}), commits: make(chan struct{}, 1), arrived: make(chan struct{}),
		position: -1, start: -1, committed: -1, tried: -1, end: -1,
	}
	a.ctx, a.cancel = context.WithCancel(base)
	a.leaving, a.leave = context.WithCancel(a.ctx)
	return a
}

// Topic is the partition's topic.
func (a *Assignment) Topic() string { return a.topic }

// Partition is the partition's number.
func (a *Assignment) Partition() int32 { return a.partition }

// Account returns the account of this assignment's offsets.
func (a *Assignment) Account() *home.Account { return a.account }

// Leaving is done when the partition is being given up or the program stops. The batch in hand may be finished and
// committed within SourceConfig.Drain, but without pauses. It is also done when the partition is lost.
func (a *Assignment) Leaving() context.Context { return a.leaving }

// Fetch takes the next batch within the limits of SourceConfig and enters it in the account. It waits for the first
// record. It returns ErrLeaving or the context's error if there is no batch.
func (a *Assignment) Fetch(ctx context.Context) (*home.Batch, error) {
	if !a.gathered {
		if err := a.Ready(ctx); err != nil {
			return nil, err
		}
	}
	a.gathered = false
	sc := a.session.source.sc
	if _, err := a.gather(ctx, sc.BatchRecords, sc.BatchBytes, 0); err != nil {
		return nil, err
	}
	first := time.Time{}
	records, most, err := a.pop(func() (int, int64) {
		first = a.since
		return a.grant(sc.BatchRecords, sc.BatchBytes)
	})
	if err != nil {
		return nil, err
	}
	a.account.Enter(records...)
	a.paced(len(records), first)
	b := a.account.Batch(records)
	b.Limit(most)
	return b, nil
}

// Ready waits until there is a batch for Fetch, which then gathers no more. It takes nothing. The call says that the
// batch before is done. If a record is too large beside those in hand, Ready waits here, before the caller takes its
// turn.
func (a *Assignment) Ready(ctx context.Context) error {
	a.finishTaken()
	sc := a.session.source.sc
	wait := a.patience()
	for {
		if _, err := a.gather(ctx, sc.BatchRecords, sc.BatchBytes, wait); err != nil {
			return err
		}
		freed, until, ok := a.promise()
		if ok {
			a.gathered = true
			return nil
		}
		a.awaitFreed(ctx, freed, until)
	}
}

// promise keeps the queue from being dropped until Fetch took a batch from it, and memory for it. If the next record has to
// wait for memory, freed is closed when some may be free. At the time until, if that is not zero, it need not wait any more.
func (a *Assignment) promise() (freed <-chan struct{}, until time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 { // dropped since
		return closed, time.Time{}, false
	}
	until = a.tooSoon()
	h := &a.session.hand
	h.mu.Lock()
	defer h.mu.Unlock()
	if freed = a.session.crowded(a, !until.IsZero()); freed != nil {
		return freed, until, false
	}
	a.promised = true
	a.reserve()
	return nil, time.Time{}, true
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// manyRecords make a batch whose own cost is small beside that of its records.
const manyRecords = 100

// patience returns how long the next batch waits for more records. It is called once for each batch. The wait is the
// time in which manyRecords come at the pace of the last batch, within these bounds:
//
//   - A fifth of the batch wait is the least, and all that the first batch waits.
//   - Twice the time of carrying a batch, the shorter of the last two, is the least, too. So a slow database gets
//     large batches, and a single slow write does not make the next batch late as well.
//   - The most is the batch wait without the time of carrying the last batch, up to a quarter. So the first record is
//     home in about the batch wait.
func (a *Assignment) patience() time.Duration {
	wait := a.session.source.sc.BatchWait
	least := wait / 5
	if a.fetched.IsZero() {
		return least
	}
	carried := time.Since(a.fetched)
	needed := max(a.pace, 2*min(carried, a.carried))
	a.carried = carried
	return max(least, min(needed, wait-min(carried, wait/4)))
}

// paced notes at which pace the n records of a batch came: since the batch before or, if there was none, since the
// first of them came.
func (a *Assignment) paced(n int, first time.Time) {
	from := a.fetched
	if from.IsZero() {
		from = first
	}
	a.fetched = time.Now()
	a.pace = min(a.fetched.Sub(from), time.Hour) * manyRecords / time.Duration(max(n, 1))
}

// Take returns the next records of the partition in offset order: at least one, and at most as many records and bytes
// as given. A larger first record comes alone. It gathers for at most wait after the first record, and waits for
// memory if others have too much in hand. Taken records count until [Assignment.Done].
//
// If ctx ends, Take returns ctx's error. If the partition is given up, it returns ErrLeaving. Then no record is
// taken.
func (a *Assignment) Take(ctx context.Context, records int, bytes int64, wait time.Duration) ([]*kgo.Record, error) {
	for {
		if _, err := a.gather(ctx, records, bytes, wait); err != nil {
			return nil, err
		}
		var freed <-chan struct{}
		var until time.Time
		taken, _, err := a.pop(func() (n int, most int64) {
			n, most, freed, until = a.offer(records, bytes)
			return n, most
		})
		if err != nil || len(taken) > 0 {
			return taken, err
		}
		if freed != nil {
			a.awaitFreed(ctx, freed, until)
		}
	}
}

// Hold stops fetching for this partition until release is called. The program stays a member of the group. Holds are
// counted; each release counts once.
func (a *Assignment) Hold() (release func()) {
	a.hold(1)
	return sync.OnceFunc(func() { a.hold(-1) })
}

func (a *Assignment) hold(n int) {
	a.mu.Lock()
	a.holds += n
	a.mu.Unlock()
	a.session.flow(a)
}

// paused reports whether the client must not fetch the partition.
func (a *Assignment) paused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full || a.holds > 0 || a.finished || a.dead || (a.faulty != nil && a.faulty.resting) || a.rewind != nil
}

// kill ends the assignment. After it returns nothing is committed, and the handler's context is done.
func (a *Assignment) kill() {
	a.cancel() // ends a running commit
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.commits <- struct{}{}
	<-a.commits
	a.finishTaken()
	a.mu.Lock()
	a.empty()
	a.taken = nil
	a.mu.Unlock()
}
