package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestYears_OutsideOfJSON: an offset moves a timestamp to the year 10000 or before the year 0 in UTC. Such a decision is
// shown like every other, and hides no neighbour.
func TestYears_OutsideOfJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := map[string]string{"late-one": "9999-12-31T23:59:59-01:00", "early-one": "0000-01-01T00:00:00+01:00"}
	for id, at := range all {
		if err := w.store.AddRaw([]byte(`{"decision_id":"` + id + `","timestamp":"` + at + `","path":"a/b","result":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	type one struct {
		ID        string `json:"decision_id"`
		Timestamp time.Time
	}
	var found struct{ Decisions []one }
	w.ask(t, "viewer", "GET", "/decisions?order=oldest&limit=1000", "").into(t, &found)
	seen := 0
	for _, d := range found.Decisions {
		if text, is := all[d.ID]; is {
			want, _ := time.Parse(time.RFC3339, text)
			if seen++; !d.Timestamp.Equal(want) {
				t.Errorf("%s: %v", d.ID, d.Timestamp)
			}
		}
	}
	if seen != 2 || len(found.Decisions) < 3 {
		t.Errorf("%+v", found)
	}
	for id, text := range all {
		for _, path := range []string{"/decisions/" + id, "/decisions/" + id + "/why?timestamp=" + url.QueryEscape(text), "/rows?payload=true&id=" + id, "/homes?id=" + id, "/decisions/diff?a=" + id + "&b=" + id} {
			a := w.ask(t, "auditor", "GET", path, "")
			if a.code != http.StatusOK || !json.Valid([]byte(a.body)) || !strings.Contains(a.body, id) {
				t.Errorf("%s: %d %s", path, a.code, a.body)
			}
		}
	}
}
