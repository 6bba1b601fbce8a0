package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at is the place of a file of the repository.
func at(parts ...string) string {
	return filepath.Join(append([]string{"..", "..", ".."}, parts...)...)
}

func TestDashboard_IsFresh(t *testing.T) {
	t.Parallel()
	want, err := render(board())
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(at("deploy", "grafana", "docket.json"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("deploy/grafana/docket.json is stale; run go run ./deploy/check/dashboard (-wanted +found):\n%s", diff)
	}
}

// shown is what a test reads of the JSON.
type shown struct {
	UID, Title, Refresh string
	SchemaVersion       int
	Panels              []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ RefID, Expr string }
		FieldConfig              struct {
			Defaults struct {
				Mappings []struct {
					Options struct{ Result struct{ Text string } }
				}
			}
		}
	}
	Templating struct {
		List []struct {
			Name, Type string
			IncludeAll bool
		}
	}
}

func read(t *testing.T) (d shown) {
	t.Helper()
	text, err := render(board())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestPanels_PlacesAndNumbers(t *testing.T) {
	t.Parallel()
	d := read(t)
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		if p.ID <= 0 || ids[p.ID] {
			t.Errorf("%s: number %d is another's", p.Title, p.ID)
		}
		ids[p.ID] = true
		g := p.GridPos
		if g.X < 0 || g.W < 1 || g.H < 1 || g.X+g.W > columns {
			t.Errorf("%s: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, is := taken[[2]int{x, y}]; is {
					t.Fatalf("%s lies on %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	if diff := cmp.Diff([]string{"datasource", "job", "instance"}, names); diff != "" || d.UID != "docket" || d.SchemaVersion < 39 || d.Refresh == "" {
		t.Errorf("%+v %s", d, diff)
	}
}

func TestPanels_SayWhatIsNormal(t *testing.T) {
	t.Parallel()
	for _, p := range read(t).Panels {
		if p.Type == "row" {
			continue
		}
		if !strings.Contains(p.Description, "Normal: ") {
			t.Errorf("%s does not say what is normal", p.Title)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", p.Title)
		}
	}
}

func TestPanels_FirstRow(t *testing.T) {
	t.Parallel()
	text, err := render(board()[:1])
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"docket_hold", "no consumer", "docket_unaccounted_records", "docket_consumer_lag", "will not catch up", "docket_records_total", "docket_oldest_uncommitted_seconds", "docket_spool_dropped_records_total"} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("the first row has no %s", want)
		}
	}
	if first := board()[0].panels; first[0].w+first[1].w+first[2].w+first[3].w+first[4].w+first[5].w+first[6].w != columns || len(first) != 7 {
		t.Error("the first row is not one line")
	}
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	ourMetric = regexp.MustCompile(`\b(docket|go|process)_[a-z0-9_]+`)
	suffix    = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// asked are the metrics that an expression names.
func asked(expr string, known map[string]*metric) (names []string) {
	for _, name := range ourMetric.FindAllString(quoted.ReplaceAllString(expr, `""`), -1) {
		if base := suffix.ReplaceAllString(name, ""); known[name] == nil && known[base] != nil && known[base].kind == "histogram" {
			name = base
		}
		names = append(names, name)
	}
	return names
}

// unshown are metrics without a panel, each with the metric that shows it better.
var unshown = []string{
	"docket_kafka_", "go_", "process_", "docket_desk_api_request_seconds",
	"docket_postgres_pool_acquire_seconds_total", "docket_postgres_pool_acquires_total", "docket_postgres_pool_canceled_acquires_total",
	"docket_postgres_pool_connections", "docket_postgres_pool_constructing_connections", "docket_postgres_pool_empty_acquires_total",
	"docket_postgres_pool_idle_closed_connections_total", "docket_postgres_pool_lifetime_closed_connections_total",
}

func TestPanels_EveryMetric(t *testing.T) {
	t.Parallel()
	known, err := registered()
	if err != nil {
		t.Fatal(err)
	}
	on := map[string]bool{}
	for _, r := range board() {
		for _, p := range r.panels {
			for _, q := range p.queries {
				names := asked(q.expr, known)
				if len(names) == 0 {
					t.Errorf("%s asks for nothing of ours", p.title)
				}
				for _, name := range names {
					on[name] = true
					if known[name] == nil {
						t.Errorf("%s asks for %s, which no program has", p.title, name)
					}
				}
			}
		}
	}
	for name := range known {
		left := slices.ContainsFunc(unshown, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		if !on[name] && !left {
			t.Errorf("no panel shows %s", name)
		}
	}
}

func TestPanels_ExpressionsAreWhole(t *testing.T) {
	t.Parallel()
	variable := regexp.MustCompile(`\$\w+`)
	for _, r := range board() {
		for _, p := range r.panels {
			for _, q := range p.queries {
				if err := balanced(q.expr); err != nil {
					t.Errorf("%s: %v: %s", p.title, err, q.expr)
				}
				for _, v := range variable.FindAllString(q.expr, -1) {
					if !slices.Contains([]string{"$job", "$instance", "$__rate_interval", "$__range"}, v) {
						t.Errorf("%s: nobody replaces %s", p.title, v)
					}
				}
				if strings.ContainsAny(q.expr, "\t\n") {
					t.Errorf("%s is not one line: %s", p.title, q.expr)
				}
			}
		}
	}
}

func balanced(expr string) error {
	var open []rune
	closing := map[rune]rune{')': '(', ']': '[', '}': '{'}
	for _, c := range quoted.ReplaceAllString(expr, "") {
		switch c {
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != closing[c] {
				return fmt.Errorf("%q closes nothing", c)
			}
			open = open[:len(open)-1]
		case '"':
			return fmt.Errorf("a quote is left open")
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%q is left open", open)
	}
	return nil
}

// TestPanels_QuietWithoutData checks that a query may be without data. A collector without uploads has
// none.
func TestPanels_QuietWithoutData(t *testing.T) {
	t.Parallel()
	for _, r := range board() {
		for _, p := range r.panels {
			for i, q := range p.queries {
				idle := strings.HasSuffix(q.expr, "> 0") || strings.Contains(q.expr, "docket_collector_") && strings.HasPrefix(q.expr, "histogram_quantile(")
				if idle && !q.quiet {
					t.Errorf("%s / %s, query %s is not quiet", r.title, p.title, ref(i))
				}
			}
		}
	}
}

// TestPanels_LanesAreQuiet checks that a query of lanes or limits may be without data: both are off by default.
func TestPanels_LanesAreQuiet(t *testing.T) {
	t.Parallel()
	optional := regexp.MustCompile(`docket_(lane_|limit_|state_|shard_|collector_routed|collector_shaped)|lane!=""`)
	for _, r := range board() {
		for _, p := range r.panels {
			for i, q := range p.queries {
				if optional.MatchString(q.expr) && !q.quiet {
					t.Errorf("%s / %s, query %s is not quiet", r.title, p.title, ref(i))
				}
			}
		}
	}
}

// TestPanels_EachLane checks that a figure of lanes is not summed over them: the lag of bulk would hide that of urgent.
func TestPanels_EachLane(t *testing.T) {
	t.Parallel()
	n := 0
	for _, p := range lanePanels() {
		for _, q := range p.queries {
			if !strings.Contains(p.title, "by lane") && !strings.Contains(q.expr, "docket_lane_turns") {
				continue
			}
			if n++; !strings.Contains(q.legend, "{{lane}}") || !strings.Contains(q.expr, "(lane") {
				t.Errorf("%s does not show each lane: %s", p.title, q.expr)
			}
		}
	}
	if n < 9 {
		t.Errorf("%d queries by lane", n)
	}
}

func TestPanels_QueriesForScripts(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run([]string{"-queries", "-rate", "15s"}, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, &errs)
	}
	n := 0
	for line := range strings.Lines(out.String()) {
		n++
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 4 || strings.Contains(line, "$") || fields[3] != "" && fields[3] != "quiet" {
			t.Errorf("%q", line)
		}
	}
	var rules bytes.Buffer
	if code := run([]string{"-rules"}, &rules, &errs); code != 0 || strings.Count(rules.String(), "- record: ") != n || n < 50 {
		t.Errorf("exit %d, %d queries, %d rules", code, n, strings.Count(rules.String(), "- record: "))
	}
	if !strings.Contains(out.String(), "[15s]") {
		t.Error("-rate is not used")
	}
	path := filepath.Join(t.TempDir(), "d.json")
	if code := run([]string{"-o", path}, &out, &errs); code != 0 {
		t.Errorf("exit %d: %s", code, &errs)
	}
	if got, err := os.ReadFile(path); err != nil || !json.Valid(got) {
		t.Errorf("not JSON: %v", err)
	}
	if run([]string{"-nonsense"}, &out, &errs) != 2 || run([]string{"more"}, &out, &errs) != 2 || run([]string{"-o", t.TempDir()}, &out, &errs) != 1 {
		t.Error("wrong use does not show in the exit code")
	}
}
