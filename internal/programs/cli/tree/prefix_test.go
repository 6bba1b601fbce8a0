package tree

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
	"docket/internal/testkit/readertest"
)

// alike is a store in which some ids begin alike, one of them as a whole.
func alike(t *testing.T) *readertest.Store {
	t.Helper()
	s := decisions(0)
	for i, id := range []string{"abcdef-1", "abcdef-2", "bcdefg", "bcdefg-1", "cdefgh-1", "cdefgh-1", "many-01", "many-02", "many-03", "many-04", "many-05", "many-06\x1b[31m"} {
		d := readertest.Decision(0, now.Add(-1))
		d.ID, d.Time = id, now.AddDate(0, 0, -i)
		s.Add(d)
	}
	return s
}

func TestShortIDs_OfDecisions(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		code int
		says string
	}{
		"why abcdef-2":          {0, "Decision abcdef-2\n"},
		"logs abcdef-2":         {0, "Decision abcdef-2\n"},
		"logs cdefgh":           {0, "2 decisions have this id"},
		"why cdefgh":            {1, "2 decisions have the id cdefgh-1; select one with --at:"},
		"why bcdefg":            {0, "Decision bcdefg\n"},
		"logs bcdefg":           {0, "\nTo explain it: docket why bcdefg\n"},
		"diff bcdefg- bcdefg":   {0, "A  bcdefg-1"},
		"why abcdef":            {2, "several decision ids start with abcdef; give more characters:\n  abcdef-1  2026-11-21 20:15:03.000Z  http/example/authz/allow\n  abcdef-2  "},
		"logs abcdef":           {2, "several decision ids start with abcdef"},
		"diff bcdefg abcdef":    {2, "several decision ids start with abcdef"},
		"why many-0":            {2, "  many-05  2026-11-11 20:15:03.000Z  http/example/authz/allow\n  and others\n"},
		"why abcde":             {1, "no decision abcde is stored"},
		"why abcdeX":            {1, "first 6 or more characters"},
		"logs abcdef-2 --lines": {0, `"decision_id":"abcdef-2"`},
	} {
		for _, how := range []string{"", " --json"} {
			r := (&world{store: alike(t)}).call(strings.Fields(args + how)...)
			if r.code != c.code || how == "" && !strings.Contains(r.out+r.err, c.says) || c.code != 0 && r.err == "" {
				t.Errorf("%s%s: exit %d\n%s%s", args, how, r.code, r.out, r.err)
			}
			quiet(t, r.out+r.err)
		}
	}
}

// TestShortIDs_WholeElsewhere: an id that only another home has is not taken for the beginning of longer ones.
func TestShortIDs_WholeElsewhere(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"abcdef", "cdefgh"} { // several ids begin so, or one
		for _, command := range []string{"why", "logs", "why --json", "logs --json"} {
			claim := letter(1, envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "x"}, ledger.Pending)
			claim.DecisionID = id
			w := &world{store: alike(t), book: newBook(claim)}
			r := w.call(append(strings.Fields(command), id)...)
			if r.code != 1 || !strings.Contains(r.err, "no decision "+id+" is stored. It was found elsewhere") || strings.Contains(r.out, id+"-") {
				t.Errorf("%s %s: exit %d\n%s%s", command, id, r.code, r.out, r.err)
			}
		}
	}
}

// TestShortIDs_PerhapsWhole: where a place cannot be asked, a longer id is explained, and what is not known is said.
func TestShortIDs_PerhapsWhole(t *testing.T) {
	t.Parallel()
	for command, code := range map[string]int{"why bcdefg-": 0, "logs bcdefg-": 0, "why bcdefg-1": 0} {
		for _, remote := range []bool{false, true} {
			w := &world{store: alike(t), book: newBook()}
			w.book.fails = errors.New("no ledger here")
			if remote {
				w.overDesk(t, "auditor")
			}
			r := w.call(strings.Fields(command)...)
			told := strings.Contains(r.err, "this is about bcdefg-1, the only stored id that begins with bcdefg-. Docket does not know whether another place has a decision bcdefg-:\n  not looked at completely: ")
			if r.code != code || !strings.Contains(r.out, "Decision bcdefg-1\n") || told != (command != "why bcdefg-1") {
				t.Errorf("%s, by a desk %t: exit %d\n%s%s", command, remote, r.code, r.out, r.err)
			}
		}
	}
}

// TestShortIDs_NotKnownInTime: the answer is not that there is none.
func TestShortIDs_NotKnownInTime(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"why abcdef", "logs abcdef", "diff abcdef-1 bcdefg-"} {
		w := &world{store: alike(t)}
		w.store.FailBegins(fmt.Errorf("no time was left: %w", reader.ErrWhole))
		if r := w.call(strings.Fields(args)...); r.code != 1 || !strings.Contains(r.err, "no time was left: give the whole id") || strings.Contains(r.err, "stored") {
			t.Errorf("%s: exit %d\n%s%s", args, r.code, r.out, r.err)
		}
	}
}
