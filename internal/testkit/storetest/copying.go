package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
)

func copying() []Case {
	return []Case{
		{"an error of COPY says at which row it was", pointed},
		{"only COPY can say at which row it was", func(t *testing.T, s Server) {
			cfg := s.NoCopy(t)
			db := open(t, s, func(c *db.Config) { *c = cfg })
			save(t, db, row("a", noon, `{}`))
			s.Refuse(t, "b", Fault{Code: "P0001"})
			unpointed(t, refused(t, db, "P0001", row("a", noon, `{}`), marked("b")))
		}},
		{"deferred constraints point at no row", func(t *testing.T, s Server) {
			s.RefuseLate(t, "23503")
			unpointed(t, refused(t, open(t, s), "23503", row("a", noon, `{}`), marked("b")))
		}},
		{"a bad row among some that are there", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`))
			save(t, db, row("a", noon, `{}`)) // from here on the store looks rows up first
			pointsAt(t, 2, refused(t, db, "22P02", row("c", noon, `{}`), row("a", noon, `{}`), row("b", noon, `{"a":`)))
			same(t, s.Count(t), 1)
		}},
		{"what is delivered again is looked for first", redelivered},
		{"another partition is not looked for", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`))
			save(t, db, row("a", noon, `{}`))
			other := row("b", noon, `{}`)
			other.Partition = 4
			same(t, save(t, db, other), []pipeline.Outcome{stored})
		}},
		{"an equal place does not make an equal payload", func(t *testing.T, s Server) {
			db := open(t, s)
			rows := []pipeline.Row{row("a", noon, `{"v":1}`), row("b", noon, `{"v":1}`)}
			save(t, db, rows...)
			save(t, db, rows...)
			rows[0].Log.Raw = []byte(`{"v":2}`)
			same(t, save(t, db, rows...), []pipeline.Outcome{conflicting, present})
			moved := row("b", noon, `{"v":1}`)
			moved.Offset = 4711
			same(t, save(t, db, moved), []pipeline.Outcome{present})
		}},
		{"writers with some rows in common do not deadlock", overlapping},
		{"without its unique index a table stores nothing", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`))
			s.Break(t, "42P10")
			for range 2 {
				refused(t, db, "42P10", row("b", noon, `{}`))
				refused(t, db, "42P10", row("a", noon, `{}`))
			}
			if _, err := db.Try(context.Background(), row("c", noon, `{}`)); err == nil {
				t.Error("it would have been stored")
			}
			same(t, s.Count(t), 1)
		}},
		{"a table without COPY gets its rows", insertsOnly},
		{"many rows and large ones in pieces", func(t *testing.T, s Server) {
			db := open(t, s, within(time.Minute))
			var rows []pipeline.Row
			for i := range 300 {
				rows = append(rows, full(fmt.Sprintf("id-%d", i*7919%300), noon, i*i%5000))
			}
			rows = append(rows, full("large", noon, 200<<10), full("last", noon, 64<<10))
			same(t, save(t, db, rows...), slices.Repeat([]pipeline.Outcome{stored}, len(rows)))
			for range 2 {
				same(t, save(t, db, rows...), slices.Repeat([]pipeline.Outcome{present}, len(rows)))
			}
			same(t, s.Count(t), len(rows))
		}},
	}
}

func pointer(t testing.TB, err error) (int, bool) {
	t.Helper()
	e, ok := errors.AsType[interface {
		error
		Row() (int, bool)
	}](err)
	if !ok {
		t.Fatalf("nothing that could point at a row in %v", err)
	}
	return e.Row()
}

func pointsAt(t testing.TB, want int, err error) {
	t.Helper()
	if at, ok := pointer(t, err); !ok || at != want {
		t.Fatalf("it points at row %d (%v), want %d: %v", at, ok, want, err)
	}
}

func unpointed(t testing.TB, err error) {
	t.Helper()
	if at, ok := pointer(t, err); ok {
		t.Fatalf("it points at row %d", at)
	}
}

// pointed has bad rows at both ends and in the middle, in the given order and in the order in which they are sent.
// There are doubles among them.
func pointed(t *testing.T, s Server) {
	db := open(t, s)
	const n = 2500
	rows := []pipeline.Row{row("id-0001", noon, `{}`), row("id-0000", noon, `{}`)}
	for i := range n {
		rows = append(rows, row(fmt.Sprintf("id-%04d", i*1009%n), noon, `{}`))
	}
	for _, at := range []int{0, 1, 4, n / 2, n, n + 1} {
		bad := slices.Clone(rows)
		log := *bad[at].Log
		log.Raw = []byte(`{"a":"` + marker + `\u0000"}`)
		bad[at].Log = &log
		pointsAt(t, at, refused(t, db, "22P05", bad...))
		heal := s.Refuse(t, rows[at].Log.ID, Fault{Code: "23514"})
		pointsAt(t, slices.IndexFunc(rows, func(r pipeline.Row) bool { return r.Log.ID == log.ID }), refused(t, db, "23514", rows...))
		heal()
	}
	same(t, s.Count(t), 0)
}

func redelivered(t *testing.T, s Server) {
	db := open(t, s)
	batch := func(ids ...string) (rows []pipeline.Row) {
		for _, id := range ids {
			rows = append(rows, row(id, noon, `{"id":"`+id+`"}`))
		}
		return rows
	}
	other := row("a", noon, `{"id":"another"}`)
	for _, step := range []struct {
		rows []pipeline.Row
		want []pipeline.Outcome
	}{
		{batch("b", "a"), []pipeline.Outcome{stored, stored}},
		{batch("a", "b"), []pipeline.Outcome{present, present}},                                         // found by COPY
		{batch("b", "a"), []pipeline.Outcome{present, present}},                                         // all known
		{batch("b", "b", "a"), []pipeline.Outcome{present, present, present}},                           // and doubles
		{append(batch("b", "d", "c"), other), []pipeline.Outcome{present, stored, stored, conflicting}}, // some
		{append(batch("e", "e"), other), []pipeline.Outcome{stored, present, conflicting}},
		{batch("f", "g"), []pipeline.Outcome{stored, stored}}, // none, which ends the lookups
		{batch("i", "h"), []pipeline.Outcome{stored, stored}},
		{batch("i", "k"), []pipeline.Outcome{present, stored}},
	} {
		same(t, save(t, db, step.rows...), step.want)
	}
	same(t, s.Count(t), 10)
}

// overlapping has writers with half of their rows in common, while some of them look rows up first.
func overlapping(t *testing.T, s Server) {
	db := open(t, s, within(time.Minute))
	save(t, db, row("first", noon, `{}`))
	save(t, db, row("first", noon, `{}`))
	const writers, each = 4, 60
	done := make(chan error, writers)
	for w := range writers {
		go func() {
			var rows []pipeline.Row
			for i := range each {
				r := row(fmt.Sprintf("id-%d", (w*each/2+i*37%each)%(writers*each/2)), noon, `{}`)
				r.Partition = int32(3 + w%2)
				rows = append(rows, r)
			}
			_, err := db.Store(context.Background(), rows, w%2 == 0)
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	same(t, s.Count(t), 1+writers*each/2)
}

func insertsOnly(t *testing.T, s Server) {
	cfg := s.NoCopy(t)
	db := open(t, s, func(c *db.Config) { *c = cfg })
	refused(t, db, "22P05", row("a", noon, `{"a":"\u0000"}`)) // the row is blamed only for its own fault
	for range 2 {
		if err := db.Probe(context.Background(), noon); err != nil {
			t.Fatal(err)
		}
	}
	same(t, save(t, db, row("a", noon, `{}`), row("b", noon, `{}`), row("a", noon, `[]`)), []pipeline.Outcome{stored, stored, conflicting})
	same(t, save(t, db, row("b", noon, `{}`), row("c", noon, `{}`)), []pipeline.Outcome{present, stored})
	unpointed(t, refused(t, db, "22P05", row("d", noon, `{}`), row("e", noon, `{"a":"\u0000"}`)))
	same(t, s.Count(t), 3)
}
