package kafka

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"
)

// gather waits as Take does and returns how many records there are to take. It stops waiting when the queue is full,
// because then no more come.
func (a *Assignment) gather(ctx context.Context, records int, bytes int64, wait time.Duration) (n int, err error) {
	var gathered <-chan time.Time
	for {
		err := ctx.Err()
		if err == nil && a.leaving.Err() != nil {
			err = ErrLeaving
		}
		if err != nil {
			a.quit()
			return 0, err
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

// A source that has read all there is pauses after a poll: for this part of the batch wait, and longestPause at most.
// After a poll of manyRecords it is half of that.
const (
	pausePart    = 8
	longestPause = 100 * time.Millisecond
)

// awaitMore pauses before the next poll while no partition has more to read. A broker answers a fetch as soon as it has one
// record, and the client asks again after each poll. At 200 records a second that would be 200 answers, each of which
// costs a broker more than its record.
func (s *session) awaitMore(ctx context.Context, polled int) {
	pause := min(s.source.sc.BatchWait/pausePart, longestPause)
	if polled >= manyRecords {
		pause /= 2
	}
	if pause == 0 || slices.ContainsFunc(s.assignments(), (*Assignment).behind) {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(pause):
	}
}

// behind reports whether there is more to read for the queue, now or when it has room. While the partition holds or has a
// fault it is not read.
func (a *Assignment) behind() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.finished || a.dead || a.holds > 0 || a.faulty != nil && a.faulty.resting {
		return false
	}
	return a.rewind != nil || max(a.position, a.start, 0) < a.end
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
	}
	a.account.Await(records...)
	for _, r := range records {
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
