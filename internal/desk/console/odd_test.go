package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// TestDecisions_OddNames: ids that a browser or a server would take for ways, and a timestamp that an offset moves out of the
// years of JSON. Each has a page that the list leads to, and each is exported.
func TestDecisions_OddNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := strings.NewReplacer(".", "dot", "/", "slash").Replace
	odd := map[string]string{".": "2026-03-01T11:00:00Z", "..": "2026-03-01T11:00:01Z", "/": "2026-03-01T11:00:02Z", "//": "2026-03-01T11:00:03Z", "/.": "2026-03-01T11:00:04Z", "a/": "2026-03-01T11:00:05Z", "late-one": "9999-12-31T23:59:59-01:00", "early-one": "0000-01-01T00:00:00+01:00"}
	for id, at := range odd {
		if err := w.store.AddRaw([]byte(`{"decision_id":"` + id + `","timestamp":"` + at + `","path":"path/of/` + name(id) + `","result":true}`)); err != nil {
			t.Fatal(err)
		}
	}
	b := w.as(t, "auditor")
	for id := range odd {
		path := "path/of/" + name(id)
		list := b.get(t, "/decisions?path="+path+"&order=oldest&until=9999-12-31")
		if id == "late-one" {
			list = b.get(t, "/decisions?path="+path+"&since=2027-01-01")
		}
		m := regexp.MustCompile(`href="(/decisions[/?][^"]*timestamp=[^"]*)"`).FindStringSubmatch(list.body)
		if m == nil {
			t.Errorf("%q: the list has no link: %d\n%s", id, list.code, list.body)
			continue
		}
		to := html.UnescapeString(m[1])
		if strings.Contains(strings.ToLower(strings.ReplaceAll(to, "%2e", ".")), "/.") {
			t.Errorf("%q: a browser shortens %s", id, to)
		}
		a := b.get(t, to)
		if a.code != http.StatusOK || !strings.Contains(a.body, "docket why -- ") || !strings.Contains(a.body, path) {
			t.Errorf("%s: %d\n%s", to, a.code, a.body)
		}
		for _, format := range []string{"jsonl", "csv"} {
			file := b.get(t, "/export/decisions?format="+format+"&path="+path+"&since=2027-01-01").body + b.get(t, "/export/decisions?format="+format+"&path="+path+"&until=2027-01-01").body
			if !strings.Contains(file, path) || strings.Count(file, "\n") < 3 {
				t.Errorf("%q as %s: %s", id, format, file)
			}
			for _, line := range strings.Split(strings.TrimSpace(file), "\n") {
				if format == "jsonl" && !json.Valid([]byte(line)) {
					t.Errorf("%q: %s", id, line)
				}
			}
		}
	}
}
