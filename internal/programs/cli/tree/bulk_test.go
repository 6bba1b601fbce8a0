package tree

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
)

// many are n dead letters that failed alike.
func many(n int) []ledger.Entry {
	out := make([]ledger.Entry, n)
	for i := range out {
		out[i] = letter(i, deadLetters()[0].Cause, ledger.Pending)
	}
	return out
}

// aim is how many dead letters a job is to move.
func aim(j *ledger.Job) int64 {
	if j.Limit > 0 {
		return min(j.Matched, j.Limit)
	}
	return j.Matched
}

// working does a few dead letters of a job at each look.
func working(dead int64) func(*ledger.Job) {
	return func(j *ledger.Job) {
		n := min(40, aim(j)-j.Sent)
		j.State, j.Owner = ledger.JobRunning, "desk-1"
		j.Sent += n
		if j.Act == ledger.Retried {
			j.Stored += n
		}
		if j.Sent >= aim(j) {
			j.State, j.Note = ledger.JobDone, "done"
			j.Dead, j.Stored = dead, max(j.Stored-dead, 0)
		}
	}
}

func TestBulk_CountedConfirmedFollowed(t *testing.T) {
	t.Parallel()
	const job = "job 1: retried --code 23514 --state PENDING --state FAILED by mara: mended, rate 50, limit 250"
	retry := []string{"dlq", "retry", "--code", "23514", "--rate", "50", "--operator", "mara", "--reason", "mended"}
	for name, c := range map[string]struct {
		n     int
		args  []string
		at    term.Terminal
		stdin string
		dead  int64
		code  int
		says  string
		did   string
	}{
		"agreed to":             {250, retry, person(80), "y\n", 0, 0, "results         250 stored", job},
		"not agreed to":         {250, retry, person(80), "\n", 0, 1, "nothing was changed", ""},
		"nobody answers":        {250, retry, person(80), "", 0, 1, "nothing was changed", ""},
		"with --yes":            {250, append(retry, "--yes"), term.Terminal{}, "", 0, 0, "250 stored", job},
		"nobody to ask":         {101, retry, term.Terminal{}, "", 0, cli.Misuse, "give --yes, or --limit 100", ""},
		"few, nobody to ask":    {100, retry, term.Terminal{}, "", 0, 0, "100 stored", strings.Replace(job, "limit 250", "limit 100", 1)},
		"limited, nobody there": {250, append(retry, "--limit", "100"), term.Terminal{}, "", 0, 0, "done            100 of 100", strings.Replace(job, "limit 250", "limit 100", 1)},
		"a limit above it":      {250, append(retry, "--limit", "900", "--yes"), term.Terminal{}, "", 0, 0, "250 stored", job},
		"some dead again":       {50, retry, term.Terminal{}, "", 7, 1, "43 stored, 7 failed again", strings.Replace(job, "limit 250", "limit 50", 1)},
		"nothing fits":          {0, retry, term.Terminal{}, "", 0, 0, "no PENDING or FAILED dead letters match", ""},
		"resolved": {
			50, []string{"dlq", "resolve", "--all", "--operator", "mara", "--note", "tests"}, term.Terminal{}, "", 0, 0, "resolve all",
			"job 1: closed --state PENDING --state FAILED by mara: tests, rate 0, limit 50",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{book: newBook(many(c.n)...), terminal: c.at, stdin: c.stdin}
				w.book.step = working(c.dead)
				r := w.call(c.args...)
				if r.code != c.code || !strings.Contains(r.out+r.err, c.says) || w.book.changes() != c.did {
					t.Errorf("exit %d, did %q\n%s%s", r.code, w.book.changes(), r.out, r.err)
				}
				if c.did != "" && !strings.Contains(r.err, "(PENDING ") {
					t.Errorf("does not say how many match: %s", r.err)
				}
			})
		})
	}
}

// TestBulk_NoMoreThanWasShown: dead letters that come while a person reads the question are not moved, and an operator needs no admin.
func TestBulk_NoMoreThanWasShown(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"retried":  {"dlq", "retry", "--code", "23514", "--reason", "mended", "--yes", "--detach"},
		"resolved": {"dlq", "resolve", "--code", "23514", "--note", "tests", "--yes", "--detach"},
	} {
		w := (&world{book: newBook(many(250)...)}).overDesk(t, "operator")
		if r := w.call(args...); r.code != cli.Done || len(w.book.jobs) != 1 || w.book.jobs[0].Limit != 250 {
			t.Errorf("%s: exit %d, %+v\n%s%s", name, r.code, w.book.jobs, r.out, r.err)
		}
	}
	w := (&world{book: newBook(many(1001)...)}).overDesk(t, "operator")
	w.says(t, cli.Failed, []string{"dlq", "retry", "--code", "23514", "--reason", "mended", "--yes", "--detach"}, "needs the role admin")
}

func TestBulk_WithoutDesk(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	w.book.desks = nil
	r := w.call("dlq", "retry", "--all", "--operator", "mara", "--reason", "x")
	if r.code != 0 || !strings.Contains(r.err, "no desk is running: nothing is sent until one runs (docket desk)") || !strings.Contains(r.out, "job 1 is WAITING, 0 of 8 done") || !strings.Contains(r.out, "docket jobs show 1 --watch") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	w = &world{book: newBook(deadLetters()...)}
	r = w.call("dlq", "retry", "--all", "--operator", "mara", "--reason", "x", "--detach", "--json")
	var j struct {
		ID       int64
		State    string
		Operator string
	}
	if err := json.Unmarshal([]byte(r.out), &j); err != nil || r.code != 0 || j.ID != 1 || j.State != "WAITING" || j.Operator != "mara" {
		t.Errorf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
}

func TestJobs_StopAndResume(t *testing.T) {
	t.Parallel()
	w := &world{book: jobbed()}
	if r := w.call("jobs", "stop", "3", "--operator", "mara", "--reason", "the fix is not out"); r.code != 0 || !strings.Contains(r.out, "Job 3, STOPPED") || !strings.Contains(r.out, "docket jobs resume 3") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if r := w.call("jobs", "resume", "3", "--operator", "mara"); r.code != 0 || !strings.Contains(r.out, "Job 3, WAITING") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if got := w.book.changes(); got != "job 3 is STOPPED by mara: the fix is not out\njob 3 is WAITING by mara: by hand" {
		t.Error(got)
	}
	if r := w.call("jobs", "stop", "3"); r.code != cli.Misuse || !strings.Contains(r.err, "--operator") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	if r := w.call("jobs", "show", "99"); r.code != cli.Failed || !strings.Contains(r.err, "docket jobs list") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}
