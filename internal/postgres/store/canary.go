package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
)

// canary is a good decision of which a probe makes rows.
type canary struct {
	log       decision.Log
	rest      []byte // all but id, time and, where numbered, req_id: from the comma before them to the brace behind
	numbered  bool   // rows may have other numbers than log.ReqID
	topic     string
	partition int32
	uploader  string // empty: nobody is known
	at        time.Time
}

// madeUp is a decision with a value in every column, none of them remarkable.
var madeUp = newCanary([]byte(`{"decision_id":"docket-probe-0000000000000000","timestamp":"2024-01-01T00:00:00Z",`+
	`"path":"docket/probe","result":true,"requested_by":"docket","req_id":1,"labels":{"id":"docket-probe","version":"0"},"bundles":{}}`),
	"docket-probe", 0, "docket-probe", time.Time{})

// ProbeOffset is source_offset of each row that a probe stores and takes back: that of no record, and one that a constraint, a
// trigger or a generated column of users can reckon with as with any other.
const ProbeOffset = 1 << 52

// newCanary is nil where the decision cannot be read.
func newCanary(raw []byte, topic string, partition int32, uploader string, at time.Time) *canary {
	r, refusal := decision.Decode(bytes.Clone(raw), int64(len(raw)))
	if refusal != nil || len(r.Parts) != 1 || r.Parts[0].Err != nil {
		return nil
	}
	c := &canary{log: r.Parts[0].Log, topic: topic, partition: partition, uploader: uploader, at: at}
	members := map[string]json.RawMessage{}
	if json.Unmarshal(c.log.Raw, &members) != nil {
		return nil
	}
	delete(members, "decision_id")
	delete(members, "timestamp")
	if number := c.log.ReqID; number.Valid && string(members["req_id"]) == strconv.FormatInt(number.V, 10) {
		delete(members, "req_id")
		c.numbered = true
	}
	rest, err := json.Marshal(members)
	if err != nil {
		return nil
	}
	if c.rest = rest[1:]; len(members) > 0 {
		c.rest = append([]byte{','}, c.rest...)
	}
	return c
}

// apart is the canary with a number that hardly any decision has; nil where it has none. A user's unique index may have a
// place for each number once.
func (c *canary) apart() *canary {
	if !c.numbered {
		return nil
	}
	other := *c
	other.log.ReqID.V = 1<<30 + rand32()/4
	return &other
}

// rand32 is a number from 0 to 4,294,967,295.
func rand32() int64 {
	var random [4]byte
	_, _ = rand.Read(random[:]) // it never fails
	return int64(binary.BigEndian.Uint32(random[:]))
}

// row is a row of the canary at another time. Its id is new each time, so that two probes never wait for each other. Rows of
// one probe differ in n, and so in their place and, where they are numbered, in their number.
func (c *canary) row(at time.Time, n int) pipeline.Row {
	log := c.log
	log.ID, log.Time, log.Pieces = another(log.ID), at, nil
	if c.numbered {
		log.ReqID.V += int64(n)
	}
	log.Raw = c.renamed(&log)
	return pipeline.Row{
		Log: &log, Topic: c.topic, Partition: c.partition, Offset: ProbeOffset, Index: n, UploadedBy: c.uploader,
	}
}

// renamed is the decision with the id, the time and the number of log, in the raw too: a constraint can compare the two.
func (c *canary) renamed(log *decision.Log) []byte {
	name, _ := json.Marshal(log.ID) // a string has no error
	b := append([]byte(`{"decision_id":`), name...)
	b = append(b, `,"timestamp":"`...)
	b = log.Time.UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	if c.numbered {
		b = strconv.AppendInt(append(b, `,"req_id":`...), log.ReqID.V, 10)
	}
	return append(b, c.rest...)
}

// another is an id of the same form, as a constraint can ask for one: the last letters and digits are others of their
// kind. A short id stays and gets an end.
func another(id string) string {
	const most, least = 12, 8
	b, random := []byte(id), make([]byte, most)
	_, _ = rand.Read(random) // it never fails
	n := 0
	for i := len(b) - 1; i >= 0 && n < most; i-- {
		for _, kind := range []string{"0123456789", "abcdef", "ABCDEF", "ghijklmnopqrstuvwxyz", "GHIJKLMNOPQRSTUVWXYZ"} {
			if strings.IndexByte(kind, b[i]) >= 0 {
				b[i] = kind[int(random[n])%len(kind)]
				n++
				break
			}
		}
	}
	if n < least {
		return id + "-" + rand.Text()
	}
	return string(b)
}

// lastTaken remembers a decision that the table took, one every few seconds. Its zero value remembers none. It is safe for
// concurrent use.
type lastTaken struct {
	mu     sync.Mutex
	one    *canary
	until  time.Time
	offers []offer // of the last refused batch of each partition, the newest at the end
	next   int     // candidate of the offers to ask for; as many as there are: none is left
}

// offer is some decisions of a batch that the table refused. Most of them may be good.
type offer struct {
	from        source
	first, last int64 // offsets of the batch
	size        int   // rows of the batch
	bytes       int   // of some
	some        []*canary
	came        time.Time
}

// partOf reports whether o is of a part of that batch.
func (o *offer) partOf(batch *offer) bool {
	return o.from == batch.from && o.first >= batch.first && o.last <= batch.last && o.size < batch.size
}

// The limits of what is remembered. A longer decision is taken only where there is no shorter one.
const (
	freshTaken = 10 * time.Second
	shortTaken = 8 << 10  // bytes
	mostSome   = 8        // decisions of one batch
	mostOffers = 256      // partitions
	mostBytes  = 16 << 20 // of all offers, but for the newest
	mostAsked  = 16       // offered decisions that one probe asks for
	mostAge    = time.Hour
)

func (l *lastTaken) get() *canary {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.one
}

// offer remembers some rows of a batch that was refused, instead of those of an earlier batch of the partition. A decision that
// the table took says nothing of them: the table may have been altered since. A part of a batch does not replace the batch.
// A row that is refused alone proves nothing. The oldest offers go where there are too many.
func (l *lastTaken) offer(rows []pipeline.Row) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(rows) < 2 {
		return
	}
	o := offer{from: sourceOf(rows), first: rows[0].Offset, last: rows[len(rows)-1].Offset, size: len(rows), came: time.Now()}
	if slices.ContainsFunc(l.offers, func(had offer) bool { return o.partOf(&had) }) {
		return
	}
	for i := 0; i < len(rows); i += (len(rows) + mostSome - 1) / mostSome {
		r := &rows[i]
		if len(r.Log.Raw) > shortTaken && len(o.some) > 0 {
			continue
		}
		if c := newCanary(r.Log.Raw, r.Topic, r.Partition, r.UploadedBy, r.Log.Time); c != nil {
			o.some = append(o.some, c)
			o.bytes += len(c.log.Raw) + len(c.rest)
		}
	}
	l.next = 0
	l.offers = append(slices.DeleteFunc(l.offers, func(had offer) bool { return had.from == o.from }), o)
	bytes, from := o.bytes, len(l.offers)-1
	for from > 0 && len(l.offers)-from < mostOffers && bytes+l.offers[from-1].bytes <= mostBytes {
		from--
		bytes += l.offers[from].bytes
	}
	l.offers = slices.Delete(l.offers, 0, from)
}

// offered gives the next decision that was offered, the newest first, and nil after the last one. Then it begins again. Old
// offers say nothing of the table as it is: their batches are done, unless a partition holds for as long.
func (l *lastTaken) offered() *canary {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offers = slices.DeleteFunc(l.offers, func(o offer) bool { return time.Since(o.came) > mostAge })
	at := l.next
	for _, o := range slices.Backward(l.offers) {
		if at < len(o.some) {
			l.next++
			return o.some[at]
		}
		at -= len(o.some)
	}
	l.next = 0
	return nil
}

// done drops what was offered of earlier batches of the partition, as rows of a later one were stored.
func (l *lastTaken) done(rows []pipeline.Row) {
	if len(l.offers) == 0 || len(rows) == 0 {
		return
	}
	from := sourceOf(rows)
	l.offers = slices.DeleteFunc(l.offers, func(o offer) bool { return o.from == from && o.last < rows[0].Offset })
}

// took remembers an offered decision that a probe stored and took back.
func (l *lastTaken) took(c *canary) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.one = c
}

// keep remembers one of the rows that were stored, unless another was a few seconds ago.
func (l *lastTaken) keep(rows []pipeline.Row, outcomes []pipeline.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done(rows)
	now := time.Now()
	if now.Before(l.until) {
		return
	}
	for i := range rows {
		r := &rows[i]
		if outcomes[i] != pipeline.Stored || len(r.Log.Raw) > shortTaken && l.one != nil {
			continue
		}
		if c := newCanary(r.Log.Raw, r.Topic, r.Partition, r.UploadedBy, r.Log.Time); c != nil {
			l.one = c
		}
		l.until = now.Add(freshTaken)
		return
	}
}

// anyTime is as far as a duration reaches: some centuries.
const anyTime = time.Duration(math.MaxInt64)

// seen reads a decision from the table, of no more than around away from that time; nil where there is none, or not so soon.
func seen(ctx context.Context, pg *pgconn.PgConn, at time.Time, around, within time.Duration) (c *canary) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	from, to := timestamp(micros(at.Add(-around))), timestamp(micros(at.Add(around)))
	_ = transact(ctx, pg, func(t *transaction) error {
		err := t.ask(seenSQL, [][]byte{from, to}, func(values [][]byte) error {
			if len(values) != 5 || len(values[2]) != 4 || len(values[3]) != 8 {
				return errclass.As(&db.AnswerError{Problem: "the table answered in another form than asked for"}, errclass.CodeProtocol)
			}
			c = newCanary(values[0], string(values[1]), int32(binary.BigEndian.Uint32(values[2])), string(values[4]),
				time.UnixMicro(int64(binary.BigEndian.Uint64(values[3]))+epoch).UTC())
			return nil
		})
		if err == nil {
			t.rollback()
		}
		return err
	})
	return c
}
