package tree

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli"
	"docket/internal/record/decision"
)

// TestRetry_FollowsEach: exit 0 only where each was stored.
func TestRetry_FollowsEach(t *testing.T) {
	t.Parallel()
	all := deadLetters()
	for name, c := range map[string]struct {
		args []string
		ends func(id string, looks int) (ledger.SendingOutcome, string)
		code int
		says []string
	}{
		"stored":      {[]string{all[0].ID[:8]}, always(ledger.SendingStored, ""), 0, []string{"stored", "RESOLVED", "row stored, first read at"}},
		"dead again":  {[]string{all[0].ID[:8]}, always(ledger.SendingDead, "23514"), 1, []string{"dead", "PENDING", "failed again: 23514 (check_violation), attempt 1 of 3"}},
		"not taken":   {[]string{all[0].ID[:8]}, always(ledger.SendingRefused, "network"), 1, []string{"refused", "FAILED", "not published: network"}},
		"lease ended": {[]string{all[0].ID[:8]}, always(ledger.SendingWithdrawn, ""), 1, []string{"lease_ended", "can be retried again"}},
		"one of two":  {[]string{all[0].ID[:8], all[6].ID[:8]}, always(ledger.SendingStored, ""), 1, []string{"stored", "refused", "nothing was changed: PROCESSING since", "by mara; wait for the result of that retry"}},
		"twice named": {[]string{all[0].ID[:8], all[0].ID}, always(ledger.SendingStored, ""), 0, []string{"stored"}},
		"not there":   {[]string{"ffffff"}, nil, 1, []string{"ffffff", "not in the ledger"}},
		"resolved":    {[]string{all[9].ID}, nil, 1, []string{"nothing was changed: RESOLVED since", "nothing to do"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{book: newBook(deadLetters()...), environ: []string{"DOCKET_OPERATOR=mara"}}
				w.book.ends = c.ends
				r := w.call(append([]string{"dlq", "retry"}, c.args...)...)
				if r.code != c.code {
					t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
				}
				for _, part := range c.says {
					if !strings.Contains(r.out, part) {
						t.Errorf("%q is not in\n%s%s", part, r.out, r.err)
					}
				}
				if n := strings.Count(w.book.changes(), "retried a"); n > 1 {
					t.Errorf("retried %d times", n)
				}
			})
		})
	}
}

// TestRetry_AttemptsOfTheDesk: how many attempts there are is a setting of the desk, which the caller's settings do not say.
func TestRetry_AttemptsOfTheDesk(t *testing.T) {
	t.Parallel()
	w := (&world{book: newBook(deadLetters()...)}).overDesk(t, "operator")
	w.book.ends = func(string, int) (ledger.SendingOutcome, string) { return ledger.SendingDead, "23514" }
	w.says(t, cli.Failed, []string{"dlq", "retry", deadLetters()[0].ID, "--reason", "x"}, "failed again: 23514 (check_violation), attempt 1", "!attempt 1 of")
}

func always(o ledger.SendingOutcome, code string) func(string, int) (ledger.SendingOutcome, string) {
	return func(_ string, looks int) (ledger.SendingOutcome, string) {
		if looks < 3 {
			return "", ""
		}
		return o, code
	}
}

func TestRetry_WithoutDesk(t *testing.T) {
	t.Parallel()
	id := deadLetters()[0].ID
	w := &world{book: newBook(deadLetters()...)}
	w.book.desks = nil
	r := w.call("dlq", "retry", id, "--operator", "mara")
	if r.code != 0 || !strings.Contains(r.err, "no desk is running: nothing is sent until one runs (docket desk)") || !strings.Contains(r.out, "retried") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	if got := w.book.changes(); got != "retried a00000000000 by mara: retried by hand" {
		t.Error(got)
	}
}

// TestRetry_Signal: a signal ends the command and not the retry, also with a job.
func TestRetry_Signal(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{deadLetters()[0].ID}, {"--code", "23514", "--reason", "why", "--yes"}} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{book: newBook(deadLetters()...), signals: make(chan os.Signal, 1), environ: []string{"DOCKET_OPERATOR=mara"}}
			go func() {
				time.Sleep(3 * time.Second)
				w.signals <- os.Interrupt
			}()
			begun := time.Now()
			r := w.call(append([]string{"dlq", "retry"}, args...)...)
			if r.code != 0 || time.Since(begun) > 4*time.Second || !strings.Contains(r.out+r.err, "continue without") && !strings.Contains(r.out, "continues without this command") {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			if len(args) > 1 && !strings.Contains(r.out, "docket jobs stop 1") {
				t.Errorf("does not say how to stop it:\n%s", r.out)
			}
		})
	}
}

// TestUse_OperatorAndReasonRequired: no operator, no reason, no choice, or too much of it. Nothing is changed by any of these.
func TestUse_OperatorAndReasonRequired(t *testing.T) {
	t.Parallel()
	id := deadLetters()[0].ID
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no operator":                {[]string{"dlq", "retry", id}, "give --operator NAME, or set DOCKET_OPERATOR"},
		"no operator of a job":       {[]string{"dlq", "retry", "--code", "23514", "--reason", "x"}, "--operator"},
		"no reason of a job":         {[]string{"dlq", "retry", "--code", "23514", "--operator", "mara"}, "give --reason 'TEXT'"},
		"no note":                    {[]string{"dlq", "resolve", id, "--operator", "mara"}, "give --note 'TEXT'"},
		"an empty note":              {[]string{"dlq", "resolve", id, "--operator", "mara", "--note", " "}, "no reason: give"},
		"no choice":                  {[]string{"dlq", "retry", "--operator", "mara"}, "nothing is selected"},
		"ids and a filter":           {[]string{"dlq", "retry", id, "--code", "23514"}, "ids and filter flags"},
		"ids and all":                {[]string{"dlq", "resolve", id, "--all"}, "ids and filter flags"},
		"a filter and all":           {[]string{"dlq", "retry", "--all", "--code", "23514"}, "--all and filter flags"},
		"a rate for ids":             {[]string{"dlq", "retry", id, "--rate", "5"}, "need filter flags, not ids"},
		"a rate below 0":             {[]string{"dlq", "retry", "--all", "--rate", "-1"}, "must be 0 or more"},
		"what is resolved":           {[]string{"dlq", "retry", "--state", "RESOLVED", "--operator", "m", "--reason", "x"}, "only PENDING and FAILED"},
		"an unknown state":           {[]string{"dlq", "list", "--state", "pendign"}, "did you mean PENDING?"},
		"an unknown kind":            {[]string{"dlq", "list", "--kind", "dta"}, "did you mean data?"},
		"no fingerprint":             {[]string{"dlq", "list", "--fingerprint", "xyz1"}, "not a fingerprint"},
		"too short a fingerprint":    {[]string{"dlq", "list", "--fingerprint", "15"}, "not a fingerprint"},
		"an empty code":              {[]string{"dlq", "retry", "--code", "", "--operator", "m", "--reason", "x"}, "--code is empty"},
		"no time":                    {[]string{"dlq", "list", "--since", "lately"}, "give a time ago"},
		"times the wrong way round":  {[]string{"dlq", "list", "--since", "1h", "--until", "2h"}, "is not before --until"},
		"too short an id":            {[]string{"dlq", "show", "a0"}, "at least 6"},
		"no id":                      {[]string{"dlq", "show"}, "give the id of a dead letter"},
		"two ids":                    {[]string{"dlq", "show", id, id}, "one too many"},
		"not a job number":           {[]string{"jobs", "show", "x"}, "not a job number"},
		"a limit of nothing":         {[]string{"dlq", "list", "--limit", "0"}, "--limit must be"},
		"retries of nothing":         {[]string{"dlq", "retry", "--code", "23514", "--limit", "0", "--yes", "--operator", "m", "--reason", "x"}, "--limit must be 1 or more"},
		"a dry run of nothing":       {[]string{"dlq", "retry", "--code", "23514", "--limit", "0", "--dry-run"}, "--limit must be 1 or more"},
		"nothing of a group":         {[]string{"dlq", "resolve", "--group", "1234", "--limit", "0", "--yes", "--operator", "m", "--note", "x"}, "--limit must be 1 or more"},
		"a pace that is no number":   {[]string{"dlq", "retry", "--code", "23514", "--rate", "NaN", "--yes", "--operator", "m", "--reason", "x"}, "--rate must be 0 or more"},
		"all and a limit":            {[]string{"dlq", "list", "--all", "--limit", "5"}, "--all and --limit"},
		"wait and detach":            {[]string{"dlq", "retry", id, "--wait", "--detach"}, "wait"},
		"an operator of two lines":   {[]string{"dlq", "retry", id, "--operator", "mara\nroot"}, "one line"},
		"a reason that steers":       {[]string{"dlq", "retry", id, "--operator", "mara", "--reason", "\x1b[31m"}, "one line"},
		"an unknown command":         {[]string{"dlq", "retyr"}, "did you mean retry?"},
		"an unknown group":           {[]string{"dql"}, "did you mean dlq?"},
		"an unknown flag":            {[]string{"dlq", "list", "--fingerprnt", "x"}, "did you mean --fingerprint?"},
		"an unknown short flag":      {[]string{"dlq", "list", "-x"}, `unknown flag "-x"`},
		"help of nothing":            {[]string{"help", "nothing"}, "unknown command"},
		"an argument too many":       {[]string{"dlq", "groups", "x"}, "unexpected argument"},
		"a number that is none":      {[]string{"dlq", "list", "--limit", "x"}, "--limit"},
		"an editor without a person": {[]string{"dlq", "edit", id, "--operator", "mara", "--reason", "x"}, "an editor needs a terminal"},
		"an edit nobody agrees to":   {[]string{"dlq", "edit", id, "--file", "-", "--operator", "mara", "--reason", "x"}, "give --yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{book: newBook(deadLetters()...), bare: true}
			r := w.call(c.args...)
			if r.code != cli.Misuse || !strings.Contains(r.err, c.says) || !strings.Contains(r.err, "--help.\n") || r.out != "" {
				t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
			}
			quiet(t, r.err)
			if w.book.changes() != "" {
				t.Errorf("changed: %s", w.book.changes())
			}
		})
	}
}

func TestSettings_NamedWithoutSecret(t *testing.T) {
	t.Parallel()
	r := (&world{environ: []string{"DOCKET_DATABASE_URL=mysql://u:" + planted + "@h/x", "DOCKET_DESK_LEASE=x"}}).call("dlq", "list")
	if r.code != cli.Misuse || !strings.HasPrefix(r.err, "DOCKET_DATABASE_URL: ") || !strings.Contains(r.err, "\nDOCKET_DESK_LEASE: ") || strings.Contains(r.err+r.out, planted) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestFailure_Hint(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"dlq", "list"}, {"dlq", "groups"}, {"dlq", "show", "a0a0a0"}, {"jobs", "list"}, {"report", "--no-horizon"}} {
		w := &world{book: newBook()}
		w.book.fails = errAway
		if r := w.call(args...); r.code != cli.Failed || !strings.Contains(r.err, "the database is away") || r.out != "" {
			t.Errorf("%v: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
	r := (&world{}).call("dlq", "show", "ffffff")
	if r.code != cli.Failed || !strings.Contains(r.err, "docket dlq list") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	double := deadLetters()[:2]
	double[1].ID = double[0].ID[:40] + strings.Repeat("f", 24)
	r = (&world{book: newBook(double...)}).call("dlq", "show", double[0].ID[:12])
	if r.code != cli.Misuse || !strings.Contains(r.err, "give more characters") || !strings.Contains(r.err, double[0].ID) || !strings.Contains(r.err, double[1].ID) {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

func TestDryRun_ChangesNothing(t *testing.T) {
	t.Parallel()
	bad := worker.TrialResult{Total: 4819, Would: 4812, StillFail: []worker.TrialFault{{Code: "23514", Letters: 7}}}
	for name, c := range map[string]struct {
		args   []string
		result worker.TrialResult
		code   int
		says   string
	}{
		"many reasons": {[]string{"--all"}, worker.TrialResult{
			Total: 13, Would: 9, Conflict: 1, StillFail: []worker.TrialFault{{Code: "23514", Constraint: "short", Letters: 1}}, Undecodable: map[decision.Reason]int64{"syntax": 2},
		}, 1, "dry run of 13, nothing was changed:\n  9 would be stored\n  1 still fails with 23514 (constraint short)\n  1 still fails with id_conflict (stored with another payload)\n  2 cannot be read (syntax)\n"},
		"a filter":     {[]string{"--code", "23514"}, bad, 1, "dry run, nothing was changed: 4,812 would be stored, 7 still fail with 23514\n"},
		"ids":          {[]string{deadLetters()[0].ID[:8]}, worker.TrialResult{Total: 1, Would: 1}, 0, "1 would be stored"},
		"not well":     {[]string{"--all"}, worker.TrialResult{Unwell: &worker.TrialUnwell{Code: "42P01", Hint: "the table is missing"}}, 1, "the table is missing"},
		"as JSON":      {[]string{"--code", "23514", "--json"}, bad, 1, `"would_be_stored": 4812`},
		"there before": {[]string{"--all"}, worker.TrialResult{Total: 1, There: 1}, 0, "has its row already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{book: newBook(deadLetters()...), trial: &trial{result: c.result}}
			r := w.call(append([]string{"dlq", "retry", "--dry-run"}, c.args...)...)
			if r.code != c.code || !strings.Contains(r.out, c.says) || w.book.changes() != "" || len(w.trial.asked) != 1 {
				t.Errorf("exit %d, asked %v\n%s%s", r.code, w.trial.asked, r.out, r.err)
			}
			next := "to retry them:\n  docket dlq retry "
			switch {
			case name == "ids":
				next += c.args[0] + " --operator YOU\n"
			case slices.Contains(c.args, "--all"):
				next += "--all --reason '...' --operator YOU\n"
			default:
				next += "--code 23514 --reason '...' --operator YOU\n"
			}
			if want := name != "as JSON" && name != "not well"; strings.Contains(r.err, next) != want {
				t.Errorf("%q", r.err)
			}
		})
	}
}

func TestResolve_KeepsNote(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	r := w.call("dlq", "resolve", deadLetters()[0].ID[:8], deadLetters()[5].ID[:8], "--operator", "mara", "--note", "tests of staging", "--json")
	var list struct{ Entries []struct{ ID, Result string } }
	if err := json.Unmarshal([]byte(r.out), &list); err != nil || r.code != 0 || len(list.Entries) != 2 || list.Entries[0].Result != "resolved" || list.Entries[0].ID != deadLetters()[0].ID {
		t.Errorf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
	if got := w.book.changes(); strings.Count(got, "closed") != 2 || strings.Count(got, "by mara: tests of staging") != 2 {
		t.Error(got)
	}
}
