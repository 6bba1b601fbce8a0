package storetest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
)

func knowing() []Case {
	return []Case{
		{"a stored decision is known by its bytes", knownByBytes},
		{"another place makes no other decision of it", func(t *testing.T, s Server) {
			db := open(t, s)
			was := placed("a", 7, `{"v":1}`)
			save(t, db, was)
			for range 2 {
				for _, change := range []func(*pipeline.Row){
					func(r *pipeline.Row) { r.Offset++ }, func(r *pipeline.Row) { r.Index++ },
					func(r *pipeline.Row) { r.Partition++ }, func(r *pipeline.Row) { r.Topic = "another" }, func(*pipeline.Row) {},
				} {
					is, other := placed("a", 7, `{"v":1}`), placed("a", 7, `{"v":2}`)
					change(&is)
					change(&other)
					same(t, save(t, db, is), []pipeline.Outcome{present})
					same(t, save(t, db, other), []pipeline.Outcome{conflicting})
				}
			}
		}},
		{"known by bytes, known by payload, and new ones", someByBytes},
		{"equal bytes are equal with a masking trigger", func(t *testing.T, s Server) {
			s.Mask(t)
			remembered(t, s)
		}},
		{"equal bytes are equal after the payload was erased", func(t *testing.T, s Server) {
			save(t, open(t, s), placed("a", 1, `{"v":1}`), placed("b", 2, `{"v":2}`))
			s.Erase(t)
			remembered(t, s)
		}},
		{"rows of an earlier release are compared as JSON", func(t *testing.T, s Server) {
			db := open(t, s)
			rows := []pipeline.Row{placed("a", 1, `{"v":1,"w":2}`), placed("b", 2, `{"v":1}`)}
			save(t, db, rows...)
			s.Forget(t)
			rows[0].Log.Raw, rows[1].Log.Raw = []byte(`{"w": 2.0, "v": 1}`), []byte(`{"v":2}`)
			for range 2 {
				same(t, save(t, db, rows...), []pipeline.Outcome{present, conflicting})
			}
		}},
		{"another refusal with the code of the identity", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, placed("a", 1, `{}`))
			heal := s.Refuse(t, "b", Fault{Code: "23505"})
			for range 2 {
				refused(t, db, "23505", placed("a", 1, `{}`), placed("b", 2, `{}`))
			}
			heal()
			same(t, save(t, db, placed("a", 1, `{}`), placed("b", 2, `{}`)), []pipeline.Outcome{present, stored})
		}},
		{"a table without COPY knows decisions by bytes", func(t *testing.T, s Server) {
			cfg := s.NoCopy(t)
			db := open(t, s, func(c *db.Config) { *c = cfg })
			rows := []pipeline.Row{placed("a", 1, `{}`), placed("b", 2, `{}`), placed("b", 3, `[]`)}
			same(t, save(t, db, rows...), []pipeline.Outcome{stored, stored, conflicting})
			rows[1].Log.Raw, rows[2].Log.Raw = []byte(`{"v":2}`), []byte(`{}`)
			same(t, save(t, db, rows...), []pipeline.Outcome{present, conflicting, present})
			s.Erase(t)
			same(t, save(t, db, rows[0]), []pipeline.Outcome{present})
		}},
	}
}

// remembered has a and b delivered again, from their place and as copies, alone and twice in one batch. The payload
// in the table differs from the delivered one.
func remembered(t *testing.T, s Server) {
	a, b := placed("a", 1, `{"v":1}`), placed("b", 2, `{"v":2}`)
	save(t, open(t, s), a, b)
	double, other := placed("a", 9, `{"v":1}`), placed("b", 9, `{"v":3}`)
	for _, db := range []*store.Store{open(t, s), open(t, s)} {
		for range 2 {
			same(t, save(t, db, a, b), []pipeline.Outcome{present, present})
			same(t, save(t, db, double, a), []pipeline.Outcome{present, present})
			same(t, save(t, db, a, double, other), []pipeline.Outcome{present, present, conflicting})
		}
	}
	c, again := placed("c", 3, `{"v":4}`), placed("c", 4, `{"v":4}`)
	same(t, save(t, open(t, s), c, again, placed("c", 5, `{"v":5}`)), []pipeline.Outcome{stored, present, conflicting})
	same(t, s.Count(t), 3)
}

// placed is a row from that offset.
func placed(id string, offset int64, raw string) pipeline.Row {
	r := row(id, noon, raw)
	r.Offset, r.Index = offset, 0
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
func counting(bytes *atomic.Int64) func(*db.Config) {
	return func(c *db.Config) {
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

func knownByBytes(t *testing.T, s Server) {
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
	same(t, save(t, db, rows...), all(stored))
	same(t, save(t, db, rows...), all(present)) // found out by COPY
	for range 2 {
		bytes.Store(0)
		same(t, save(t, db, rows...), all(present))
		if got := bytes.Load(); got < n*knownSize || got > n*(knownSize+12)+5000 {
			t.Fatalf("%d bytes are sent of %d rows of %d", got, n, size)
		}
	}
	same(t, s.Count(t), n)
}

// knownSize is what has to be sent of a row to know it by its bytes: an id of six, a time and a hash.
const knownSize = 6 + 8 + 32

func someByBytes(t *testing.T, s Server) {
	db := open(t, s)
	var before []pipeline.Row
	for i := range 40 {
		before = append(before, placed(fmt.Sprintf("id-%02d", i), int64(i), `{"v":1}`))
	}
	save(t, db, before...)
	save(t, db, before...)
	for round := range 2 {
		rows, want := make([]pipeline.Row, 0, 60), make([]pipeline.Outcome, 0, 60)
		add := func(o pipeline.Outcome, r pipeline.Row) { rows, want = append(rows, r), append(want, o) }
		for i := range 40 {
			r := placed(fmt.Sprintf("id-%02d", (i*7+round)%40), int64((i*7+round)%40), `{"v":1}`)
			switch i % 5 {
			case 0: // the same bytes from elsewhere
				r.Offset += 1000
				add(present, r)
			case 1: // other bytes from elsewhere
				r.Offset += 1000
				r.Log.Raw = []byte(`{"v":2}`)
				add(conflicting, r)
			case 2: // other bytes, and equal
				r.Log.Raw = []byte(` {"v": 1.0}`)
				add(present, r)
			case 3:
				add(stored, placed(fmt.Sprintf("new-%d-%02d", round, i), int64(100+i), `{}`))
			default:
				add(present, r)
				double := placed(r.Log.ID, r.Offset+2000, `{"v":3}`)
				add(conflicting, double)
			}
		}
		same(t, save(t, db, rows...), want)
		same(t, s.Count(t), 40+8*(round+1))
	}
}
