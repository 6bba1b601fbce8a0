package storetest

import (
	"context"
	"fmt"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/pipeline"
	"docket/internal/postgres"
)

func placing() []Case {
	return []Case{
		{"a record that is there is known by its place, and its payload is not sent", knownByPlace},
		{"only the very record is known by its place", onlyTheVeryRecord},
		{"some by their place, some by their payload, some are new", someByPlace},
		{"where another refusal than that of the identity has its code, it is told", func(t *testing.T, s Server) {
			db := open(t, s)
			store(t, db, placed("a", 1, `{}`))
			heal := s.Refuse(t, "b", Fault{Code: "23505"})
			for range 2 {
				refused(t, db, "23505", placed("a", 1, `{}`), placed("b", 2, `{}`))
			}
			heal()
			same(t, store(t, db, placed("a", 1, `{}`), placed("b", 2, `{}`)), []pipeline.Outcome{present, stored})
		}},
		{"a table that takes no COPY knows records by their place, too", func(t *testing.T, s Server) {
			cfg := s.NoCopy(t)
			db := open(t, s, func(c *postgres.Config) { *c = cfg })
			rows := []pipeline.Row{placed("a", 1, `{}`), placed("b", 2, `{}`), placed("b", 3, `[]`)}
			same(t, store(t, db, rows...), []pipeline.Outcome{stored, stored, conflicting})
			rows[0].Log.Raw = []byte(`{"known":"by its place"}`)
			rows[1].Offset, rows[1].Log.Raw = 9, []byte(`{"v":2}`)
			rows[2].Log.Raw = []byte(`{}`)
			same(t, store(t, db, rows...), []pipeline.Outcome{present, conflicting, present})
		}},
		{"copies of several topics are known by their payload alone", func(t *testing.T, s Server) {
			db := open(t, s)
			rows := []pipeline.Row{placed("a", 1, `{}`), placed("b", 2, `{}`), placed("c", 3, `{}`)}
			store(t, db, rows...)
			rows[1].Topic, rows[2].Partition = "other", 9 // the question names the topic and partition of the first
			rows[1].Log.Raw, rows[2].Log.Raw = []byte(`{"v":2}`), []byte(`{"v":2}`)
			for range 2 {
				same(t, store(t, db, rows...), []pipeline.Outcome{present, conflicting, conflicting})
			}
		}},
	}
}

// longAgo is before anything was stored here, farAhead after it.
func longAgo() time.Time  { return time.Now().Add(-time.Hour) }
func farAhead() time.Time { return time.Now().Add(time.Hour) }

// placed is a row from a record that was appended before it is stored.
func placed(id string, offset int64, raw string) pipeline.Row {
	r := row(id, noon, raw)
	r.Offset, r.Index, r.Appended = offset, 0, longAgo()
	return r
}

// sent counts the bytes that a client sends.
type sent struct {
	net.Conn
	bytes *atomic.Int64
}

func (c sent) Write(b []byte) (int, error) {
	c.bytes.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// counting is a change of the settings that has what is sent counted.
func counting(bytes *atomic.Int64) func(*postgres.Config) {
	return func(c *postgres.Config) {
		dial := c.Dialer
		if dial == nil {
			dial = (&net.Dialer{}).DialContext
		}
		c.Dialer = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			return sent{conn, bytes}, err
		}
	}
}

func knownByPlace(t *testing.T, s Server) {
	var bytes atomic.Int64
	db := open(t, s, counting(&bytes), within(time.Minute))
	const n, size = 200, 3000
	var rows []pipeline.Row
	for i := range n {
		rows = append(rows, placed(fmt.Sprintf("id-%03d", i*7%n), int64(i/2), fmt.Sprintf(`{"i":%d,"pad":"%s"}`, i, strings.Repeat("x", size))))
		rows[i].Index = i % 2
	}
	all := func(o pipeline.Outcome) (want []pipeline.Outcome) {
		for range n {
			want = append(want, o)
		}
		return want
	}
	same(t, store(t, db, rows...), all(stored))
	same(t, store(t, db, rows...), all(present)) // found out by COPY
	for range 2 {
		bytes.Store(0)
		same(t, store(t, db, rows...), all(present))
		if got := bytes.Load(); got < n*placedSize || got > n*(placedSize+20)+5000 {
			t.Fatalf("%d bytes are sent of %d rows of %d", got, n, size)
		}
	}
	same(t, s.Count(t), n)
}

// placedSize is what has to be sent of a row to know it by its place, in bytes: an id of six, two times, offset and index.
const placedSize = 6 + 8 + 8 + 8 + 4

// onlyTheVeryRecord has rows of one identity that differ in what they say of their place. Whatever is not surely the very
// record is compared by its payload.
func onlyTheVeryRecord(t *testing.T, s Server) {
	for name, c := range map[string]struct {
		change func(*pipeline.Row)
		known  bool
	}{
		"the same, and Kafka does not change a record":    {func(*pipeline.Row) {}, true},
		"appended after it was stored: a topic made anew": {func(r *pipeline.Row) { r.Appended = farAhead() }, false},
		"a copy":                        {func(r *pipeline.Row) { r.Appended = time.Time{} }, false},
		"no time":                       {func(r *pipeline.Row) { r.Appended = time.UnixMilli(-1) }, false},
		"no time, in the other way":     {func(r *pipeline.Row) { r.Appended = time.UnixMilli(0) }, false},
		"beyond all times":              {func(r *pipeline.Row) { r.Appended = time.UnixMilli(math.MaxInt64) }, false},
		"before all times":              {func(r *pipeline.Row) { r.Appended = time.UnixMilli(math.MinInt64) }, false},
		"beyond Postgres":               {func(r *pipeline.Row) { r.Appended = time.Unix(9_300_000_000_000, 0) }, false},
		"another offset":                {func(r *pipeline.Row) { r.Offset++ }, false},
		"an offset that differs far up": {func(r *pipeline.Row) { r.Offset += 1 << 32 }, false},
		"another index":                 {func(r *pipeline.Row) { r.Index++ }, false},
		"another partition":             {func(r *pipeline.Row) { r.Partition++ }, false},
		"another topic":                 {func(r *pipeline.Row) { r.Topic = "another" }, false},
	} {
		was := placed(name, 7, `{"v":1}`)
		store(t, open(t, s), was)
		looks := open(t, s)
		for way, db := range map[string]*postgres.DB{"after COPY": open(t, s), "looked for": looks} {
			is := placed(name, 7, `{"v":2}`)
			c.change(&is)
			want := []pipeline.Outcome{conflicting}
			if c.known {
				want[0] = present
			}
			equal := is
			log := *is.Log
			equal.Log, log.Raw = &log, []byte(`{"v": 1}`)
			if db == looks {
				store(t, db, equal) // from here on that partition is looked for
			}
			if got := store(t, db, is); got[0] != want[0] {
				t.Errorf("%s, %s: outcome %d of another payload, want %d", name, way, got[0], want[0])
			}
			if got := store(t, db, equal); got[0] != present {
				t.Errorf("%s, %s: outcome %d of an equal payload", name, way, got[0])
			}
		}
	}
}

func someByPlace(t *testing.T, s Server) {
	db := open(t, s)
	var before []pipeline.Row
	for i := range 40 {
		before = append(before, placed(fmt.Sprintf("id-%02d", i), int64(i), `{"v":1}`))
	}
	store(t, db, before...)
	store(t, db, before...)
	for round := range 2 {
		rows, want := make([]pipeline.Row, 0, 60), make([]pipeline.Outcome, 0, 60)
		add := func(o pipeline.Outcome, r pipeline.Row) { rows, want = append(rows, r), append(want, o) }
		for i := range 40 {
			r := placed(fmt.Sprintf("id-%02d", (i*7+round)%40), int64((i*7+round)%40), `{"v":1}`)
			switch i % 5 {
			case 0: // moved, and equal
				r.Offset += 1000
				add(present, r)
			case 1: // moved, and another
				r.Offset += 1000
				r.Log.Raw = []byte(`{"v":2}`)
				add(conflicting, r)
			case 2: // a copy that is another
				r.Appended, r.Log.Raw = time.Time{}, []byte(`{"v":2}`)
				add(conflicting, r)
			case 3:
				add(stored, placed(fmt.Sprintf("new-%d-%02d", round, i), int64(100+i), `{}`))
			default:
				add(present, r)
				double := placed(r.Log.ID, r.Offset+2000, `{"v":3}`)
				add(conflicting, double)
			}
		}
		same(t, store(t, db, rows...), want)
		same(t, s.Count(t), 40+8*(round+1))
	}
}
