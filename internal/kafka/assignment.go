package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
	"unsafe"

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

	gathered bool      // Ready gathered the batch that Fetch takes next
	fetched  time.Time // Fetch took the last batch then; zero before the first

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
	inHand    int64            // bytes of the batch that Fetch took last, until the next call, or of the records that Take took
	lent      int64            // bytes of it that are in slabs
	keeps     bool             // an uncompressed answer may be kept in memory by records in hand
	holds     int
	finished  bool       // the handler returned and the partition is still assigned
	faulty    *partFault // nil when well
	position  int64      // one past the last polled offset, -1 before any
	start     int64      // the group's committed offset at the start, -1 if none
	committed int64      // last committed here or found at the start, -1 if none
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
		position: -1, start: -1, committed: -1, end: -1,
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
	records, most, err := a.pop(func() (int, int64) { return a.grant(sc.BatchRecords, sc.BatchBytes) })
	if err != nil {
		return nil, err
	}
	a.account.Enter(records...)
	a.fetched = time.Now()
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
	for {
		if _, err := a.gather(ctx, sc.BatchRecords, sc.BatchBytes, a.patience()); err != nil {
			return err
		}
		freed, ok := a.promise()
		if ok {
			a.gathered = true
			return nil
		}
		select {
		case <-ctx.Done():
		case <-a.leaving.Done():
		case <-freed:
		}
	}
}

// promise keeps the queue from being dropped until Fetch took a batch from it. If the next record has to wait for
// memory, freed is closed when some may be free.
func (a *Assignment) promise() (freed <-chan struct{}, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.queue) == 0 { // dropped since
		return closed, false
	}
	if freed = a.session.crowded(a.queue[0], a.inHand); freed != nil {
		return freed, false
	}
	a.promised = true
	return nil, true
}

var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// patience returns how long the next batch waits for more records: the batch wait without the time of carrying the
// last batch. So the first record is home in about the batch wait. It is at least three quarters of the batch wait.
// Otherwise a slow database would get smaller batches.
func (a *Assignment) patience() time.Duration {
	wait := a.session.source.sc.BatchWait
	if a.fetched.IsZero() {
		return wait
	}
	return wait - min(time.Since(a.fetched), wait/4)
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
		taken, _, err := a.pop(func() (int, int64) {
			if len(a.queue) == 0 { // dropped since
				return 0, 0
			}
			if freed = a.session.crowded(a.queue[0], a.inHand); freed != nil {
				return 0, 0
			}
			return a.grant(records, bytes)
		})
		if err != nil || len(taken) > 0 {
			return taken, err
		}
		if freed == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-a.leaving.Done():
		case <-freed:
		}
	}
}

// gather waits as Take does and returns how many records there are to take. It stops waiting when the queue is full,
// because then no more come.
func (a *Assignment) gather(ctx context.Context, records int, bytes int64, wait time.Duration) (n int, err error) {
	var gathered <-chan time.Time
	for {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if a.leaving.Err() != nil {
			return 0, ErrLeaving
		}
		a.mu.Lock()
		n, reached := len(a.queue), false
		if n >= records || a.bytes >= bytes {
			n, reached = fit(a.queue, records, bytes)
		}
		reached = reached || n > 0 && a.full
		arrived, left := a.arrived, wait-time.Since(a.since)
		a.asked = n == 0
		a.mu.Unlock()
		if n > 0 && left <= 0 {
			return n, nil
		}
		if n > 0 && gathered == nil {
			timer := time.NewTimer(left)
			defer timer.Stop()
			gathered = timer.C
		}
		if reached {
			return n, nil
		}
		select {
		case <-ctx.Done():
		case <-a.leaving.Done():
		case <-arrived:
		case <-gathered:
			return n, nil
		}
	}
}

// fit returns how many records from the front of the queue make the next batch, and whether a limit was reached.
func fit(queue []*kgo.Record, records int, bytes int64) (n int, reached bool) {
	var sum int64
	for n < len(queue) && n < max(records, 1) {
		size := recordBytes(queue[n])
		if n > 0 && sum+size > bytes {
			return n, true
		}
		sum += size
		n++
	}
	return n, n > 0 && (n >= max(records, 1) || sum >= bytes)
}

// pop removes as many records as limit returns. It resumes the partition when the queue is half empty. It removes
// none if the partition was lost since. It calls limit with a.mu.
func (a *Assignment) pop(limit func() (n int, most int64)) (taken []*kgo.Record, most int64, err error) {
	a.mu.Lock()
	if a.dead {
		a.mu.Unlock()
		return nil, 0, ErrLeaving
	}
	a.promised = false
	n, most := limit()
	if n == 0 {
		a.mu.Unlock()
		return nil, most, nil
	}
	taken = slices.Clone(a.queue[:n])
	records, bytes := a.session.mark()
	a.shorten(n, bytes)
	a.count(taken, -1)
	for _, r := range taken {
		a.taken = append(a.taken, stamp{r.Offset, milli(r)})
	}
	a.copyOut(taken)
	a.since = time.Now()
	drained := a.full && len(a.queue) <= records/2 && a.bytes <= bytes/2
	if drained {
		a.full = false
	}
	a.mu.Unlock()
	if drained {
		a.session.flow(a)
	}
	a.session.taken.Add(1)
	return taken, most, nil
}

// arrayShare limits the array that an empty queue keeps: to this part of its share of the buffer.
const arrayShare = 16

// shorten takes the first n records off the queue. The array is reused, so taken records are cleared in it. A large
// array is freed when the queue is empty.
func (a *Assignment) shorten(n int, share int64) {
	if int64(cap(a.queue))*int64(unsafe.Sizeof(a.queue[0])) <= share/arrayShare {
		a.queue = slices.Delete(a.queue, 0, n)
		return
	}
	clear(a.queue[:n])
	if a.queue = a.queue[n:]; len(a.queue) == 0 {
		a.queue = nil
	}
}

// append queues polled records. It is called while the group cannot change. A gap in the offsets means that the log
// was cut and grew again. Then nothing of this assignment can be trusted any more.
func (a *Assignment) append(records []*kgo.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead || a.finished || len(records) == 0 {
		return nil
	}
	if a.rewind != nil { // records behind the dropped ones are read again after them
		recycle(records)
		return nil
	}
	before := len(a.queue)
	for _, r := range records {
		if r.Offset < a.position {
			return fmt.Errorf("offset %d came after %d", r.Offset, a.position-1)
		}
		a.position = r.Offset + 1
		a.account.Await(r)
		if r.Attrs.IsControl() {
			continue // a transaction marker has an offset and is not a record
		}
		if len(a.queue) == 0 {
			a.since = time.Now()
		}
		a.queue = append(a.queue, r)
	}
	a.count(a.queue[before:], 1)
	if most, bytes := a.session.mark(); len(a.queue) >= most || a.bytes >= bytes {
		a.full = true
	}
	if len(a.queue) > before {
		close(a.arrived)
		a.arrived = make(chan struct{})
	}
	return nil
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

// empty removes everything from the queue for good. The caller has a.mu.
func (a *Assignment) empty() {
	a.count(a.queue, -1)
	a.keep(false)
	a.queue = nil
}

// recordOverhead is the memory of a record besides its content, in bytes.
const recordOverhead = 256

// RecordBytes returns the approximate memory of a record in bytes.
func RecordBytes(r *kgo.Record) int64 { return recordBytes(r) }

func recordBytes(r *kgo.Record) int64 {
	n := recordOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += 48 + len(h.Key) + len(h.Value)
	}
	return int64(n)
}
