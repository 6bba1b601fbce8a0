package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
)

func marked(id string) pipeline.Row { return row(id, noon, `{"input":"`+marker+`"}`) }

func refusing() []Case {
	cases := []Case{
		{"what a server refuses has its code", serverRefuses},
		{"a bad double is refused", func(t *testing.T, s Server) {
			refused(t, open(t, s), "22P05", row("id", noon, `{}`), row("id", noon, `{"a":"`+marker+`\u0000"}`))
			same(t, s.Count(t), 0)
		}},
		{"deferred constraints count as refusals", func(t *testing.T, s Server) {
			s.RefuseLate(t, "23503")
			db := open(t, s)
			refused(t, db, "23503", marked("id"))
			wantCode(t, nil, db.Probe(context.Background(), noon), "23503")
			same(t, s.Count(t), 0)
		}},
	}
	for _, code := range []string{"23514", "23502", "22001", "P0001", "40001", "53100", "55006", "57014", "58030", "XX000", "25006", "42501", "0A000"} {
		cases = append(cases, Case{"a row refused with " + code, func(t *testing.T, s Server) { oneRefused(t, s, code) }})
	}
	for _, code := range []string{"P0001", "53100", "25006", "XX000"} {
		cases = append(cases, Case{"every row refused with " + code, func(t *testing.T, s Server) {
			heal := s.Refuse(t, "", Fault{Code: code})
			db := open(t, s)
			refused(t, db, code, marked("a"))
			wantCode(t, nil, db.Probe(context.Background(), noon), code)
			heal()
			if err := db.Probe(context.Background(), noon); err != nil {
				t.Fatal(err)
			}
			same(t, save(t, db, marked("a")), []pipeline.Outcome{stored})
		}})
	}
	for _, code := range []string{"42P01", "42703", "42P10", "23502"} {
		cases = append(cases, Case{"a table changed to " + code, func(t *testing.T, s Server) {
			s.Break(t, code)
			db := open(t, s)
			refused(t, db, code, marked("a"))
			wantCode(t, nil, db.Probe(context.Background(), noon), code)
		}})
	}
	return cases
}

func oneRefused(t *testing.T, s Server, code string) {
	f := Fault{Code: code, Constraint: "odd", Column: "path", Table: "decision_logs"}
	heal := s.Refuse(t, "b", f)
	d := open(t, s)
	rows := []pipeline.Row{row("a", noon, `{}`), marked("b"), row("c", noon, `{}`)}
	err := refused(t, d, code, rows...)
	var e *db.ServerError
	if !errors.As(err, &e) {
		t.Fatalf("no ServerError: %v", err)
	}
	same(t, []string{e.SQLState(), e.ConstraintName(), e.ColumnName(), e.TableName(), e.Severity()},
		[]string{code, f.Constraint, f.Column, f.Table, "ERROR"})
	same(t, s.Count(t), 0)
	if err := d.Probe(context.Background(), noon); err != nil {
		t.Fatalf("the probe is refused: %v", err)
	}
	same(t, save(t, d, rows[0], rows[2]), []pipeline.Outcome{stored, stored})
	refused(t, d, code, rows...)
	same(t, s.Count(t), 2)
	heal()
	same(t, save(t, d, rows...), []pipeline.Outcome{present, stored, present})
}

// incompressible is text that no index compresses.
func incompressible(n int) string {
	var b strings.Builder
	source := rand.New(rand.NewPCG(3, 4))
	for range n {
		b.WriteByte("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"[source.IntN(64)])
	}
	return b.String()
}

func serverRefuses(t *testing.T, s Server) {
	db := open(t, s)
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	labels := row("id", noon, `{}`)
	labels.Log.Labels = []byte(`{"a":`)
	late := row("id", noon, `{}`)
	late.Log.Time = time.UnixMicro(1<<62 + 1<<61).UTC()
	for _, c := range []struct {
		code string
		row  pipeline.Row
	}{
		{"22P05", row("id", noon, `{"a":"\u0000"}`)},
		{"22P02", row("id", noon, `{"a":`)},
		{"22P02", row("id", noon, `{"a":1,}`)},
		{"22P02", row("id", noon, `{"a":01}`)},
		{"22P02", row("id", noon, `{"a":"\ud800"}`)},
		{"22P02", row("id", noon, `{"a":"\udc00"}`)},
		{"22P02", row("id", noon, `{"a":"\x"}`)},
		{"22P02", row("id", noon, "{\"a\":\"\t\"}")},
		{"22P02", row("id", noon, `{} {}`)},
		{"22P02", row("id", noon, `[1x]`)},
		{"22P02", row("id", noon, `nul`)},
		{"22P02", row("id", noon, ` `)},
		{"22P02", labels},
		{"22021", row("i\x00d", noon, `{}`)},
		{"22021", row("id", noon, "{\"a\":\"\xff\"}")},
		{"22003", row("id", noon, `{"a":1e131072}`)},
		{"22003", row("id", noon, `{"a":1e999999}`)},
		{"22003", row("id", noon, `{"a":0e-16384}`)},
		{"54001", row("id", noon, deep)},
		{"23502", row("id", noon, ``)},
		{"54000", row(incompressible(6000), noon, `{}`)},
	} {
		_, err := db.Store(context.Background(), []pipeline.Row{row("good", noon, `{}`), c.row, row("good too", noon, `{}`)}, false)
		wantCode(t, nil, err, c.code)
	}
	same(t, s.Count(t), 0)
	for i, raw := range []string{`{"a":1e131071}`, `{"a":1e-16383}`, strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), `null`, `"x"`, ` 1 `} {
		same(t, save(t, db, row(strings.Repeat("x", i+1), noon, raw)), []pipeline.Outcome{stored})
	}
	same(t, save(t, db, row(strings.Repeat("x", 6000), noon, `{}`)), []pipeline.Outcome{stored})
}
