//go:build integration

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/history/reader"
	"docket/internal/postgres"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
)

// A row of an earlier release whose text would be 1.2 GB breaks no page, is archived, and comes back readable.
func TestUnreadable_ShownAndArchived(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	const odd = `-1e30000,{"k\"é":1.5e-200,"z":0e-150,"none":null,"yes":true},-123.4560e150,12e9,2.50,"x y",[],{}`
	a.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, allowed, labels, raw, source_topic, source_partition, source_offset, source_index)
		SELECT 'bomb', '%s'::timestamptz + interval '1 hour', 'authz/allow', true, '{"id":"opa"}', ('{"decision_id":"bomb","odd":[%s],"n":[' || repeat('1e30000,', 39999) || '1e30000]}')::jsonb, 't', 0, 99, 0`,
		a.day, odd))
	a.Exec(t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, labels, raw, source_topic, source_partition, source_offset, source_index)
		SELECT 'odd', '%s'::timestamptz + interval '2 hours', 'authz/allow', '{"id":"opa"}', '{"decision_id":"odd","odd":[%s]}', 't', 0, 100, 0`, a.day, odd))
	db := open(t, a.URL, 0)
	one := func(id string) reader.Decision {
		t.Helper()
		all, err := postgres.NewReader(db.DB).ByID(t.Context(), id)
		if err != nil || len(all) != 1 {
			t.Fatalf("%s: %d, %v", id, len(all), err)
		}
		return all[0]
	}
	if d := one("bomb"); !d.Unreadable || d.Raw != nil || d.Labels != nil || d.Path == nil || *d.Path != "authz/allow" || d.Verdict != reader.Allowed || d.Offset != 99 {
		t.Errorf("it is shown as %+v", d)
	}
	if d := one("odd"); d.Unreadable || len(d.Raw) < 30_000 || d.Labels == nil {
		t.Errorf("what can be read is shown as unreadable: %v, %d bytes", d.Unreadable, len(d.Raw))
	}
	found, err := postgres.NewReader(db.DB).Search(t.Context(), reader.Filter{Since: a.day.Time, Until: a.day.Next().Time}, reader.Page{Limit: 100, Payload: true})
	if err != nil || len(found.Decisions) != 22 {
		t.Fatalf("a page with it: %d, %v", len(found.Decisions), err)
	}
	if done := a.archive(false); !done.Dropped || done.Rows != 22 {
		t.Fatalf("%+v", done)
	}
	if r := a.restore(); r.Stored != 22 || r.Differs != 0 {
		t.Fatalf("%+v", r)
	}
	d := one("bomb")
	same(t, d.Unfaithful, []string{""})
	const twin = `["-1e30000", {"z": "0e-150", "yes": true, "k\"é": "15e-201", "none": null}, "-123456e147", 12000000000, 2.50, "x y", [], {}]`
	text := string(d.Raw)
	if d.Unreadable || len(text) > 1_000_000 || strings.Count(text, `"1e30000"`) != 40_000 || !strings.Contains(text, twin) {
		t.Errorf("it came back as %.1000s (%d bytes)", text, len(text))
	}
	if d := one("odd"); d.Unfaithful != nil || len(d.Raw) < 30_000 {
		t.Errorf("what can be read was altered: %.200s", d.Raw)
	}
	if again := a.archive(false); !again.Reused || !again.Dropped {
		t.Errorf("the restored day is another: %+v", again)
	}
}

// A decision that an earlier release stored as it came, and that has a twin now, is the same when it comes again.
func TestUnfaithful_RowOfAnEarlierRelease(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 0)
	const came = `{"decision_id":"a","timestamp":"2024-05-01T12:00:00Z","x":[1e30000,1e30000,1e30000]}`
	d.Exec(t, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('a', '2024-05-01T12:00:00Z', '`+came+`', 't', 0, 1, 0)`)
	row := func(value string) pipeline.Row {
		record, refused := decision.Decode([]byte(value), 1<<20)
		if refused != nil || record.Parts[0].Err != nil || record.Parts[0].Log.Unfaithful == nil {
			t.Fatalf("refused: %v, or jsonb can hold it", refused)
		}
		return pipeline.Row{Log: &record.Parts[0].Log, Topic: "t", Offset: 1}
	}
	for value, want := range map[string]pipeline.Outcome{came: pipeline.Present, strings.Replace(came, "1e30000]", "1e30001]", 1): pipeline.Conflicting} {
		r := row(value)
		for range 2 {
			outcomes, err := db.Store(context.Background(), []pipeline.Row{r}, false)
			if err != nil {
				t.Fatal(err)
			}
			same(t, outcomes, []pipeline.Outcome{want})
		}
		outcomes, err := db.Compare(context.Background(), []*decision.Log{r.Log})
		if err != nil {
			t.Fatal(err)
		}
		same(t, outcomes, []pipeline.Outcome{want})
	}
}

// What has a twin is found equal to the very bytes that came, and to nothing else.
func TestUnfaithful_LookedUp(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t).URL, 0)
	for i, member := range []string{`"x":[1e30000,1e30000,1e30000]`, `"x":"\u0000"`, `"x":"\ud800"`, `"x":1e200000`, `"x":"\ufffd"`} {
		value := fmt.Sprintf(`{"decision_id":"d-%d","timestamp":"2024-05-01T12:00:00Z",%s}`, i, member)
		record, refused := decision.Decode([]byte(value), 1<<20)
		if refused != nil || record.Parts[0].Err != nil {
			t.Fatalf("%s is refused", value)
		}
		log := &record.Parts[0].Log
		if _, err := db.Store(context.Background(), []pipeline.Row{{Log: log, Topic: "t", Offset: int64(i)}}, false); err != nil {
			t.Fatal(err)
		}
		twin := strings.NewReplacer(`\u0000`, `\ufffd`, `\ud800`, `\ufffd`, `1e200000`, `"1e200000"`, `,1e30000]`, `,"1e30000"]`).Replace(value)
		for raw, equal := range map[string]bool{value: true, twin: twin == value, strings.Replace(value, "}", `,"y":1}`, 1): false} {
			found, err := db.Lookup(t.Context(), []postgres.Sought{{ID: log.ID, Time: log.Time, Raw: []byte(raw)}})
			if err != nil || len(found) != 1 || found[0].Equal != equal {
				t.Errorf("%s beside %s: %+v, %v", raw, value, found, err)
			}
		}
	}
}
