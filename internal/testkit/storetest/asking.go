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
	"docket/internal/postgres/store"
)

func asking() []Case {
	return []Case{
		{"what a CHECK refuses is foreseen", foreseen},
		{"each row is asked about alone and none is kept", eachAlone},
		{"a row that is there is not refused", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`), row("b", noon, `{}`))
			s.Check(t, "odd", "c")
			same(t, bad(t, db, time.Time{}, row("c", noon, `{}`), row("a", noon, `{}`), row("b", noon, `[]`)), []int{0})
			save(t, db, row("a", noon, `{}`)) // from here on the store looks rows up first
			same(t, bad(t, db, noon, row("b", noon, `[]`), row("c", noon, `{}`), row("a", noon, `{}`)), []int{1})
		}},
		{"a known row is not asked about", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("a", noon, `{}`))
			save(t, db, row("a", noon, `{}`))
			s.Refuse(t, "a", Fault{Code: "23514", Constraint: "odd"})
			same(t, bad(t, db, time.Time{}, row("a", noon, `{}`)), []int(nil))
		}},
		{"what is no fault of a row ends the asking", func(t *testing.T, s Server) {
			for _, code := range []string{"40001", "42501", "25006", "53100"} {
				heal := s.Refuse(t, "b", Fault{Code: code})
				out, err := open(t, s).Refusals(context.Background(), []pipeline.Row{row("a", noon, `{}`), marked("b"), row("c", noon, `{}`)}, time.Time{})
				wantCode(t, out, err, code)
				heal()
			}
			same(t, s.Count(t), 0)
		}},
		{"a table that is not well condemns nobody", func(t *testing.T, s Server) {
			heal := s.Refuse(t, "", Fault{Code: "23502"})
			db := open(t, s)
			same(t, bad(t, db, time.Time{}, marked("a")), []int{0})
			out, err := db.Refusals(context.Background(), []pipeline.Row{marked("a")}, noon)
			wantCode(t, out, err, "23502")
			if _, ok := errors.AsType[*pipeline.Unwell](err); !ok {
				t.Fatalf("it is not said that the probe was refused: %v", err)
			}
			heal()
			same(t, bad(t, db, noon, marked("a")), []int(nil))
		}},
		{"a connection cut while it is asked", func(t *testing.T, s Server) {
			db := open(t, s)
			save(t, db, row("warm", noon, `{}`))
			for _, at := range []Cut{BeforeInsert, AfterInsert} {
				s.Cut(t, at)
				out, err := db.Refusals(context.Background(), []pipeline.Row{row("a", noon, `{}`), marked("b")}, time.Time{})
				wantCode(t, out, err, "network")
				same(t, bad(t, db, time.Time{}, row("a", noon, `{}`), marked("b")), []int(nil))
			}
			same(t, s.Count(t), 1)
		}},
		{"a lock ends the asking in time", func(t *testing.T, s Server) {
			unlock := s.Lock(t)
			db := open(t, s, within(4*time.Second))
			ended(t, "55P03", func() (any, error) {
				return db.Refusals(context.Background(), []pipeline.Row{row("a", noon, `{}`), row("b", noon, `{}`)}, time.Time{})
			})
			unlock()
			same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
		}},
		{"a table that takes no COPY is asked all the same", func(t *testing.T, s Server) {
			cfg := s.NoCopy(t)
			db := open(t, s, func(c *db.Config) { *c = cfg })
			same(t, bad(t, db, noon, row("a", noon, `{}`), row("b", noon, `{"a":"`+marker+`\u0000"}`)), []int{1})
			same(t, s.Count(t), 0)
		}},
		{"whatever a name has in it accuses no other row", func(t *testing.T, s Server) {
			s.Refuse(t, "b", Fault{Code: "23514", Constraint: "odd\x1f\x1f\x1e1\x1f23514\x1fodd", Column: "c\x1e", Table: "t\x1f"})
			rows := []pipeline.Row{row("a", noon, `{}`), marked("b"), row("c", noon, `{}`)}
			for _, probe := range []time.Time{{}, noon} {
				refused, err := open(t, s).Refusals(context.Background(), rows, probe)
				if err != nil {
					t.Fatal(err)
				}
				same(t, []bool{refused[0] == nil, refused[1] == nil, refused[2] == nil}, []bool{true, false, true})
				var e *db.ServerError
				if !errors.As(refused[1], &e) || e.ConstraintName() != "odd???1?23514?odd" || e.ColumnName() != "c?" || e.TableName() != "t?" {
					t.Fatalf("refused for %v", refused[1])
				}
			}
		}},
		{"nobody waits for what was only asked about", func(t *testing.T, s Server) {
			db, other := open(t, s), open(t, s)
			var rows []pipeline.Row
			for i := range 600 {
				rows = append(rows, row(fmt.Sprintf("id-%d", i), noon, `{}`))
			}
			done := inBackground(context.Background(), other, rows...)
			same(t, bad(t, db, time.Time{}, rows...), []int(nil))
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			same(t, s.Count(t), len(rows))
		}},
	}
}

// bad returns the positions of the refused rows.
func bad(t testing.TB, db *store.Store, probe time.Time, rows ...pipeline.Row) (at []int) {
	t.Helper()
	refused, err := db.Refusals(context.Background(), rows, probe)
	if err != nil {
		t.Fatalf("refusals: %v", err)
	}
	same(t, len(refused), len(rows))
	for i, err := range refused {
		if err != nil {
			at = append(at, i)
		}
	}
	return at
}

func foreseen(t *testing.T, s Server) {
	s.Check(t, "odd", "id-0000", "id-0007", "id-2499")
	s.Check(t, "none_of_these", "another")
	db := open(t, s)
	const n = 2500
	var rows []pipeline.Row
	var want []int
	for i := range n {
		rows = append(rows, full(fmt.Sprintf("id-%04d", i*1009%n), noon, 10))
		if k := i * 1009 % n; k == 0 || k == 7 || k == 2499 {
			want = append(want, i)
		}
	}
	for name, at := range map[string][]int{"odd": want, "none_of_these": nil, "no_such": nil, "": nil, "x'; SELECT 1": nil} {
		got, err := db.Foresee(context.Background(), rows, name)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		same(t, got, at)
	}
	err := refused(t, db, "23514", rows...)
	same(t, slices.Contains(want, func() int { at, _ := pointer(t, err); return at }()), true)
	same(t, bad(t, db, noon, rows...), want)
	same(t, s.Count(t), 0)
}

// eachAlone has refusals at both ends, in the middle and side by side, in several messages, and of several kinds.
func eachAlone(t *testing.T, s Server) {
	s.Check(t, "odd", "id-000", "id-255", "id-256", "id-400", "id-401", "id-599")
	d := open(t, s)
	var rows []pipeline.Row
	for i := range 600 {
		rows = append(rows, full(fmt.Sprintf("id-%03d", i), noon, i*i%5000))
	}
	rows[10].Log.Raw = []byte(`{"a":"` + marker + `\u0000"}`)
	rows[11].Log.Labels = []byte(`{"a":`)
	rows[300] = full("id-300", noon, 2<<20) // larger than one message
	rows[301] = rows[302]                   // two of one identity
	want := []int{0, 10, 11, 255, 256, 400, 401, 599}
	for _, probe := range []time.Time{{}, noon} {
		refused, err := d.Refusals(context.Background(), rows, probe)
		if err != nil {
			t.Fatal(err)
		}
		codes := map[int]string{10: "22P05", 11: "22P02"}
		for i, err := range refused {
			if (err != nil) != slices.Contains(want, i) {
				t.Fatalf("row %d: %v", i, err)
			}
			if err == nil {
				continue
			}
			code, ok := codes[i]
			if !ok {
				code = "23514"
			}
			wantCode(t, nil, err, code)
			var e *db.ServerError
			if !errors.As(err, &e) || !ok && e.ConstraintName() != "odd" {
				t.Fatalf("row %d: %v", i, err)
			}
		}
	}
	same(t, s.Count(t), 0)
	same(t, save(t, d, rows[1], rows[301]), []pipeline.Outcome{stored, stored})
}
