// Package prometheus_test compares the rules, their tests and the runbook. promtool tests the rules themselves
// (build/alerts).
package prometheus_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const (
	rulesFile   = "docket.rules.yml"
	runbookFile = "../../docs/runbook.md"
	metricsFile = "../../docs/metrics.md"
	programs    = "../../internal"
)

// testsFiles have the tests for promtool.
var testsFiles = []string{"docket.rules_test.yml", "docket.rules_days_test.yml"}

type rule struct {
	Record, Alert, Expr string
	Labels, Annotations map[string]string
}

func rules(t *testing.T) (records, alerts []rule) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []rule }
	}
	parse(t, rulesFile, &file)
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				records = append(records, r)
			} else {
				alerts = append(alerts, r)
			}
		}
	}
	if len(records) == 0 || len(alerts) == 0 {
		t.Fatalf("%s has %d recording and %d alerting rules", rulesFile, len(records), len(alerts))
	}
	return records, alerts
}

func parse(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// headings are the anchors of the runbook's sections of alerts.
func headings(t *testing.T) []string {
	t.Helper()
	var anchors []string
	for _, m := range regexp.MustCompile(`(?m)^### (\S+)$`).FindAllStringSubmatch(read(t, runbookFile), -1) {
		anchors = append(anchors, strings.ToLower(m[1]))
	}
	return anchors
}

func TestAlerts_SeverityAndAdvice(t *testing.T) {
	t.Parallel()
	_, alerts := rules(t)
	anchors := headings(t)
	seen := map[string]bool{}
	for _, a := range alerts {
		if seen[a.Alert] {
			t.Errorf("%s is there twice", a.Alert)
		}
		seen[a.Alert] = true
		if s := a.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s has severity %q, not critical or warning", a.Alert, s)
		}
		for _, name := range []string{"summary", "description"} {
			if a.Annotations[name] == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		anchor := strings.ToLower(a.Alert)
		// runbook is the earlier name of runbook_url. Both are there for one release.
		for _, name := range []string{"runbook_url", "runbook"} {
			if want := "docs/runbook.md#" + anchor; a.Annotations[name] != want {
				t.Errorf("%s has %s %q, not %q", a.Alert, name, a.Annotations[name], want)
			}
		}
		if !slices.Contains(anchors, anchor) {
			t.Errorf("%s has no section in %s", a.Alert, runbookFile)
		}
	}
	for i, anchor := range anchors {
		if !slices.ContainsFunc(alerts, func(a rule) bool { return strings.ToLower(a.Alert) == anchor }) {
			t.Errorf("section %s of %s is of no alert", anchor, runbookFile)
		}
		if slices.Contains(anchors[:i], anchor) {
			t.Errorf("section %s of %s is there twice", anchor, runbookFile)
		}
	}
}

// docs/install.md, build/release and the chart put a base before this text, line by line.
func TestAlerts_RunbookLinksTakeABase(t *testing.T) {
	t.Parallel()
	_, alerts := rules(t)
	if n := strings.Count(read(t, rulesFile), "\n          runbook_url: docs/runbook.md#"); n != len(alerts) {
		t.Errorf("%d lines of %s begin with the link, want %d", n, rulesFile, len(alerts))
	}
}

func TestAlerts_EachFiresAndResolves(t *testing.T) {
	t.Parallel()
	type at struct {
		Alertname string
		Eval      string `yaml:"eval_time"`
		Exp       []any  `yaml:"exp_alerts"`
	}
	type group struct {
		Name  string
		Cases []at `yaml:"alert_rule_test"`
	}
	var all []group
	for _, name := range testsFiles {
		var file struct {
			Rules []string `yaml:"rule_files"`
			Tests []group
		}
		parse(t, name, &file)
		if !slices.Contains(file.Rules, rulesFile) {
			t.Errorf("%s tests %v", name, file.Rules)
		}
		all = append(all, file.Tests...)
	}
	fires, resolves, quiet := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, one := range all {
		last := map[string]time.Duration{} // fired
		asked := map[string]bool{}
		for _, c := range one.Cases {
			when, err := time.ParseDuration(c.Eval)
			if err != nil {
				t.Fatalf("%s: %v", one.Name, err)
			}
			asked[c.Alertname] = true
			if len(c.Exp) > 0 {
				fires[c.Alertname], last[c.Alertname] = true, when
			} else if fired, ok := last[c.Alertname]; ok && when > fired {
				resolves[c.Alertname] = true
			}
		}
		for name := range asked {
			// A test of its own, whose name begins with that of the alert: all alerts keep quiet on a clean start.
			if _, ok := last[name]; !ok && strings.HasPrefix(one.Name, name) {
				quiet[name] = true
			}
		}
	}
	_, alerts := rules(t)
	for _, a := range alerts {
		for what, done := range map[string]bool{"fires": fires[a.Alert], "resolves": resolves[a.Alert], "keeps quiet although it is near": quiet[a.Alert]} {
			if !done {
				t.Errorf("%s has no case in which it %s", a.Alert, what)
			}
		}
	}
}

var (
	metricName   = regexp.MustCompile(`\bdocket_[a-z0-9_]+`)
	recordedName = regexp.MustCompile(`\bdocket:[a-z0-9_:]+`)
)

func TestRules_NameExistingMetrics(t *testing.T) {
	t.Parallel()
	known := metrics(t)
	records, alerts := rules(t)
	recorded := map[string]bool{}
	for _, r := range records {
		recorded[r.Record] = true
	}
	used := map[string]bool{}
	for _, r := range append(records, alerts...) {
		text := r.Expr
		for _, a := range r.Annotations {
			text += "\n" + a
		}
		for _, name := range metricName.FindAllString(text, -1) {
			base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
			if !known[name] && !known[base] {
				t.Errorf("%s names %s, which no program has", r.Record+r.Alert, name)
			}
		}
		for _, name := range recordedName.FindAllString(text, -1) {
			used[name] = true
			if !recorded[name] {
				t.Errorf("%s names %s, which is not recorded", r.Record+r.Alert, name)
			}
		}
	}
	for name := range recorded {
		if !used[name] {
			t.Errorf("%s is recorded and no rule uses it", name)
		}
	}
}

// metrics are the names that the documentation has; until there is one, the string literals of the programs.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	text, err := os.ReadFile(metricsFile)
	if err == nil {
		for _, name := range metricName.FindAllString(string(text), -1) {
			names[name] = true
		}
		return names
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	literal := regexp.MustCompile(`"(docket_[a-z0-9_]+)"`)
	err = filepath.WalkDir(programs, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range literal.FindAllStringSubmatch(read(t, path), -1) {
			names[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
