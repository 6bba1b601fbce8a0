//go:build integration

package api_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/api"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgtest"
)

// TestDecisions_OnPostgres: pages and followers get each decision once while others are stored. A place from a text
// skips nothing.
func TestDecisions_OnPostgres(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db, err := store.Open(db.Config{URL: d.URL, StoreTimeout: 10 * time.Second}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	now := time.Now().UTC().Truncate(time.Microsecond)
	stored := 0
	store := func(n int, at time.Time) {
		rows := make([]pipeline.Row, n)
		for i := range rows {
			raw := fmt.Sprintf(`{"decision_id":"d-%04d","path":"a/b","input":{"user":"alice"},"result":%v,"timestamp":%q}`, stored, stored%2 == 0, at.Add(time.Duration(i)*time.Second).Format(time.RFC3339Nano))
			record, refused := decision.Decode([]byte(raw), 1<<20)
			if refused != nil || record.Parts[0].Err != nil {
				t.Fatal(refused)
			}
			rows[i] = pipeline.Row{Topic: "decision-logs", Offset: int64(stored), Log: &record.Parts[0].Log}
			stored++
		}
		if _, err := db.Store(t.Context(), rows, false); err != nil {
			t.Fatal(err)
		}
	}
	store(30, now.Add(-time.Hour))
	w := newWorld(t, func(c *api.Config, p *api.Ports) {
		p.Decisions, c.FollowEvery, c.Now = historydb.NewReader(db.DB), 50*time.Millisecond, time.Now
	})
	var begin api.Stored
	w.ask(t, "viewer", "GET", "/decisions/follow", "").into(t, &begin)

	seen, after := map[string]int{}, ""
	for page := range 50 {
		var list api.DecisionList
		w.ask(t, "viewer", "GET", "/decisions?limit=4&path=a/*"+after, "").into(t, &list)
		for _, one := range list.Decisions {
			seen[one.ID]++
		}
		if list.Next == "" {
			break
		}
		after = "&after=" + url.QueryEscape(list.Next)
		if page < 5 { // newer and older ones, and some between
			store(2, now.Add(time.Duration(page-60)*time.Minute+time.Millisecond))
		}
	}
	for i := range 30 {
		if id := fmt.Sprintf("d-%04d", i); seen[id] != 1 {
			t.Errorf("%s is on %d pages", id, seen[id])
		}
	}

	told, tail := map[string]int{}, begin.Tail
	for deadline := time.Now().Add(20 * time.Second); len(told) < stored-30 && time.Now().Before(deadline); {
		var more api.Stored
		w.ask(t, "viewer", "GET", "/decisions/follow?wait=2&limit=3&tail="+tail, "").into(t, &more)
		for _, one := range more.Decisions {
			told[one.ID]++
		}
		tail = more.Tail
	}
	for i := 30; i < stored; i++ {
		if id := fmt.Sprintf("d-%04d", i); told[id] != 1 {
			t.Errorf("%s is told %d times", id, told[id])
		}
	}
	again := newWorld(t, func(_ *api.Config, p *api.Ports) { p.Decisions = historydb.NewReader(db.DB) }) // another desk
	store(1, now)
	var rest api.Stored
	again.ask(t, "viewer", "GET", "/decisions/follow?wait=5&limit=1000&tail="+tail, "").into(t, &rest)
	found := false
	for _, one := range rest.Decisions {
		found = found || one.ID == fmt.Sprintf("d-%04d", stored-1)
	}
	if !found {
		t.Errorf("another desk leaves out what was stored since: %+v", rest)
	}
	if a := again.ask(t, "viewer", "GET", "/decisions/follow?tail="+tailAt(7), ""); a.code != 422 {
		t.Error(a)
	}
}
