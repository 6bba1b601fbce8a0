package console_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/desk/api"
	"docket/internal/desk/console"
	"docket/internal/desk/ledger"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/testkit/readertest"
)

var update = flag.Bool("update", false, "write the golden pages again")

func golden(t *testing.T, name, body string) {
	t.Helper()
	body = regexp.MustCompile(`/assets/[0-9a-f]+/`).ReplaceAllString(body, "/assets/VERSION/")
	body = regexp.MustCompile(`name="dry_run" value="[^"]+"`).ReplaceAllString(body, `name="dry_run" value="SEALED"`)
	body = regexp.MustCompile(`data-last="[^"]+"`).ReplaceAllString(body, `data-last="PLACE"`)
	file := filepath.Join("testdata", name+".html")
	if *update {
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(body, "\n")); diff != "" {
		t.Errorf("%s (run with -update if it is right):\n%s", name, diff)
	}
}

// TestScreens_Golden: each screen is as it was looked at.
func TestScreens_Golden(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	audited(w.book, 3, func(i int) (string, ledger.Act) {
		return []string{"docket desk", "mara", "olga"}[i], []ledger.Act{ledger.Entered, ledger.Proposed, ledger.Approved}[i]
	})
	id := readertest.Decisions(30, noon)[6].ID
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	for name, path := range map[string]string{"now": "/", "decisions": "/decisions?verdict=denied&since=2h", "nothing": "/decisions?path=none", "wrong": "/decisions?q=colour:red", "why": "/decisions/" + id,
		"compare": "/compare?a=" + id + "&b=" + readertest.Decisions(30, noon)[12].ID, "rates": "/rates?since=2h", "revisions": "/rates?by=revision", "flips": "/flips", "subject": "/subjects/10.0.0.7", "where": "/where?q=d-1", "audit": "/audit?act=all", "archive": "/archive?month=2026-02", "letters": "/dead-letters", "group": group, "letter": "/dead-letters/" + letterID(0) + "?payload=1", "absent": "/decisions/none-of-these"} {
		golden(t, name, w.as(t, "operator").get(t, path).body)
	}
	golden(t, "lanes", w.as(t, "viewer").get(t, "/lanes").body)
	w.clock.pass(1)
	golden(t, "dryrun", w.as(t, "operator").post(t, group+"/dry-run", nil).body)
	golden(t, "columns", w.as(t, "viewer").get(t, "/decisions/"+id).body)
	golden(t, "login", w.browser().get(t, "/login").body)
}

// TestScreens_FilterStaysInTheURL: a line becomes an address, and a page of it has the same filter in its links.
func TestScreens_FilterStaysInTheURL(t *testing.T) {
	t.Parallel()
	b := newWorld(t).as(t, "auditor")
	a := b.get(t, "/decisions?"+url.Values{"q": {`verdict:denied path:http/* since:2h input:/n=1`}}.Encode())
	if to := a.header.Get("Location"); a.code != http.StatusSeeOther || to != "/decisions?match=input%3A%2Fn%3D1&path=http%2F%2A&since=2h&verdict=denied" {
		t.Fatalf("%d to %s", a.code, to)
	}
	a = b.get(t, a.header.Get("Location"))
	for _, want := range []string{`value="verdict:denied path:http/* input:/n=1 since:2h"`, "docket logs --since 2h --verdict denied --path &#39;http/*&#39; --match input:/n=1", "They ignore match, verdict."} {
		if !strings.Contains(a.body, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

func TestScreens_OlderGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.store.Add(readertest.Decisions(120, noon.Add(-24*60*60*1e9))...)
	b, seen, path := w.as(t, "viewer"), map[string]bool{}, "/decisions?order=newest"
	next := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	for range 5 {
		a := b.get(t, path)
		for _, m := range regexp.MustCompile(`/decisions/([^"?]+)\?timestamp=[^"]+"`).FindAllString(a.body, -1) {
			if seen[m] {
				t.Fatalf("%s comes twice", m)
			}
			seen[m] = true
		}
		m := next.FindStringSubmatch(a.body)
		if m == nil {
			break
		}
		path = strings.ReplaceAll(m[1], "&amp;", "&")
	}
	if len(seen) != 150 {
		t.Errorf("%d of 150 decisions were seen", len(seen))
	}
}

func TestScreens_LooksAreNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := readertest.Decisions(30, noon)[6].ID
	w.as(t, "viewer").get(t, "/decisions/"+id)
	if strings.Contains(w.log.String(), "decisions read") {
		t.Error("columns count as a look")
	}
	a := w.as(t, "auditor").get(t, "/decisions/"+id)
	if !strings.Contains(a.body, readertest.Secret) || !strings.Contains(w.log.String(), `"operator":"aude","operation":"explain-decision"`) {
		t.Error("the payload is missing, or the look is not noted")
	}
	if strings.Contains(w.log.String(), readertest.Secret) {
		t.Error("the log has a payload")
	}
}

func TestScreens_ViewerSeesNoPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	for _, path := range []string{"/decisions", "/decisions/" + readertest.Decisions(30, noon)[6].ID, "/dead-letters/" + letterID(0), "/rates"} {
		if a := b.get(t, path); a.code != http.StatusOK || strings.Contains(a.body, readertest.Secret) || strings.Contains(a.body, marker) {
			t.Errorf("%s: %d, or a payload", path, a.code)
		}
	}
	if a := b.get(t, "/decisions?match=input:/n=1"); a.code != http.StatusForbidden || !strings.Contains(a.body, "role auditor") {
		t.Errorf("a viewer asks what a payload holds: %d", a.code)
	}
}

func TestScreens_SayWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) { p.Complete = &complete.Answers{} })
	b := w.as(t, "auditor")
	for _, path := range []string{"/decisions", "/decisions/" + readertest.Decisions(30, noon)[6].ID, "/rates", "/flips", "/subjects/10.0.0.7"} {
		if a := b.get(t, path); !strings.Contains(a.body, "Until when it is complete is not known.") || !strings.Contains(a.body, "as of") {
			t.Errorf("%s does not say how complete it is", path)
		}
	}
	if a := b.get(t, "/where?q=x"); !strings.Contains(a.body, "spool of host b") {
		t.Error("a place that was not looked at is not named")
	}
}

// TestTemplates_HaveNoCode: the policy of the page would refuse it, without a word to the reader.
func TestTemplates_HaveNoCode(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("templates/*.html")
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}
	wrong := regexp.MustCompile(`(?i)\son[a-z]+\s*=|\sstyle\s*=|hx-on|js:|javascript:|hx-vals|hx-vars|hx-trigger="[^"]*\[|<style|<script>|template\.(HTML|JS|URL|CSS)|https?://`)
	for _, file := range append(files, "functions.go", "page.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := wrong.FindString(string(text)); m != "" {
			t.Errorf("%s has %q", file, m)
		}
	}
	layout, _ := os.ReadFile("templates/layout.html")
	for _, want := range []string{`"allowEval":false`, `"includeIndicatorStyles":false`, `"allowScriptTags":false`, `"historyCacheSize":0`, `"selfRequestsOnly":true`} {
		if !strings.Contains(string(layout), want) {
			t.Errorf("the settings of htmx lack %s", want)
		}
	}
	script, _ := os.ReadFile("assets/console.js")
	live, _ := os.ReadFile("assets/live.js")
	if script = append(script, live...); len(live) == 0 {
		t.Error("there is no live.js")
	}
	if m := regexp.MustCompile(`innerHTML|eval\(|Function\(|document\.write|insertAdjacent`).FindString(string(script)); m != "" {
		t.Errorf("the script has %q", m)
	}
}

// TestAssets_HtmxIsTheOneThatIsNamed: a file beside it says which release it is.
func TestAssets_HtmxIsTheOneThatIsNamed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("assets/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile("assets/htmx.txt")
	if sum := sha256.Sum256(text); err != nil || !strings.Contains(string(note), "sha256 of htmx.min.js: "+hex.EncodeToString(sum[:])) || !bytes.Contains(text, []byte(`version:"2.0.11"`)) {
		t.Error("assets/htmx.txt names another file", err)
	}
}

func TestCommandLine_IsQuoted(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"a b": `'a b'`, "it's": `'it'\''s'`, "$(x)": `'$(x)'`, "authz/*": `'authz/*'`, "plain-1.2:3/4=5@6": "plain-1.2:3/4=5@6", "": "''", "-x": "-x", "\n": "'\n'"} {
		if got := console.ShellQuote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestScreens_FlipsOfShards: the pages have all flips of two shards once, and name a shard that was not asked.
func TestScreens_FlipsOfShards(t *testing.T) {
	t.Parallel()
	var of [2]*readertest.States
	for i := range of {
		of[i] = &readertest.States{Mark: state.Mark{StoredBefore: noon, StoredSince: noon.Add(-time.Hour), SubjectsBy: "requested_by:host"}}
		of[i].All = []state.State{{Key: state.Key{Subject: "10.0.0.7", Path: "p"}, Verdict: []reader.Verdict{"denied", "allowed"}[i], Decisions: 3,
			Since: state.Version{Time: noon.Add(-10 * time.Minute), ID: "d-0"}, Version: state.Version{Time: noon.Add(time.Duration(-5*i) * time.Minute), ID: "d-1"}, LastSeen: noon}}
		for n := range 70 {
			of[i].Note(state.Flip{ID: int64(n + 1), Key: state.Key{Subject: "10.0.0.7", Path: "p"}, Was: "allowed", Verdict: "denied", Version: state.Version{Time: noon, ID: fmt.Sprintf("of-%d-%d.", i, n)}, WasVersion: state.Version{Time: noon, ID: "d-0"}, StoredAt: noon.Add(time.Duration(n) * time.Second)})
		}
	}
	w := newWorld(t, func(_ *console.Config, _ *api.Config, p *api.Ports) {
		p.States = sharded.NewStates(sharded.StatesShard{Name: "a", Store: of[0]}, sharded.StatesShard{Name: "b", Store: of[1]})
	})
	b := w.as(t, "auditor")
	seen, older, pages := map[string]int{}, regexp.MustCompile(`rel="next" href="([^"]+)"`), 0
	for path := "/flips?since=1d"; path != "" && pages < 20; pages++ {
		a := b.get(t, path)
		if a.code != http.StatusOK || strings.Contains(a.body, "Something may be missing") {
			t.Fatalf("%s: %d", path, a.code)
		}
		for _, id := range regexp.MustCompile(`of-\d-\d+\.`).FindAllString(a.body, -1) {
			seen[id]++
		}
		if path = ""; older.MatchString(a.body) {
			path = html.UnescapeString(older.FindStringSubmatch(a.body)[1])
			if !strings.Contains(path, "places=") || !strings.Contains(path, "since=1d") {
				t.Errorf("the next page is %s", path)
			}
		}
	}
	if len(seen) != 140 {
		t.Errorf("%d pages have %d flips", pages, len(seen))
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("%s is there %d times", id, n)
		}
	}
	if a := b.get(t, "/subjects/10.0.0.7"); !strings.Contains(a.body, "doubtful: may be older") {
		t.Error("since of the state of two shards is not doubtful")
	}
	of[1].Fail(errors.New("gone"))
	for _, path := range []string{"/flips", "/subjects/10.0.0.7"} {
		if a := b.get(t, path); strings.Count(a.body, "Shard not asked: b") != 1 || !strings.Contains(a.body, "PARTIAL") {
			t.Errorf("%s does not name the shard", path)
		}
	}
	if a := b.get(t, "/flips?places=x"); a.code != http.StatusUnprocessableEntity {
		t.Errorf("wrong places: %d", a.code)
	}
}
