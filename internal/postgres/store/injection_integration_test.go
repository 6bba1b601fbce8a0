//go:build integration

package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
)

// pieces are what statements, COPY and JSON end at, or would, were they text.
var pieces = []string{
	`'`, `''`, `"`, `\`, `\\`, `\.`, "\n\\.\n", "\t", "\r\n", `\N`, `$1`, `$$`, `$tag$`, `$tag$;`, `;`, `--`, `/*`, `*/`, `)`, `(`, `,`, `{`, `}`, `E'\x27'`, "\u2019", "\uff07", "é", "\x1b[31m",
	`'; DROP TABLE canary; --`, `$tag$; DROP TABLE canary; $tag$`, `'); DELETE FROM canary; --`, `\'; UPDATE canary SET n = 0; --`, `%s`, `%00`, `x`, ` `,
}

func text(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		b.WriteString(pieces[r.IntN(len(pieces))])
	}
	return b.String()
}

// Values are looked for as they were given, and a table that every one of them tries to harm stays as it is.
func TestStore_NoValueIsReadAsSQL(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `CREATE TABLE canary (n int); INSERT INTO canary VALUES (1)`)
	db := open(t, d.URL, 0)
	const seed, batches, size = 1, 8, 300
	r := rand.New(rand.NewPCG(seed, seed))
	want := 0
	for n := range batches {
		rows := make([]pipeline.Row, size)
		if n%4 == 3 {
			rows = rows[:3] // few go by INSERT
		}
		for i := range rows {
			rows[i] = full(fmt.Sprintf("%d-%d-%s", n, i, text(r)), noon.Add(time.Duration(r.IntN(1000))*time.Hour), 0)
			log := rows[i].Log
			for _, field := range []*string{&log.Path.V, &log.Service.V, &log.RequestedBy.V, &log.OPAID.V, &log.OPAVersion.V, &rows[i].Topic} {
				*field = text(r)
			}
			log.Raw = fmt.Appendf(nil, `{"decision_id":%s,"x":%s}`, quoted(log.ID), quoted(text(r)))
			log.Labels = fmt.Appendf(nil, `{%s:%s}`, quoted(text(r)), quoted(text(r)))
		}
		out, err := db.Store(context.Background(), rows, n%2 == 1)
		if err != nil || out[0] != stored {
			t.Fatalf("batch %d of seed %d: %v, %v", n, seed, out[:1], err)
		}
		want += len(rows)
		one := rows[r.IntN(len(rows))]
		var topic, path, id string
		d.Query(t, `SELECT source_topic, path, raw->>'decision_id' FROM decision_logs WHERE decision_id = `+literal(one.Log.ID), &topic, &path, &id)
		if topic != one.Topic || path != one.Log.Path.V || id != one.Log.ID {
			t.Fatalf("stored %q, %q, %q of %q, %q, %q", topic, path, id, one.Topic, one.Log.Path.V, one.Log.ID)
		}
		if found, err := db.LookupID(context.Background(), one.Log.ID); err != nil || len(found) != 1 {
			t.Fatalf("looked up %q: %d, %v", one.Log.ID, len(found), err)
		}
		if out, err = db.Store(context.Background(), rows, false); err != nil || out[0] != present {
			t.Fatalf("again: %v, %v", out[:1], err)
		}
	}
	// The ledger's filters and reasons come from people.
	l := ledgerdb.New(db.DB)
	for range 50 {
		x := text(r)
		if _, err := l.List(context.Background(), ledger.Filter{Path: x}, ledger.Page{}); err != nil {
			t.Fatalf("filter %q: %v", x, err)
		}
		if err := l.Remember(context.Background(), x, x); err != nil {
			t.Fatalf("remember %q: %v", x, err)
		}
	}
	var rows, canary int
	d.Query(t, `SELECT (SELECT count(*) FROM decision_logs), (SELECT sum(n) FROM canary)`, &rows, &canary)
	if rows != want || canary != 1 {
		t.Fatalf("%d rows, want %d; the canary has %d", rows, want, canary)
	}
}

func literal(s string) string {
	return ` E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + `'`
}

// quoted is a JSON string.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		if c < 0x20 || c == '"' || c == '\\' {
			fmt.Fprintf(&b, `\u%04x`, c)
			continue
		}
		b.WriteRune(c)
	}
	return b.String() + `"`
}
