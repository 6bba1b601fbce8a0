package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParse_TracesAndFailures(t *testing.T) {
	t.Parallel()
	p, err := parse("noise\nseed 7 trace 00ab order 00cd ok\nseed 8 trace 01 order 02 FAILED\n" +
		`sim: {"schedules":2,"exact":2,"virtual_seconds":1.5,"effects":9,"faults":{"kill":3}}` + "\nFAIL\n")
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	if got := fmt.Sprint(p.traces, p.failed, p.last.Effects, p.last.Faults); got != "map[7:trace 00ab order 00cd 8:trace 01 order 02] [8] 9 map[kill:3]" {
		t.Errorf("parsed %s", got)
	}
}

// script writes a program that stands in for the compiled test.
func script(t *testing.T, body string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sim.test")
	text := "#!/bin/bash\nfor a; do case $a in -sim.first=*) f=${a#*=};; -sim.schedules=*) n=${a#*=};; -sim.chance) c=1;; esac; done\n" +
		"t() { echo \"seed $1 trace $2 order 00 $3\"; }\n" +
		"end() { echo \"sim: {\\\"schedules\\\":$n,\\\"exact\\\":$n,\\\"virtual_seconds\\\":10,\\\"kills\\\":1,\\\"faults\\\":{\\\"kill\\\":2}}\"; }\n" + body
	// A child that is forked while the file is open keeps it open until it becomes its program. The file is busy that
	// long (go.dev/issue/22315).
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return path
}

func TestRun_SumsAndReplays(t *testing.T) {
	t.Parallel()
	each := "for ((s=f; s<f+n; s++)); do %s; done; end"
	for name, tc := range map[string]struct{ body, says, fails string }{
		"all pass":                      {fmt.Sprintf(each, "t $s aa ok"), "all identical", ""},
		"one fails each time":           {fmt.Sprintf(each, "if ((s==31)); then t $s bb FAILED; else t $s aa ok; fi"), "failed the same way: true", "1 schedules failed"},
		"one fails in company":          {fmt.Sprintf(each, "if ((s==31 && n>1)); then t $s bb FAILED; else t $s aa ok; fi"), "failed the same way: false", "1 schedules failed"},
		"each time it goes another way": {fmt.Sprintf(each, "t $s $$ ok"), "0 identical, 0 only behind the same schedules as before [], 3 another way", ""},
		"the same only in company":      {fmt.Sprintf(each, "t $s $((s>f))$f ok"), "3 played again alone: ", ""},
		"fails only behind others":      {fmt.Sprintf(each, "if ((s==31 && f==20)); then t $s bb FAILED; else t $s aa ok; fi"), "make sim SEED=31 FIRST=20", "1 schedules failed"},
		"a process dies":                {"t $f aa ok; exit 2", "", "failed"},
		"a process plays not all":       {"t $f aa ok; n=1; end", "", "of 60"},
		"the count cannot be read":      {"t $f aa ok; echo 'sim: {'", "", "own count"},
		"a failing one says its seed":   {fmt.Sprintf(each, "if ((s==31)); then t $s bb FAILED; else t $s aa ok; fi"), "make sim SEED=31", "failed"},
		"faults and kills are counted":  {fmt.Sprintf(each, "t $s aa ok"), "3 processes killed\nfaults:      6: kill 6", ""},
	} {
		binary := script(t, tc.body)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			summary := filepath.Join(t.TempDir(), "summary")
			err := run(context.Background(), config{binary: binary, dir: ".", n: 60, chunk: 20, procs: 1, checks: 3,
				every: time.Hour, deadline: time.Minute, keep: true, summary: summary}, &out)
			if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("run: %v, want %q", err, tc.fails)
			}
			if !strings.Contains(out.String(), tc.says) {
				t.Errorf("printed %s", out.String())
			}
			if line, err := os.ReadFile(summary); err != nil || !strings.HasPrefix(string(line), "sim          ") {
				t.Errorf("summary %q, %v", line, err)
			}
		})
	}
}

func TestCheck_FindsChance(t *testing.T) {
	t.Parallel()
	each := "for ((s=f; s<f+n; s++)); do t $s %s ok; done; end"
	for trace, ok := range map[string]bool{"aa$c": true, "aa": false, "$(date +%%s%%N | tr -d -c 0-9)": false} {
		k := &campaign{config: config{binary: script(t, fmt.Sprintf(each, trace)), dir: ".", n: 3, deadline: time.Minute}, out: new(strings.Builder)}
		if err := check(context.Background(), k); (err == nil) != ok {
			t.Errorf("check with traces %s: %v", trace, err)
		}
	}
}
