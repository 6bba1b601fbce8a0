//go:build integration

package historydb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/consumer/pipeline"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/schema"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
	"docket/migrations"
	"docket/sample"
)

// shapes are results and errors of every kind, beside what the sample has.
var shapes = []string{
	`"result":true`, `"result":false`, `"result":null`, `"result":"yes"`, `"result":3`, `"result":[]`, `"result":{}`, `"result":{"allow":true}`, `"result":{"allowed":false}`,
	`"result":{"allow":"no"}`, `"error":{"code":"internal"}`, `"error":null`, `"error":"it"`, `"error":{"code":"x"},"result":null`, `"error":{},"result":true`, `"error":{},"result":[1]`,
	`"result":{"n":1.0,"list":[{"a":1},"x"],"-1":"minus","a/b":1,"m~n":2,"":0}`, `"result":{"list":["a","b"]}`, `"input":null`, `"input":{"user":null}`,
}

// logged are decisions of the sample and of all shapes, over three days, several at one time.
func logged(t testing.TB) []pipeline.Row {
	t.Helper()
	var lines [][]byte
	for i, shape := range shapes {
		lines = append(lines, fmt.Appendf(nil, `{"decision_id":"shape-%02d","timestamp":"2026-11-21T02:00:39Z","path":"shapes/%d","requested_by":"[::1]:%d","labels":{"id":"o","n":5},%s}`, i, i%3, i, shape))
	}
	lines = append(lines, []byte(`{"decision_id":"pathless","timestamp":"2026-11-21T02:00:39Z"}`),
		fmt.Appendf(nil, `{"decision_id":"long","timestamp":"2026-11-21T02:00:39Z","path":"shapes/%s/x","requested_by":"%[1]s:1"}`, strings.Repeat("ö", 3000)),
		fmt.Appendf(nil, `{"decision_id":"longer","timestamp":"2026-11-21T02:00:39Z","path":"shapes/%s/y"}`, strings.Repeat("ö", 3000)),
		[]byte(`{"decision_id":"slashed","timestamp":"2026-11-21T02:00:39Z","path":"/shapes/0","requested_by":"10.0.0.1"}`))
	lines = append(lines, sample.DecisionLogs()[:200]...)
	random := rand.New(rand.NewPCG(1, 2))
	var rows []pipeline.Row
	for i, line := range lines {
		log := decoded(t, line)
		log.Time = noon.Add(time.Duration(random.IntN(50)) * time.Hour)
		rows = append(rows, pipeline.Row{Topic: "decision-logs", Partition: int32(i % 3), Offset: int64(i), Log: log})
	}
	return rows
}

func decoded(t testing.TB, line []byte) *decision.Log {
	t.Helper()
	record, refused := new(decision.Decoder).Decode(line, 1<<20)
	if refused != nil || len(record.Parts) != 1 || record.Parts[0].Err != nil {
		t.Fatalf("%s: %v", line, refused)
	}
	log := record.Parts[0].Log
	log.Pieces = nil // they are the decoder's
	return &log
}

// verdictOf is the rule of package reader, read off its words.
func verdictOf(t testing.TB, log *decision.Log) reader.Verdict {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(log.Raw, &fields); err != nil {
		t.Fatal(err)
	}
	has := func(name string) bool { v, ok := fields[name]; return ok && string(v) != "null" }
	switch {
	case log.Allowed.Valid && log.Allowed.V:
		return reader.Allowed
	case log.Allowed.Valid:
		return reader.Denied
	case has("error"):
		return reader.Error
	case !has("result"):
		return reader.Undefined
	}
	return reader.Other
}

func orNone[T any](p *T) string {
	if p == nil {
		return "NULL"
	}
	return fmt.Sprint(*p)
}

// meant says whether a decision is one that f means, one line of it after the other.
func meant(t testing.TB, f reader.Filter, r pipeline.Row) bool {
	log := r.Log
	under := func(p string) bool {
		if below, ok := strings.CutSuffix(p, "*"); ok && strings.HasSuffix(below, "/") {
			return strings.HasPrefix(log.Path.V, below)
		}
		return log.Path.Valid && log.Path.V == p
	}
	by := func(who string) bool {
		host, digits := log.RequestedBy.V, ""
		if i := strings.LastIndexByte(host, ':'); i >= 0 {
			host, digits = host[:i], host[i+1:]
		}
		return log.RequestedBy.V == who || digits != "" && (host == who || host == "["+who+"]")
	}
	var labels map[string]any
	_ = json.Unmarshal(log.Labels, &labels)
	for name, value := range f.Labels {
		if v, ok := labels[name]; !ok || fmt.Sprint(v) != value {
			return false
		}
	}
	return (f.Since.IsZero() || !log.Time.Before(f.Since)) && (f.Until.IsZero() || log.Time.Before(f.Until)) &&
		(len(f.Paths) == 0 || slices.ContainsFunc(f.Paths, under)) &&
		(len(f.Services) == 0 || log.Service.Valid && slices.Contains(f.Services, log.Service.V)) &&
		(len(f.Verdicts) == 0 || slices.Contains(f.Verdicts, verdictOf(t, log))) &&
		(len(f.RequestedBy) == 0 || slices.ContainsFunc(f.RequestedBy, by))
}

// searched reads page after page to the end.
func searched(t testing.TB, store reader.Store, f reader.Filter, p reader.Page) (all []string) {
	t.Helper()
	for pages := 0; ; pages++ {
		found, err := store.Search(t.Context(), f, p)
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		if len(found.Decisions) > p.Limit || pages > 300 {
			t.Fatalf("%+v: %d decisions on page %d", f, len(found.Decisions), pages)
		}
		for _, d := range found.Decisions {
			all = append(all, d.ID)
			if (d.Raw != nil) != p.Payload {
				t.Fatalf("%s: its payload is %q", d.ID, d.Raw)
			}
		}
		if p.After = found.Next; p.After == "" {
			return all
		}
	}
}

func wanted(t testing.TB, rows []pipeline.Row, f reader.Filter, oldest bool) (ids []string) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r pipeline.Row) bool { return !meant(t, f, r) })
	slices.SortFunc(rows, func(a, b pipeline.Row) int {
		if c := a.Log.Time.Compare(b.Log.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Log.ID, b.Log.ID)
	})
	if !oldest {
		slices.Reverse(rows)
	}
	for _, r := range rows {
		ids = append(ids, r.Log.ID)
	}
	return ids
}

var filters = map[string]reader.Filter{
	"all": {}, "of a time": {Since: noon.Add(3 * time.Hour), Until: noon.Add(9 * time.Hour)}, "since": {Since: noon.Add(30 * time.Hour)}, "until": {Until: noon.Add(20 * time.Hour)},
	"of a path": {Paths: []string{"http/example/authz/allow"}}, "below a path": {Paths: []string{"http/*", "shapes/1"}}, "of a path that is long": {Paths: []string{"shapes/" + strings.Repeat("ö", 3000) + "/x"}},
	"below a path that is long": {Paths: []string{"shapes/" + strings.Repeat("ö", 3000) + "/*"}}, "of no path": {Paths: []string{"http"}},
	"of services": {Services: []string{"shapes", "kubernetes"}}, "of a service and a path": {Services: []string{"shapes"}, Paths: []string{"shapes/0", "feature/*"}}, "of no service": {Services: []string{"shape"}},
	"denied": {Verdicts: []reader.Verdict{reader.Denied}}, "denied on a path": {Paths: []string{"http/example/authz/allow"}, Verdicts: []reader.Verdict{reader.Denied}},
	"odd": {Verdicts: []reader.Verdict{reader.Undefined, reader.Error}}, "odd of a service": {Services: []string{"shapes"}, Verdicts: []reader.Verdict{reader.Other, reader.Allowed}},
	"by a host": {RequestedBy: []string{"127.0.0.1"}}, "by a host and a port": {RequestedBy: []string{"127.0.0.1:58162", "[::1]:7"}}, "by IPv6": {RequestedBy: []string{"::1"}}, "by IPv6 in brackets": {RequestedBy: []string{"[::1]"}},
	"by a host that is a piece of one": {RequestedBy: []string{"127.0.0", "127.0.0.", "[::1"}}, "by a host without a port": {RequestedBy: []string{"10.0.0.1"}}, "by a host that is long": {RequestedBy: []string{strings.Repeat("ö", 3000)}},
	"by a host on a path": {RequestedBy: []string{"127.0.0.1"}, Paths: []string{"http/example/authz/allow"}}, "by a port on a path, denied": {RequestedBy: []string{"[::1]:7", "127.0.0.1"}, Paths: []string{"shapes/0", "shapes/1"}, Verdicts: []reader.Verdict{reader.Denied, reader.Undefined}},
	"by hosts below a path": {RequestedBy: []string{"::1", "127.0.0.1"}, Paths: []string{"shapes/*"}}, "by a host of a service": {RequestedBy: []string{"127.0.0.1"}, Services: []string{"kubernetes", "http"}},
	"with a label": {Labels: map[string]string{"id": "o", "n": "5"}}, "with a label that differs": {Labels: map[string]string{"id": "o", "n": "6"}},
}

func TestSearch_InOrderBothWays(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"days", "plain", "over", "some over"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pg := pgtest.New(t)
			switch kind {
			case "plain":
				pg = pgtest.NewPlain(t)
			case "some over":
				pg.Exec(t, `DROP TABLE decision_logs_before; SET TimeZone = 'UTC';
					CREATE TABLE decision_logs_p20240501 PARTITION OF decision_logs FOR VALUES FROM ('2024-05-01') TO ('2024-05-02');
					CREATE TABLE decision_logs_p20240502 PARTITION OF decision_logs FOR VALUES FROM ('2024-05-02') TO ('2024-05-03');
					CREATE TABLE decision_logs_p20240503 PARTITION OF decision_logs FOR VALUES FROM ('2024-05-03') TO ('2024-05-03 20:00')`)
			}
			rows := logged(t)
			db := open(t, pg.URL, time.Minute) // some thousand pages: one of them meets the worst moment of a busy machine
			save(t, db, rows...)
			if strings.Contains(kind, "over") {
				want := int64(len(migrations.DayIndexes))
				if kind == "some over" {
					want *= 3
				} else {
					endYesterday(t, pg)
				}
				if n, err := historydb.NewReader(db.DB).Index(t.Context()); err != nil || n != want {
					t.Fatalf("%d indexes made, %v, want %d", n, err, want)
				}
				if n, err := historydb.NewReader(db.DB).Index(t.Context()); err != nil || n != 0 {
					t.Fatalf("%d indexes made again, %v", n, err)
				}
			}
			if kind == "some over" {
				pg.Exec(t, `DROP INDEX decision_logs_p20240502_path_ts, decision_logs_p20240502_verdict_ts`)
			}
			for name, f := range filters {
				for _, p := range []reader.Page{{Limit: 17}, {Limit: 50, Oldest: true, Payload: true}} {
					if want, got := wanted(t, rows, f, p.Oldest), searched(t, historydb.NewReader(db.DB), f, p); !slices.Equal(want, got) {
						t.Errorf("%s, %+v: %d found\n%v\nwant %d\n%v", name, p, len(got), got, len(want), want)
					}
				}
			}
		})
	}
}

// TestSearch_DecisionsOfOneMoment: pages end between them, and the moment is the end of what is asked for.
func TestSearch_DecisionsOfOneMoment(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 20*time.Second)
	var rows []pipeline.Row
	for _, id := range []string{"a", "B", "ä", "a b", "Z"} {
		rows = append(rows, row(id, noon, `{"n":1}`))
	}
	save(t, db, append(rows, row("before", noon.Add(-time.Microsecond), `{"n":1}`), row("behind", noon.Add(time.Microsecond), `{"n":1}`))...)
	f := reader.Filter{Since: noon, Until: noon.Add(time.Microsecond)}
	for _, oldest := range []bool{false, true} {
		for _, limit := range []int{1, 2, 5, 9} {
			same(t, searched(t, historydb.NewReader(db.DB), f, reader.Page{Limit: limit, Oldest: oldest}), wanted(t, rows, f, oldest))
		}
	}
	// A large payload that the caller holds is not read again: only that one, although others have its time or its id.
	save(t, db, row("ä", noon.Add(time.Hour), `{"n":2}`))
	held := reader.Decision{Row: reader.Row{ID: "ä", Time: noon.Truncate(time.Microsecond)}, Raw: []byte(`"` + strings.Repeat("held", 10_000) + `"`)}
	ctx := reader.WithHeld(t.Context(), []reader.Decision{held})
	r := historydb.NewReader(db.DB)
	page, err := r.Search(ctx, f, reader.Page{Limit: 9, Payload: true})
	if err != nil {
		t.Fatal(err)
	}
	byID, err := r.ByID(ctx, "ä")
	if err != nil || len(byID) != 2 || len(page.Decisions) != 5 {
		t.Fatalf("%d, %d, %v", len(byID), len(page.Decisions), err)
	}
	for _, d := range append(byID, page.Decisions...) {
		if is := d.ID == "ä" && d.Time.Equal(held.Time); is != (string(d.Raw) == string(held.Raw)) || len(d.Raw) == 0 {
			t.Errorf("%s of %v has %.40s", d.ID, d.Time, d.Raw)
		}
	}
	if page, err := r.Search(ctx, f, reader.Page{Limit: 9}); err != nil || page.Decisions[0].Raw != nil {
		t.Errorf("a page without payloads has some, %v", err)
	}
}

func TestSearch_Verdicts(t *testing.T) {
	t.Parallel()
	rows := logged(t)
	for i, line := range sample.DecisionLogs()[200:] {
		log := decoded(t, line)
		rows = append(rows, pipeline.Row{Topic: "more", Offset: int64(i), Log: log})
	}
	db := open(t, pgtest.New(t).URL, 20*time.Second)
	save(t, db, rows...)
	for _, r := range rows {
		found, err := historydb.NewReader(db.DB).ByID(t.Context(), r.Log.ID)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %d, %v", r.Log.ID, len(found), err)
		}
		d := found[0]
		if want := verdictOf(t, r.Log); d.Verdict != want || !d.Time.Equal(r.Log.Time.Truncate(time.Microsecond)) || orNone(d.Path) != orNull(r.Log.Path.V, r.Log.Path.Valid) ||
			orNone(d.Service) != orNull(r.Log.Service.V, r.Log.Service.Valid) || d.Offset != r.Offset || d.StoredAt.IsZero() || (d.Labels == nil) != (r.Log.Labels == nil) || d.Raw == nil {
			t.Errorf("want %s: %+v", want, d)
		}
	}
	if found, err := historydb.NewReader(db.DB).ByID(t.Context(), "none"); err != nil || len(found) != 0 {
		t.Errorf("%v, %v", found, err)
	}
}

func orNull(v string, valid bool) string {
	if !valid {
		return "NULL"
	}
	return v
}

func TestSearch_MatchIsEqualAsJSON(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 20*time.Second)
	save(t, db, logged(t)...)
	value := func(text string) json.RawMessage { return json.RawMessage(text) }
	for _, c := range []struct {
		match reader.Match
		want  string
	}{
		{reader.Match{In: "result", Pointer: "/n", Value: value("1")}, "shape-16"}, {reader.Match{In: "result", Pointer: "/n", Value: value("1.00")}, "shape-16"}, {reader.Match{In: "result", Pointer: "/n", Value: value(`"1"`)}, ""},
		{reader.Match{In: "result", Pointer: "/list/0/a", Value: value("1")}, "shape-16"}, {reader.Match{In: "result", Pointer: "/list/1", Value: value(`"b"`)}, "shape-17"},
		{reader.Match{In: "result", Pointer: "/list/-1", Value: value(`"b"`)}, ""}, {reader.Match{In: "result", Pointer: "/list/01"}, ""}, {reader.Match{In: "result", Pointer: "/-1", Value: value(`"minus"`)}, "shape-16"},
		{reader.Match{In: "result", Pointer: "/a~1b", Value: value("1")}, "shape-16"}, {reader.Match{In: "result", Pointer: "/m~0n", Value: value("2")}, "shape-16"}, {reader.Match{In: "result", Pointer: "/", Value: value("0")}, "shape-16"},
		{reader.Match{In: "raw", Pointer: "/decision_id", Value: value(`"shape-03"`)}, "shape-03"}, {reader.Match{In: "result", Pointer: "", Value: value(`"yes"`)}, "shape-03"},
		{reader.Match{In: "input", Pointer: "/user", Value: value("null")}, "shape-19"},
	} {
		got := searched(t, historydb.NewReader(db.DB), reader.Filter{Matches: []reader.Match{c.match}}, reader.Page{Limit: 10})
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %q = %s: %v, want %q", c.match.In, c.match.Pointer, c.match.Value, got, c.want)
		}
	}
	there := searched(t, historydb.NewReader(db.DB), reader.Filter{Paths: []string{"shapes/*"}, Matches: []reader.Match{{In: "input"}}}, reader.Page{Limit: 10})
	if slices.Sort(there); strings.Join(there, " ") != "shape-18 shape-19" {
		t.Errorf("with an input, null or not: %v", there)
	}
	for _, m := range []reader.Match{{In: "labels"}, {In: "input", Pointer: "user"}, {In: "input", Pointer: "/~2"}} {
		if _, err := historydb.NewReader(db.DB).Search(t.Context(), reader.Filter{Matches: []reader.Match{m}}, reader.Page{}); !errors.As(err, new(*historydb.FilterError)) {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestSearch_CursorOfAnotherOrder(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 20*time.Second)
	save(t, db, logged(t)...)
	found, err := historydb.NewReader(db.DB).Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1})
	if err != nil || found.Next == "" {
		t.Fatal(found, err)
	}
	for _, cursor := range []string{"x", "?", found.Next + "A", found.Next[1:]} {
		if _, err := historydb.NewReader(db.DB).Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1, After: cursor}); !errors.Is(err, reader.ErrCursor) && cursor != found.Next+"A" {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	if _, err := historydb.NewReader(db.DB).Search(t.Context(), reader.Filter{}, reader.Page{Limit: 1, After: found.Next, Oldest: true}); !errors.Is(err, reader.ErrCursor) {
		t.Errorf("of the other order: %v", err)
	}
}

func TestStats_EachDecisionOnce(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 20*time.Second)
	rows := logged(t)
	save(t, db, rows...)
	for _, step := range []time.Duration{time.Hour, 30 * time.Minute, 24 * time.Hour} {
		for _, byPath := range []bool{true, false} {
			statsAre(t, historydb.NewReader(db.DB), reader.StatsQuery{Since: noon, Until: noon.Add(72 * time.Hour), Step: step, ByPath: byPath}, rows)
			statsAre(t, historydb.NewReader(db.DB), reader.StatsQuery{Since: noon, Until: noon.Add(48 * time.Hour), Step: step, ByPath: byPath, Services: []string{"shapes", "http"}, Paths: []string{"shapes/*", "http/example/authz"}}, rows)
		}
	}
}

// statsAre counts by hand.
func statsAre(t testing.TB, store reader.Store, q reader.StatsQuery, rows []pipeline.Row) {
	t.Helper()
	want, got := map[string]int64{}, map[string]int64{}
	for _, r := range rows {
		if !meant(t, reader.Filter{Since: q.Since, Until: q.Until, Paths: q.Paths, Services: q.Services}, r) {
			continue
		}
		name := r.Log.Service.V
		if q.ByPath {
			name = r.Log.Path.V
		}
		want[fmt.Sprint(q.Since.Add(r.Log.Time.Sub(q.Since).Truncate(q.Step)).UTC(), " ", name, " ", verdictOf(t, r.Log))]++
	}
	stats, err := store.Stats(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range stats {
		for v, n := range s.Counts {
			got[fmt.Sprint(s.From, " ", s.Name, " ", v)] += n
		}
	}
	if len(want) == 0 {
		t.Fatal("nothing is wanted")
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s: %d, want %d", k[:min(len(k), 100)], got[k], n)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d counts, want %d", len(got), len(want))
	}
}

func pgxConnect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestCount_BeforeEveryOpenTransaction(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	db := open(t, pg.URL, 20*time.Second)
	// Paths of more than 1,000 bytes are counted as (other).
	rows := slices.DeleteFunc(logged(t), func(r pipeline.Row) bool { return len(r.Log.Path.V) > 1000 })
	save(t, db, rows[:100]...)
	stale := `UPDATE decision_logs SET stored_at = stored_at - interval '1 hour'` // the mark stays behind the clock
	pg.Exec(t, stale)
	counter := historydb.NewReader(db.DB)
	count := func(want int64) {
		t.Helper()
		if n, err := counter.Count(t.Context()); err != nil || n != want {
			t.Fatalf("%d counted, %v, want %d", n, err, want)
		}
	}
	open := pgxConnect(t, pg.URL)
	late, err := open.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := late.Exec(t.Context(), `SELECT`); err != nil {
		t.Fatal(err)
	}
	count(0) // as long as somebody may still store something
	count(0)
	month := reader.StatsQuery{Since: noon.Truncate(time.Hour), Until: noon.Truncate(time.Hour).Add(72 * time.Hour), Step: 24 * time.Hour, ByPath: true}
	statsAre(t, historydb.NewReader(db.DB), month, rows[:100])
	if _, err := late.Exec(t.Context(), `INSERT INTO decision_logs (decision_id, ts, stored_at, raw, source_topic, source_partition, source_offset, source_index)
		VALUES ('late', $1, now() - interval '1 hour', '{"result":[]}', 't', 1, 1, 0)`, noon); err != nil {
		t.Fatal(err)
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	count(101)
	lateRow := row("late", noon, `{"result":[]}`)
	statsAre(t, historydb.NewReader(db.DB), month, append(slices.Clone(rows[:100]), lateRow))
	// Of a range that ends where there are counts, too: they begin with since and end before until.
	part := month
	for _, part.Step = range []time.Duration{time.Hour, 3 * time.Hour} {
		part.Since, part.Until = month.Since.Add(9*time.Hour), month.Since.Add(24*time.Hour)
		statsAre(t, historydb.NewReader(db.DB), part, append(slices.Clone(rows[:100]), lateRow))
	}
	// Later rows are counted beside the counts, whatever hour they are of, and are not counted twice once the counts have them.
	// They are stored in the time to come: however long this takes, the mark does not come to them.
	save(t, db, rows[100:]...)
	pg.Exec(t, `UPDATE decision_logs SET stored_at = now() + interval '1 hour' WHERE stored_at > now() - interval '30 minutes'`)
	all := append(slices.Clone(rows), lateRow)
	statsAre(t, historydb.NewReader(db.DB), month, all)
	count(0)
	statsAre(t, historydb.NewReader(db.DB), month, all)
	// The counts outlive the rows, and rows that come back are not counted again.
	pg.Exec(t, `CREATE TABLE shelf AS SELECT * FROM decision_logs WHERE stored_at < now() - interval '30 minutes'`)
	pg.Exec(t, `DELETE FROM decision_logs WHERE stored_at < now() - interval '30 minutes'`)
	statsAre(t, historydb.NewReader(db.DB), month, all)
	pg.Exec(t, `INSERT INTO decision_logs SELECT * FROM shelf`)
	count(0)
	statsAre(t, historydb.NewReader(db.DB), month, all)
}

// endYesterday takes yesterday from what is before the days, and leaves no place for it: a day is over only once it ended an hour
// ago, and in the first hour of today yesterday is not.
func endYesterday(t *testing.T, pg *pgtest.DB) {
	t.Helper()
	pg.Exec(t, `ALTER TABLE decision_logs DETACH PARTITION decision_logs_before`)
	pg.Exec(t, `ALTER TABLE decision_logs ATTACH PARTITION decision_logs_before FOR VALUES FROM (MINVALUE) TO ('`+
		time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)+` 00:00:00Z')`)
}

func TestIndex_WhileTheTableIsWritten(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	endYesterday(t, pg)
	db := open(t, pg.URL, 20*time.Second)
	const valid = `SELECT count(*) FILTER (WHERE indisvalid)::int, count(*)::int FROM pg_index WHERE indrelid::regclass::text LIKE 'decision\_logs%' AND indexrelid::regclass::text ~ '_(times_brin|ts_stored_at_rtrim_path_idx)'`
	var before, tables, again int
	pg.Query(t, `SELECT count(*)::int + 1 FROM pg_inherits WHERE inhparent = 'decision_logs'::regclass`, &tables)
	pg.Query(t, `SELECT count(*)::int FROM goose_db_version WHERE version_id >= 5`, &again)
	pg.Exec(t, `DROP INDEX decision_logs_times_brin; DELETE FROM goose_db_version WHERE version_id >= 5;
		INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
		SELECT 'n' || n, now() - interval '2 days' - n * interval '1 minute', '{}', 't', 0, n, 0 FROM generate_series(1, 12000) n;
		DROP TABLE decision_logs_p`+time.Now().UTC().AddDate(0, 0, 3).Format("20060102"))
	// An earlier run was killed: the table's index is there, and one of a partition is not finished.
	for _, x := range migrations.ReadIndexes {
		pg.Exec(t, `CREATE INDEX decision_logs_`+x.Name+` ON ONLY decision_logs `+x.Of)
		pg.Exec(t, `CREATE INDEX decision_logs_before_`+x.Name+` ON decision_logs_before `+x.Of)
		pg.Exec(t, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'decision_logs_before_`+x.Name+`'::regclass`)
	}
	pg.Exec(t, `CREATE INDEX decision_logs_before_host_ts ON decision_logs_before (ts)`)
	pg.Exec(t, `UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'decision_logs_before_host_ts'::regclass`)
	if made, err := schema.New(db.DB).MakePartitions(t.Context(), 3); err != nil || made != 1 {
		t.Fatalf("%d days made, %v", made, err)
	}
	writer := pgxConnect(t, pg.URL)
	done := make(chan error)
	go func() { // writes all the time
		for n := 0; ; n++ {
			select {
			case <-done:
				done <- nil
				return
			default:
			}
			if _, err := writer.Exec(context.Background(), `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('w' || $1::int, now(), '{}', 't', 0, 1, 0)`, n); err != nil {
				<-done
				done <- err
				return
			}
		}
	}()
	n, err := schema.New(db.DB).Migrate(t.Context())
	done <- nil
	if failed := <-done; err != nil || n != again || failed != nil {
		t.Fatalf("%d applied, %v; the writer: %v", n, err, failed)
	}
	pg.Query(t, valid, &before, &n)
	if before != n || n != tables {
		t.Errorf("%d of %d indexes are valid, want %d", before, n, tables)
	}
	pg.Query(t, `SELECT count(*)::int FROM pg_index WHERE indisvalid AND indrelid = 'decision_logs_before'::regclass AND indexrelid::regclass::text ~ '_(path_ts|host_ts|stored_brin)$'`, &n)
	same(t, n, 4)
	var parents int
	pg.Query(t, `SELECT count(*)::int FROM pg_index WHERE indrelid = 'decision_logs'::regclass AND indisvalid`, &parents)
	same(t, parents, 2)
}

// TestByID_TooMany: an answer that leaves rows of an id out says so.
func TestByID_TooMany(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 20*time.Second)
	var rows []pipeline.Row
	for i := range 1000 {
		rows = append(rows, row("d", noon.Add(time.Duration(i)*time.Second), `{}`))
	}
	save(t, db, rows...)
	r := historydb.NewReader(db.DB)
	if all, err := r.ByID(t.Context(), "d"); len(all) != 1000 || err != nil {
		t.Errorf("%d rows, %v", len(all), err)
	}
	save(t, db, row("d", noon.Add(-time.Second), `{}`))
	ctx, parts := reader.WithParts(t.Context())
	all, err := r.ByID(ctx, "d")
	if len(all) != 1000 || err != nil || !all[0].Time.Before(noon) || len(parts.NotRead()) != 1 {
		t.Errorf("%d rows, %v, not read: %v", len(all), err, parts.NotRead())
	}
}
