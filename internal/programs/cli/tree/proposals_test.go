package tree

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
)

// proposing is a ledger where every edit changes the path, with a proposal of each state.
func proposing() *book {
	b := newBook(deadLetters()...)
	b.touches = []string{"path"}
	value := []byte(strings.Replace(string(deadLetters()[0].Value), "authz/allow", `authz/deny\u001b[31m`, 1))
	for i, state := range []ledger.ProposalState{ledger.ProposalOpen, ledger.ProposalApproved, ledger.ProposalRejected, ledger.ProposalExpired, ledger.ProposalVoid, ledger.ProposalOpen} {
		p := ledger.Proposal{
			ID: int64(i + 1), LetterID: deadLetters()[i%5].ID, State: state, Members: []string{"path", "input"}, Retry: i%2 == 0, Value: value, By: "mara", Why: "the path had a line break\x1b[2J", Login: "clerk_mara",
			CreatedAt: now.Add(-time.Duration(i+1) * time.Hour), ExpiresAt: now.Add(time.Duration(6-i) * 24 * time.Hour),
		}
		if state == ledger.ProposalApproved || state == ledger.ProposalRejected {
			p.Decided = ledger.Decided{By: "oleg", Why: "looked at it", Login: "clerk_oleg", At: now.Add(-time.Minute)}
		}
		b.proposals = append(b.proposals, p)
	}
	b.proposals[5].Vouched, b.proposals[5].Login, b.proposals[5].LetterID = true, "docket_daemon", deadLetters()[0].ID
	return b
}

func TestProposals_AreShown(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"list": {"dlq", "proposals"}, "all": {"dlq", "proposals", "--all"}, "open": {"dlq", "proposals", "1"}, "approved": {"dlq", "proposals", "2"}, "expired": {"dlq", "proposals", "4"}, "vouched": {"dlq", "proposals", "6"},
	} {
		for how, c := range map[string]struct {
			terminal term.Terminal
			args     []string
		}{"80": {person(80), nil}, "pipe": {term.Terminal{}, nil}, "json": {term.Terminal{}, []string{"--json"}}} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				r := (&world{book: proposing(), terminal: c.terminal}).call(append(args, c.args...)...)
				if r.code != 0 || how == "json" && !json.Valid([]byte(r.out)) {
					t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
				}
				quiet(t, r.out+r.err)
				if shown := strings.Contains(r.out+r.err, "authz/deny"); shown != (name == "open" || name == "vouched" || how == "json" && len(args) == 3 && args[2] != "--all") {
					t.Errorf("shows a payload: %v\n%s", shown, r.out)
				}
				golden(t, "proposals_"+name+"_"+how+".txt", r.out+"---\n"+r.err)
			})
		}
	}
	if r := (&world{}).call("dlq", "proposals"); r.code != 0 || r.out != "" || !strings.Contains(r.err, "no edit waits") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
	}
	if r := (&world{}).call("dlq", "proposals", "17"); r.code != cli.Failed || !strings.Contains(r.err, "proposal 17: not in the ledger") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
	}
}

// TestEdit_IsProposed: an edit that needs a second person is not saved, and the next steps are printed.
func TestEdit_IsProposed(t *testing.T) {
	t.Parallel()
	mended := strings.Replace(string(deadLetters()[0].Value), "allow", "deny", 1)
	script := append(editArgs[:len(editArgs):len(editArgs)], "--file", "-", "--yes")
	for _, more := range [][]string{nil, {"--no-retry"}, {"--json"}} {
		w := &world{book: newBook(deadLetters()...), stdin: mended}
		w.book.touches = []string{"path", "result"}
		r := w.call(append(script, more...)...)
		want := fmt.Sprintf("proposed %.12s by mara: path was wrong: %s, retry %v, before %.20s", deadLetters()[0].ID, mended, len(more) == 0 || more[0] != "--no-retry", deadLetters()[0].Value)
		if r.code != 0 || w.book.changes() != want || w.book.entries[0].Edited || !strings.Contains(r.err, "this changes path, result: a second person has to approve it") {
			t.Errorf("%v: exit %d, did %s\n%s%s", more, r.code, w.book.changes(), r.out, r.err)
		}
		if more == nil {
			golden(t, "proposed.txt", r.out+"---\n"+r.err)
		}
		if len(more) > 0 && more[0] == "--json" {
			var p struct {
				Proposal int    `json:"proposal"`
				State    string `json:"state"`
			}
			if err := json.Unmarshal([]byte(r.out), &p); err != nil || p.Proposal != 1 || p.State != "OPEN" {
				t.Errorf("%v %s", err, r.out)
			}
		}
	}
	h := &hand{turns: []func(string) string{replaced("authz/allow", "authz/deny")}}
	w := &world{book: newBook(deadLetters()...), terminal: person(80), stdin: "n\n", edit: h.edit}
	w.book.touches = []string{"path"}
	if r := w.call(editArgs...); r.code != cli.Failed || w.book.changes() != "" || !strings.Contains(r.err, "Propose it? [y/N]") {
		t.Errorf("exit %d, did %s\n%s%s", r.code, w.book.changes(), r.out, r.err)
	}
}

// TestProposals_CommandsOfTheDesk: a desk refuses another name than that of the token, so no command that is printed has one.
func TestProposals_CommandsOfTheDesk(t *testing.T) {
	t.Parallel()
	w := (&world{book: proposing()}).overDesk(t, "admin")
	w.says(t, cli.Done, []string{"dlq", "proposals", "6"}, "another admin", "docket dlq approve 6 --reason '...'", "docket dlq reject 6 --reason '...'", "!POST", "!--operator")
	w = (&world{book: newBook(deadLetters()...), stdin: strings.Replace(string(deadLetters()[0].Value), "allow", "deny", 1)}).overDesk(t, "admin")
	w.book.touches = []string{"path"}
	w.says(t, cli.Done, []string{"dlq", "edit", deadLetters()[0].ID, "--file", "-", "--yes", "--reason", "x"}, "with a token of their own", "docket dlq approve 1 --reason '...'", "!--operator", "!database login")
}

func TestApprove_MakesTheEdit(t *testing.T) {
	t.Parallel()
	oleg := []string{"--operator", "oleg", "--reason", "looked at it"}
	synctest.Test(t, func(t *testing.T) {
		w := &world{book: proposing(), terminal: person(80), stdin: "y\n"}
		w.book.ends = always(ledger.SendingStored, "")
		r := w.call(append([]string{"dlq", "approve", "1"}, oleg...)...)
		if r.code != 0 || !strings.Contains(r.out, `-  "path": "authz/allow",`) || !strings.Contains(r.out, "RESOLVED") || !strings.Contains(r.err, "Approve this edit of a00000000000 by mara? [y/N]") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		lines := w.book.audits[deadLetters()[0].ID]
		if lines[1].Act != ledger.Approved || lines[1].By != "oleg" || lines[2].Act != ledger.Edited || lines[2].By != "mara" || !strings.Contains(lines[2].Diff, `-  "path": "authz/allow"`) {
			t.Errorf("%+v", lines)
		}
		quiet(t, r.out)
	})
	w := &world{book: proposing()}
	w.book.proposals[0].Retry = false
	r := w.call(append([]string{"dlq", "approve", "1", "--yes", "--json"}, oleg...)...)
	if r.code != 0 || !json.Valid([]byte(r.out)) || !w.book.entries[0].Edited || w.book.entries[0].State != ledger.Pending {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	w = &world{book: proposing(), terminal: person(80), stdin: "n\n"}
	if r := w.call(append([]string{"dlq", "approve", "1"}, oleg...)...); r.code != cli.Failed || w.book.changes() != "" {
		t.Errorf("exit %d, did %s\n%s%s", r.code, w.book.changes(), r.out, r.err)
	}
	w = &world{book: proposing()}
	if r := w.call(append([]string{"dlq", "reject", "1"}, oleg...)...); r.code != 0 || w.book.changes() != "rejected proposal 1 by oleg: looked at it" || !strings.Contains(r.out, "proposal 1 of dead letter") {
		t.Errorf("exit %d, did %s\n%s%s", r.code, w.book.changes(), r.out, r.err)
	}
}

// TestApprove_Refused: nothing is changed, and it is said what to do.
func TestApprove_Refused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		id, hint string
		because  ledger.Because
	}{
		"approved before": {"2", "dlq proposals --all", ""}, "rejected before": {"3", "dlq proposals --all", ""}, "expired": {"4", "propose the edit again", ""}, "void": {"5", "look at the dead letter", ""},
		"the same login": {"1", "use a database login for each person", ledger.BecauseLogin}, "the same name": {"1", "`docket dlq reject` withdraws it", ledger.BecauseName},
		"of the API": {"6", "in the way in which it was proposed", ledger.BecauseOtherWay}, "meanwhile": {"1", "dlq proposals --all", ledger.BecauseEnded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{book: proposing()}
			w.book.refuses = c.because
			r := w.call("dlq", "approve", c.id, "--yes", "--operator", "oleg", "--reason", "looked at it")
			if r.code != cli.Failed || w.book.changes() != "" || !strings.Contains(r.err, c.hint) || !strings.Contains(r.err, "proposal "+c.id+" is not approved: ") {
				t.Errorf("exit %d, did %s\n%s%s", r.code, w.book.changes(), r.out, r.err)
			}
		})
	}
}
