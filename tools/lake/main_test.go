package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"docket/internal/history/archive"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func made(t testing.TB, rows int64, days int, seed uint64) *decisions {
	t.Helper()
	all, err := templates()
	if err != nil {
		t.Fatal(err)
	}
	return &decisions{seed: seed, first: firstDay, days: days, rows: rows, templates: all}
}

// aRow is a row as encoding/json reads it.
type aRow struct {
	ID        string    `json:"decision_id"`
	TS        time.Time `json:"ts"`
	Path      *string   `json:"path"`
	Allowed   *bool     `json:"allowed"`
	Offset    int64     `json:"source_offset"`
	Requested string    `json:"requested_by"`
	Raw       struct {
		ID        string          `json:"decision_id"`
		TS        time.Time       `json:"timestamp"`
		Requested string          `json:"requested_by"`
		Input     json.RawMessage `json:"input"`
		Result    json.RawMessage `json:"result"`
	} `json:"raw"`
}

func (r *aRow) input(name string) (text string, ok bool) {
	var in map[string]any
	if json.Unmarshal(r.Raw.Input, &in) != nil {
		return "", false
	}
	text, ok = in[name].(string)
	return text, ok
}

func rowsOf(t testing.TB, d *decisions) (all []aRow) {
	t.Helper()
	for n := range d.days {
		err := d.lines(d.day(n), func(line []byte) error {
			var r aRow
			if err := json.Unmarshal(line, &r); err != nil {
				return fmt.Errorf("%s: %w", line, err)
			}
			all = append(all, r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestDecisions_InOrderAndConsistent(t *testing.T) {
	t.Parallel()
	d := made(t, 5_000, 7, 3)
	all := rowsOf(t, d)
	if len(all) != 5_000 {
		t.Fatalf("%d rows", len(all))
	}
	ties := 0
	for i, r := range all {
		if r.ID != r.Raw.ID || r.Requested != r.Raw.Requested || !r.Raw.TS.Truncate(time.Microsecond).Equal(r.TS) {
			t.Fatalf("columns differ from the payload: %+v", r)
		}
		if i == 0 {
			continue
		}
		before := all[i-1]
		if before.TS.Equal(r.TS) {
			ties++
		}
		if before.TS.After(r.TS) || before.TS.Equal(r.TS) && before.ID >= r.ID {
			t.Fatalf("row %d comes before its predecessor", i)
		}
	}
	if ties == 0 {
		t.Error("no two rows have the same time")
	}
	if first, last := all[0].TS, all[len(all)-1].TS; first.Before(firstDay.Time) || !last.Before(d.day(7).Time) || archive.DayOf(last) != d.day(6) {
		t.Errorf("from %s to %s", first, last)
	}
}

func TestDecisions_SeedDecides(t *testing.T) {
	t.Parallel()
	sum := func(seed uint64) (total archive.Total) {
		for day := range 3 {
			one, err := (&openDay{rows: made(t, 300, 3, seed), day: made(t, 300, 3, seed).day(day)}).Sum(t.Context(), archive.Shape{})
			if err != nil {
				t.Fatal(err)
			}
			total.Join(one)
		}
		return total
	}
	first, again := sum(1), sum(1)
	if first != again || first == sum(2) {
		t.Error("the same seed has to make the same rows, another seed others")
	}
}

func TestArchive_ReadsBackAsRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := made(t, 900, 3, 1)
	w, err := write(t.Context(), dir, d)
	if err != nil {
		t.Fatal(err)
	}
	if w.rows != 900 || w.files != 3 || w.bytes == 0 {
		t.Errorf("written: %+v", w)
	}
	all, err := archive.Whole(t.Context(), archive.Dir(dir), "decision_logs", nil)
	if err != nil || len(all) != 4 || len(archive.Superseded(all)) != 1 {
		t.Errorf("%d archives, %d superseded: %v", len(all), len(archive.Superseded(all)), err)
	}
}

// model answers out of the rows themselves, with nothing that an engine or a file has.
func model(all []aRow) *answers {
	a := &answers{Engine: "model", rows: map[string][]string{}}
	days, methods := map[string][]aRow{}, map[any]int{}
	rates, denials := map[string][2]int{}, map[string][]aRow{}
	flips, last := map[string][]int64{}, map[string]string{}
	for _, r := range all {
		days[r.TS.Format(time.DateOnly)] = append(days[r.TS.Format(time.DateOnly)], r)
		verdict := verdictOf(r)
		key := string(compact([]any{*r.Path, r.TS.Format("2006-01")}))
		n := rates[key]
		n[0]++
		if verdict == "denied" {
			n[1]++
			denials[*r.Path] = append(denials[*r.Path], r)
		}
		rates[key] = n
		user, ok := r.input("user")
		if !ok {
			continue
		}
		key = user + " " + *r.Path
		if before, seen := last[key]; seen && before != verdict {
			flips[user] = append(flips[user], r.TS.UnixMicro())
		}
		last[key] = verdict
	}
	for name, rows := range days {
		ids, sum := []string{}, int64(0)
		for _, r := range rows {
			ids, sum = append(ids, r.ID), sum+r.Offset
		}
		a.add("days", name, len(rows), sum, slices.Min(ids), slices.Max(ids))
	}
	for key, n := range rates {
		a.rows["rates"] = append(a.rows["rates"], fmt.Sprintf("%s,%d,%d]", strings.TrimSuffix(key, "]"), n[0], n[1]))
	}
	for user, at := range flips {
		a.add("flips", user, len(at), at[0], at[len(at)-1])
	}
	paths := slices.SortedFunc(maps.Keys(denials), func(x, y string) int {
		return cmp.Or(len(denials[y])-len(denials[x]), strings.Compare(x, y))
	})
	for _, path := range paths[:min(len(paths), 10)] {
		users, rows := map[string]bool{}, denials[path]
		for _, r := range rows {
			if user, ok := r.input("user"); ok {
				users[user] = true
			}
		}
		a.add("rules", path, len(rows), len(users), rows[0].TS.UnixMicro(), rows[len(rows)-1].TS.UnixMicro())
	}
	final := all[len(all)-1].TS.Format(time.DateOnly)
	for _, r := range days[final] {
		if method, ok := r.input("method"); ok {
			methods[method]++
		} else {
			methods[nil]++
		}
	}
	for method, n := range methods {
		a.add("payloads", method, n)
	}
	a.sort()
	return a
}

func verdictOf(r aRow) string {
	switch {
	case r.Allowed != nil && *r.Allowed:
		return "allowed"
	case r.Allowed != nil:
		return "denied"
	case len(r.Raw.Result) == 0:
		return "undefined"
	}
	return "other"
}

func TestDocket_AnswersAsTheModel(t *testing.T) {
	t.Parallel()
	for seed, size := range []struct {
		rows int64
		days int
	}{{40, 2}, {150, 1}, {2_000, 3}, {1_000, 20}} {
		d := made(t, size.rows, size.days, uint64(seed))
		dir := t.TempDir()
		if _, err := write(t.Context(), dir, d); err != nil {
			t.Fatal(err)
		}
		said, err := askDocket(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		picks, err := pick(d)
		if err != nil || len(picks) == 0 {
			t.Fatalf("%d picked: %v", len(picks), err)
		}
		costs, err := askCold(t.Context(), dir, picks)
		if err != nil || len(costs) != len(askings) {
			t.Errorf("single decisions: %v", err)
		}
		none := slices.Clone(picks)
		none[len(none)-1].at.ID = "5b7f0d2c-0000-4000-8000-000000000000"
		if _, err := askCold(t.Context(), dir, none); err == nil {
			t.Error("a decision that the archive does not have was found")
		}
		want := model(rowsOf(t, d))
		if len(want.rows["flips"]) == 0 { // a small archive may have none, which differences reports
			want.add("flips", "none")
			said.add("flips", "none")
		}
		if err := differences(want, said); err != nil {
			t.Errorf("%d rows of %d days: %v", size.rows, size.days, err)
		}
	}
}

func TestPlants_AreNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := made(t, 8_000, 4, 1)
	whole, err := write(t.Context(), filepath.Join(dir, "archive"), d)
	if err != nil {
		t.Fatal(err)
	}
	want, err := askDocket(t.Context(), whole.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range plants {
		w, err := writePlanted(t.Context(), filepath.Join(dir, kind), whole, *d, kind)
		if err != nil {
			t.Fatal(err)
		}
		got, err := askDocket(t.Context(), w.dir)
		if err != nil {
			t.Fatal(err)
		}
		err = differences(want, got)
		if err == nil || !strings.Contains(err.Error(), "rates: ") || strings.Contains(err.Error(), "days: ") != (kind == missing) {
			t.Errorf("%s: %v", kind, err)
		}
		if err := noticed(want, got, kind); err != nil {
			t.Error(err)
		}
		if noticed(want, want, kind) == nil {
			t.Errorf("%s: answers of the whole archive count as noticed", kind)
		}
	}
}

func TestDifferences_NameTheRow(t *testing.T) {
	t.Parallel()
	of := func(rows ...string) *answers {
		a := &answers{Engine: "x", rows: map[string][]string{}}
		for _, question := range questions {
			a.rows[question] = []string{"[1]"}
		}
		a.rows["rates"] = rows
		return a
	}
	for _, tc := range []struct {
		a, b *answers
		want string
	}{
		{of("[1]", "[2]"), of("[1]", "[2]"), ""},
		{of("[1]", "[2]"), of("[1]"), "has [2]"},
		{of("[1]"), of("[1]", "[2]"), "has [2]"},
		{of("[1]", "[3]"), of("[2]", "[3]"), "has [1]"},
		{of("[2]"), of("[1]", "[2]"), "has [1]"},
		{of(), of(), "there are none"},
	} {
		err := differences(tc.a, tc.b)
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v and %v: %v, want %q", tc.a.rows["rates"], tc.b.rows["rates"], err, tc.want)
		}
	}
}

func TestAnswers_OneFormOfJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, question := range questions {
		text := "[\"b\", 2,null]\n[\"a<\\u00e9\u2028\",12345678901234567890]\n"
		if err := os.WriteFile(filepath.Join(dir, question+".jsonl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "times.json"), []byte(`{"engine":"x","seconds":{"days":1.5,"rates":2}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := readAnswers(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &answers{rows: map[string][]string{}}
	for _, question := range questions {
		want.add(question, "a<é\u2028", json.Number("12345678901234567890"))
		want.add(question, "b", 2, nil)
	}
	if err := differences(want, got); err != nil || got.Engine != "x" || got.took != 3500*time.Millisecond {
		t.Errorf("%+v: %v", got, err)
	}
}

// pretend is a program in place of Python. It answers as Docket does, out of files that the test left.
const pretend = `#!/bin/sh
sleep 600 &
echo $! >"%[1]s/started"
shift 5
while [ $# -gt 1 ]; do mkdir -p "$2" && cp "%[1]s/said/"* "$2/" || exit 1; shift 2; done
exit %[2]d
`

func TestAsk_EndsWhatTheEngineStarted(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 3} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "said"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{"times.json"}, questions...) {
			text := "[1]\n"
			if name == "times.json" {
				text = `{"engine":"pretended"}`
			} else {
				name += ".jsonl"
			}
			if err := os.WriteFile(filepath.Join(dir, "said", name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		python := filepath.Join(dir, "python")
		if err := os.WriteFile(python, fmt.Appendf(nil, pretend, dir, code), 0o700); err != nil { // #nosec G306 -- a program
			t.Fatal(err)
		}
		a := asker{python: python, engines: "e", questions: "q", page: "p", work: dir, log: io.Discard}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		said, err := a.ask(ctx, "duck", filepath.Join(dir, "one"), filepath.Join(dir, "two"))
		cancel()
		if alive(t, filepath.Join(dir, "started")) {
			t.Fatal("a program of the engine is left")
		}
		if code != 0 {
			if err == nil {
				t.Error("an engine that failed is not reported")
			}
			continue
		}
		if err != nil || len(said) != 2 || said[1].Engine != "pretended" {
			t.Errorf("%v: %v", said, err)
		}
	}
}

// alive reports whether the process whose number a file has still runs, and ends it then. One that ended and that
// nobody waited for does not run.
func alive(t *testing.T, file string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-look.C {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return false
		}
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	return true
}
