//go:build integration

package historydb_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
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
		all, err := historydb.NewReader(db.DB).ByID(t.Context(), id)
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
	found, err := historydb.NewReader(db.DB).Search(t.Context(), reader.Filter{Since: a.day.Time, Until: a.day.Next().Time}, reader.Page{Limit: 100, Payload: true})
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
