package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rules returns what was found as "LINE RULE", without counts.
func rules(found []Finding) []string {
	var all []string
	for _, f := range found {
		rule := f.Rule
		if _, after, ok := strings.Cut(rule, ", at most "); ok {
			rule = "most " + after
		}
		all = append(all, strings.TrimSpace(strings.Join([]string{string(rune('0' + f.Line)), rule}, " ")))
	}
	return all
}

var long = strings.TrimSpace(strings.Repeat("word ", 26))

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"plain English":          {"# What is promised\n\nDocket stores a decision once.\n", nil},
		"an opening":             {"What is parked waits.\n", []string{"1 opening"}},
		"a later sentence":       {"It waits.\nThen it ends. Whoever asks is\nanswered.\n", []string{"2 opening"}},
		"a bold definition":      {"**What lasts.** It lasts.\n", []string{"1 opening"}},
		"a small opening":        {"| name | meaning |\n|---|---|\n| `x` | what it is |\n", []string{"3 opening"}},
		"a question":             {"| question | answer |\n|---|---|\n| what is lost? | nothing |\n", nil},
		"a header":               {"| command | what it does |\n|---|---|\n| `x` | runs |\n", nil},
		"a word that begins so":  {"Whole batches wait.\n", nil},
		"is no":                  {"A buffer is no home.\n", []string{`1 banned phrase "is no"`}},
		"there is no":            {"There is no row, and it is no longer asked.\n", nil},
		"for the sake":           {"It stops for the sake of order.\n", []string{`1 banned phrase "for ...'s sake"`}},
		"goes on":                {"The partition goes on.\n", []string{`1 banned phrase "goes on"`}},
		"go on":                  {"All others go on.\n", []string{`1 banned phrase "goes on"`}},
		"stand still":            {"They stand still.\n", []string{`1 banned phrase "stands"`}},
		"stands":                 {"The row stands there.\n", []string{`1 banned phrase "stands"`}},
		"stands for":             {"The star stands for all.\n", nil},
		"of ours":                {"A header of ours is kept.\n", []string{`1 banned phrase "of ours"`}},
		"code":                   {"The name is `is no anew`.\n\n```\nWhat anew\n```\n", nil},
		"a comment":              {"<!-- What is anew\nanew -->\n", nil},
		"length":                 {long + ".\n", []string{"1 most 100", "1 most 25"}},
		"two short ones":         {strings.ReplaceAll("Some words follow here. And more of these follow.", " ", "\n") + "\n", nil},
		"a list of names":        {"It reads `a`, `b`, `c`, `d`, `e`, `f`, `g`, `h`, `i`, `j`, `k`, `l`, `m`, `n`, `o`, `p`,\n`q`, `r`, `s`, `t`, `u`, `v`, `w`, `x`, `y` and `z`.\n", nil},
		"a colon ends":           {"It has one two three four five six seven eight nine ten:\nnine eight seven six five four three two one zero one two three four five six.\n", nil},
		"items are blocks":       {"- one two three four five six seven eight nine ten\n- one two three four five six seven eight nine ten\n- one two three four five six seven\n", nil},
		"columns":                {"It " + strings.Repeat("w", 60) + " " + strings.Repeat("w", 60) + "\n", []string{"1 most 100"}},
		"an address":             {"- https://" + strings.Repeat("w", 120) + "\n", nil},
		"a table":                {"| " + strings.Repeat("w", 60) + " " + strings.Repeat("w", 60) + " |\n|---|\n", nil},
		"a point inside a word":  {"It takes 0.5 s of docs.md and e.g. What it has.\n", nil},
		"a pipe inside of code":  {"| a | b |\n|---|---|\n| `a \\| What` | it |\n", nil},
		"words in code and bold": {"**The *anew* file.**\n", []string{`1 banned phrase "anew"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := rules(markdown("x.md", c.text)); !slices.Equal(got, c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestUnreleased(t *testing.T) {
	t.Parallel()
	text := "# Changelog\nAnew.\n\n## [Unreleased]\n- Anew.\n\n## [1.0.0]\n- Anew.\n"
	if got, want := rules(markdown("CHANGELOG.md", unreleased(text))), []string{`5 banned phrase "anew"`}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestAlerts(t *testing.T) {
	t.Parallel()
	text := "groups:\n- rules:\n  - alert: A\n    annotations:\n      summary: '{{ $labels.x }} stopped'\n      description: \"Nothing is lost. Who asks {{ printf `anew` }} sees anew.\"\n"
	got, err := alerts("x.yml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"6 opening", `6 banned phrase "anew"`}; !slices.Equal(rules(got), want) {
		t.Errorf("found %q, want %q", rules(got), want)
	}
}

func TestGoFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"a comment":   {"// Package x stores rows. What is stored stays.\npackage x\n", []string{"1 opening"}},
		"code in it":  {"// Package x stores rows:\n//\n//\tWhat anew\n//\n// It ends.\npackage x\n", nil},
		"a directive": {"package x\n\n//nolint:errcheck // anew\nvar a int\n", nil},
		"generated":   {"// Code generated by x; DO NOT EDIT.\npackage x\n\n// What anew.\n", nil},
		"a string":    {"package x\n\nvar a = \"What anew\"\n", nil},
		"a log line":  {"package x\n\nfunc f(l L) {\n\tl.Info().Msg(\"one two three four five six seven eight nine\")\n\tl.Info().Msg(\"what was stored\")\n}\n", []string{"4 most 8", "5 opening"}},
		"a command":   {"package x\n\nvar a = C{\n\tShort: \"Who asked\",\n\tName: \"who\",\n}\n", []string{"4 opening"}},
		"a flag":      {"package x\n\nfunc f(s S) {\n\ts.StringVar(&a, \"name\", \"\", \"what \" +\n\t\t\"it is\")\n}\n", []string{"4 opening"}},
		"another call": {"package x\n\nfunc f(s S) {\n\ts.Store(&a, \"name\", \"what it is\")\n}\n",
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := goFile("x.go", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(rules(got), c.want) {
				t.Errorf("found %q, want %q", got, c.want)
			}
		})
	}
}

func TestCommit(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"spool: refuse a segment without meta":      "",
		"desk, postgres: name the login":            "",
		"spool: embed the format":                   "",
		`Revert "What a change"`:                    "",
		"refuse a segment":                          `subject is not "room: imperative subject"`,
		"postgres: what a second time is asked on":  `subject does not begin with a command, but with "what"`,
		"mutants: two that were not as meant":       `subject does not begin with a command, but with "two"`,
		"spool: fixed the reader":                   `subject does not begin with a command, but with "fixed"`,
		"docs: write a page anew":                   `banned phrase "anew"`,
		"docs: " + strings.Repeat("a", 67):          "73 letters in a subject, at most 72",
		"collector: allow 512 concurrent uploads":   "",
		"v1.2.3: release what was tested":           "",
		"Spool: refuse a segment with capital room": `subject is not "room: imperative subject"`,
	} {
		if got := commit(said); got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}

// world makes a repository with one page and returns its folder.
func world(t *testing.T, page string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"README.md": page, "CONTRIBUTING.md": "", "SECURITY.md": "", "CHANGELOG.md": "", "deploy/prometheus/docket.rules.yml": "",
		"docs/a.md": "It runs.\n", "docs/old.md": "What anew.\n", "tools/prose/later.txt": "# to do\ndocs/old.md\n", "tools/prose/clean.txt": "pkg\n", "pkg/a.go": "// Package a runs.\npackage a\n",
	} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestRun_Clean(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code, err := run(t.Context(), &out, world(t, "It runs.\n"), nil); code != 0 || err != nil || out.Len() > 0 {
		t.Errorf("code %d, %v:\n%s", code, err, &out)
	}
}

func TestRun_Finding(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	code, err := run(t.Context(), &out, world(t, "It runs.\n\nWho asks?\n\nWho asks waits.\n"), nil)
	if code != 1 || err != nil || !strings.HasPrefix(out.String(), "README.md:5: opening: Who asks waits.\n") {
		t.Errorf("code %d, %v:\n%s", code, err, &out)
	}
}

func TestRun_StaleLists(t *testing.T) {
	t.Parallel()
	root := world(t, "It runs.\n")
	for _, name := range []string{"docs/old.md", "pkg/a.go"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	code, err := run(t.Context(), &out, root, nil)
	if code != 1 || err != nil || !strings.Contains(out.String(), "clean.txt:1: list: pkg has no Go files") || !strings.Contains(out.String(), "later.txt:2: list: docs/old.md does not exist") {
		t.Errorf("code %d, %v:\n%s", code, err, &out)
	}
}

func TestRun_Commits(t *testing.T) {
	t.Parallel()
	root := world(t, "It runs.\n")
	git := func(args ...string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q")
	git("commit", "-q", "--allow-empty", "-m", "what came before")
	git("update-ref", "refs/remotes/origin/main", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "spool: refuse a segment")
	git("commit", "-q", "--allow-empty", "-m", "spool: what is refused")
	var out bytes.Buffer
	code, err := run(t.Context(), &out, root, nil)
	if code != 1 || err != nil || strings.Count(out.String(), "\n") != 2 || !strings.HasSuffix(strings.SplitN(out.String(), "\n", 2)[0], `with "what": spool: what is refused`) {
		t.Errorf("code %d, %v:\n%s", code, err, &out)
	}
}
