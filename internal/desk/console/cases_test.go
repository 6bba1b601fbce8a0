package console_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// The methods of both embedded ledgers are those of the cases.
func (b *book) Snoozed(ctx context.Context) (int64, error) { return b.Cases.Snoozed(ctx) }
func (b *book) Assign(ctx context.Context, id, to string, by ledger.Actor) error {
	return b.Cases.Assign(ctx, id, to, by)
}
func (b *book) AssignGroup(ctx context.Context, fingerprint, to string, by ledger.Actor) error {
	return b.Cases.AssignGroup(ctx, fingerprint, to, by)
}
func (b *book) Snooze(ctx context.Context, ids []string, until time.Time, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.Cases.Snooze(ctx, ids, until, by)
}
func (b *book) Reopen(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	return b.Cases.Reopen(ctx, ids, by)
}
func (b *book) AddRule(ctx context.Context, r ledger.Rule, by ledger.Actor) (ledger.Rule, error) {
	return b.Cases.AddRule(ctx, r, by)
}
func (b *book) ApproveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	return b.Cases.ApproveRule(ctx, id, by)
}
func (b *book) RemoveRule(ctx context.Context, id int64, by ledger.Actor) (ledger.Rule, error) {
	return b.Cases.RemoveRule(ctx, id, by)
}
func (b *book) Rules(ctx context.Context, fingerprint string, all bool, n int) ([]ledger.Rule, error) {
	return b.Cases.Rules(ctx, fingerprint, all, n)
}
func (b *book) ActRule(ctx context.Context, id int64, t ledger.Turn) (ledger.Acting, error) {
	return b.Cases.ActRule(ctx, id, t)
}
func (b *book) GroupHistory(ctx context.Context, fingerprint string, n int) ([]ledger.GroupEvent, error) {
	return b.Cases.GroupHistory(ctx, fingerprint, n)
}
func (b *book) ApproveJob(ctx context.Context, id int64, by ledger.Actor) (ledger.Job, error) {
	return b.Cases.ApproveJob(ctx, id, by)
}

// Proposals in memory: every edit that names another path needs a second person.

func (b *book) Touched(_ context.Context, id string, value []byte) ([]string, bool, error) {
	if bytes.Contains(value, []byte(`"path"`)) {
		return []string{"path"}, true, nil
	}
	return nil, false, nil
}

func (b *book) Edit(_ context.Context, id string, seen ledger.Version, value []byte, _ string, _ time.Duration, by ledger.Actor) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.find(id)
	if err == nil && seen != "" && seen != ledger.VersionOf(e.Value) {
		err = &ledger.EditedError{ID: id}
	}
	if err == nil {
		e.Value, e.Edited, e.ChangedBy = value, true, by.Name
	}
	return err
}

func (b *book) Propose(_ context.Context, d ledger.Draft, by ledger.Actor) (ledger.Proposal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := ledger.Proposal{ID: int64(len(b.proposals) + 1), LetterID: d.LetterID, State: ledger.ProposalOpen, Members: []string{"path"}, Value: d.Value, By: by.Name, Why: by.Why, Vouched: true, CreatedAt: noon, ExpiresAt: noon.Add(time.Hour)}
	b.proposals = append(b.proposals, p)
	return p, nil
}

func (b *book) Proposal(_ context.Context, id int64) (ledger.Proposal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if id < 1 || int(id) > len(b.proposals) {
		return ledger.Proposal{}, ledger.ErrNotFound
	}
	return b.proposals[id-1], nil
}

func (b *book) ListProposals(_ context.Context, q ledger.ProposalQuery, n int) (list []ledger.Proposal, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range slices.Backward(b.proposals) {
		if (q.LetterID == "" || p.LetterID == q.LetterID) && (q.Before == 0 || p.ID < q.Before) && len(list) < n {
			list = append(list, p)
		}
	}
	return list, b.unlisted
}

func (b *book) Approve(ctx context.Context, id int64, diff string, _ time.Duration, by ledger.Actor) (ledger.Proposal, error) {
	p, err := b.Proposal(ctx, id)
	if err == nil && p.By == by.Name {
		err = &ledger.ProposalError{ID: id, Because: ledger.BecauseName}
	}
	if err == nil {
		err = b.Edit(ctx, p.LetterID, "", p.Value, diff, 0, by)
	}
	return p, err
}

func (b *book) Reject(ctx context.Context, id int64, _ ledger.Actor) (ledger.Proposal, error) {
	return b.Proposal(ctx, id)
}

func wants(t *testing.T, a answer, code int, texts ...string) {
	t.Helper()
	if a.code != code {
		t.Errorf("%d, want %d: %s", a.code, code, a.body)
	}
	for _, text := range texts {
		if text, not := strings.CutPrefix(text, "!"); strings.Contains(a.body, text) == not {
			t.Errorf("%q in %s", text, a.body)
		}
	}
}

func TestGroup_ResolvedByItsCount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	w.clock.pass(time.Second)
	retry := sealedIn(t, b.post(t, group+"/dry-run", nil).body)
	wants(t, b.post(t, group+"/resolve", url.Values{"count": {retry}, "note": {"n"}}), http.StatusConflict) // a dry run allows a retry alone
	a := b.post(t, group+"/count", nil)
	wants(t, a, http.StatusOK, "Resolve 5 letters")
	_, rest, _ := strings.Cut(a.body, `name="count" value="`)
	sealed, _, _ := strings.Cut(rest, `"`)
	wants(t, b.post(t, group+"/retry", url.Values{"dry_run": {sealed}, "reason": {"r"}}), http.StatusConflict)
	late := w.book.letters[0]
	late.ID, late.FailedAt = letterID(99), noon.Add(time.Minute)
	w.book.letters = append(w.book.letters, late)
	wants(t, b.post(t, group+"/resolve", url.Values{"count": {sealed}, "note": {""}}), http.StatusUnprocessableEntity)
	wants(t, b.post(t, group+"/resolve", url.Values{"count": {sealed}, "note": {"ticket 812"}}), http.StatusSeeOther)
	if j := w.book.jobs[0]; j.Limit != 5 || !j.Filter.To.Equal(noon.Add(time.Second)) || j.Act != ledger.Closed || j.Reason != "ticket 812" {
		t.Errorf("%+v", j)
	}
	w.book.jobs[0].State = ledger.JobProposed
	wants(t, b.get(t, "/jobs/1"), http.StatusOK, "A second person has to approve this job", `!action="/jobs/1/approve"`)
	wants(t, w.as(t, "admin").get(t, "/jobs/1"), http.StatusOK, `action="/jobs/1/approve"`)
	wants(t, b.post(t, "/jobs/1/approve", url.Values{"reason": {"r"}}), http.StatusConflict, "another person has to approve it")
	wants(t, w.as(t, "admin").post(t, "/jobs/1/approve", url.Values{"reason": {"r"}}), http.StatusSeeOther)
}

func TestGroup_RulesAndSnoozes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.Two = true
	b := w.as(t, "operator")
	group := "/dead-letters/groups/" + w.book.letters[0].Fingerprint
	rule := func(act, span string) answer {
		return b.post(t, group+"/rules", url.Values{"act": {act}, "for": {span}, "after": {"10"}, "rate": {"2"}, "reason": {"the index"}})
	}
	wants(t, rule("snooze", "a year"), http.StatusUnprocessableEntity)
	wants(t, rule("snooze", "1 day"), http.StatusSeeOther)
	wants(t, b.get(t, "/dead-letters"), http.StatusOK, "Snoozed: 5", "!data-th=\"Failure\"")
	wants(t, b.get(t, "/dead-letters?snoozed=1"), http.StatusOK, "snoozed until 2026-03-02 12:00:00 UTC")
	wants(t, rule("retry", "7 days"), http.StatusSeeOther)
	a := b.get(t, group)
	wants(t, a, http.StatusOK, "PROPOSED", "the index", "rule_proposed", ", all until ", `!/approve"`, `/remove"`)
	wants(t, w.as(t, "admin").get(t, group), http.StatusOK, `/approve"`)
	wants(t, b.post(t, "/rules/2/approve", url.Values{"reason": {"r"}}), http.StatusConflict)
	wants(t, w.as(t, "admin").post(t, "/rules/2/approve", url.Values{"reason": {"r"}}), http.StatusSeeOther)
	wants(t, b.post(t, "/rules/1/remove", url.Values{"reason": {"r"}}), http.StatusSeeOther)
	wants(t, b.get(t, "/dead-letters"), http.StatusOK, "Snoozed: 0", "data-th=\"Failure\"")
	wants(t, b.post(t, group+"/assign", url.Values{"to": {"mara"}, "reason": {"r"}}), http.StatusSeeOther)
	wants(t, b.get(t, "/dead-letters?assigned=-"), http.StatusOK, "!data-th=\"Failure\"")
	wants(t, b.get(t, "/dead-letters?assigned=mara"), http.StatusOK, "data-th=\"Failure\"")
	wants(t, b.get(t, group+"?state=nonsense"), http.StatusUnprocessableEntity)
}

func TestLetter_SnoozedAssignedReopened(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "operator")
	letter := "/dead-letters/" + letterID(0)
	wants(t, b.post(t, letter+"/snooze", url.Values{"for": {"3 days"}, "reason": {"r"}}), http.StatusSeeOther)
	wants(t, b.get(t, letter), http.StatusOK, "Snoozed until")
	wants(t, b.post(t, letter+"/snooze", url.Values{"for": {"now"}, "reason": {"r"}}), http.StatusSeeOther)
	wants(t, b.get(t, letter), http.StatusOK, "!Snoozed until")
	wants(t, b.post(t, letter+"/assign", url.Values{"to": {"<b>mara"}, "reason": {"r"}}), http.StatusSeeOther)
	wants(t, b.get(t, letter), http.StatusOK, "&lt;b&gt;mara", "!<b>mara")
	wants(t, b.post(t, letter+"/resolve", url.Values{"note": {"n"}}), http.StatusSeeOther)
	wants(t, b.post(t, letter+"/reopen", url.Values{"note": {"n"}}), http.StatusSeeOther)
	if s := w.book.letters[0].State; s != ledger.Pending {
		t.Error(s)
	}
}

func TestEdit_DifferenceBeforeItIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, letter := w.as(t, "operator"), "/dead-letters/"+letterID(0)
	was := string(w.book.letters[0].Value)
	wants(t, b.post(t, letter+"/edit", nil), http.StatusOK, "Show the difference", "planted")
	edit := func(b *browser, step, payload string) answer {
		return b.post(t, letter+"/edit/"+step, url.Values{"payload": {payload}, "reason": {"typo"}})
	}
	wants(t, edit(b, "preview", "{\r\n \"a\": }"), http.StatusOK, "look at line 2, column 7", "!Save this edit")
	wants(t, edit(b, "preview", was), http.StatusOK, "Nothing is changed", "!Save this edit")
	wants(t, edit(b, "preview", `{"a":"<script>"}`), http.StatusOK, "Save this edit", "<del>-", "<ins>&#43;", "&lt;script&gt;", "!<script>")
	if string(w.book.letters[0].Value) != was {
		t.Error("a look at the difference stored it")
	}
	wants(t, edit(b, "save", `{"a":`), http.StatusUnprocessableEntity)
	wants(t, edit(b, "save", `{"a":2}`), http.StatusConflict, "not the difference that you saw") // it was never shown
	save := seenIn(edit(b, "preview", `{"a":2}`))
	save.Set("payload", `{"a":2}`)
	save.Set("reason", "typo")
	w.book.letters[0].Value = []byte(`{"a":7}`) // somebody else edited it meanwhile
	wants(t, b.post(t, letter+"/edit/save", save), http.StatusConflict, "not the difference that you saw", "Save this edit")
	w.book.letters[0].Value = []byte(was)
	wants(t, b.post(t, letter+"/edit/save", save), http.StatusSeeOther)
	if got := string(w.book.letters[0].Value); got != `{"a":2}` {
		t.Error(got)
	}
	if !strings.Contains(w.log.String(), "payload read") {
		t.Error("the looks are not noted")
	}
	wants(t, edit(b, "preview", `"`+strings.Repeat("x", 21<<10)+`"`), http.StatusUnprocessableEntity, "at most 20 KiB")
}

// seenIn is the mark of the difference on a page.
func seenIn(a answer) url.Values {
	_, rest, _ := strings.Cut(a.body, `name="seen" value="`)
	seen, _, _ := strings.Cut(rest, `"`)
	return url.Values{"seen": {seen}}
}

// TestEdit_Lines: a record can be lines of JSON, each a decision.
func TestEdit_Lines(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, letter := w.as(t, "operator"), "/dead-letters/"+letterID(0)
	for payload, want := range map[string]string{
		"{\"a\":1}\n\n{\"b\":2}\n": "Save this edit", "{\"a\":1}\n{\"b\":}": "This is not JSON: look at line 2, column 6.", "{\"a\":\n1}\n{": "This is not JSON: look at line 3, column 1.",
	} {
		if a := b.post(t, letter+"/edit/preview", url.Values{"payload": {payload}, "reason": {"typo"}}); !strings.Contains(a.body, want) {
			t.Errorf("%q: %d, without %q", payload, a.code, want)
		}
	}
}

// TestEdit_HiddenCharactersAreNotEdited: a page shows these as codes, and a form would send the codes back.
func TestEdit_HiddenCharactersAreNotEdited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b, letter := w.as(t, "operator"), "/dead-letters/"+letterID(0)
	for name, hidden := range map[string]string{"no-break space": `\u00a0`, "joiner": `\u200d`, "soft hyphen": `\u00ad`, "tab": `\t`} {
		payload := `{"a":"x` + hidden + `y"}`
		wants(t, b.post(t, letter+"/edit/preview", url.Values{"payload": {payload}, "reason": {"typo"}}), http.StatusOK, "Save this edit")
		raw, err := strconv.Unquote(`"` + hidden + `"`)
		if err != nil {
			t.Fatal(err)
		}
		if payload = `{"a":"x` + raw + `y"}`; name == "tab" { // JSON refuses it within a string
			payload = `{"a":"xy"` + raw + `}`
		}
		wants(t, b.post(t, letter+"/edit/preview", url.Values{"payload": {payload}, "reason": {"typo"}}), http.StatusUnprocessableEntity, "a character that pages show as a code", "!<textarea")
		w.book.letters[0].Value = []byte(payload)
		a := b.post(t, letter+"/edit", nil)
		if wants(t, a, http.StatusUnprocessableEntity, "docket dlq edit"); strings.Contains(a.body, "<textarea") {
			t.Errorf("%s is in a form", name)
		}
	}
}

// The page of a letter is there without the proposals, and says so.
func TestLetter_ProposalsUnread(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.unlisted = errors.New("no right to read them")
	wants(t, w.as(t, "operator").get(t, "/dead-letters/"+letterID(0)), http.StatusOK, "The desk could not read which edits wait", "Resolve")
}

func TestEdit_AnotherPersonApproves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, letter := w.as(t, "admin"), "/dead-letters/"+letterID(0)
	form := url.Values{"payload": {`{"path":"a/b"}`}, "reason": {"typo"}}
	shown := admin.post(t, letter+"/edit/preview", form)
	wants(t, shown, http.StatusOK, "Another person has to approve it", "Propose this edit")
	form.Set("seen", seenIn(shown).Get("seen"))
	operator := w.as(t, "operator")
	wants(t, operator.post(t, letter+"/edit/preview", form), http.StatusOK, "which is evidence", "An admin proposes it; your role is operator", "!Propose this edit", "!Save this edit", "Show the difference")
	wants(t, operator.post(t, letter+"/edit/save", form), http.StatusForbidden)
	a := admin.post(t, letter+"/edit/save", form)
	if a.code != http.StatusSeeOther || a.header.Get("Location") != "/proposals/1" {
		t.Fatalf("%d %v", a.code, a.header)
	}
	wants(t, admin.get(t, letter), http.StatusOK, `<a href="/proposals/1">`)
	wants(t, admin.get(t, "/proposals/1"), http.StatusOK, `<a href="`+letter+`">Letter</a>`, "You proposed it", "!Approve and make this edit", "<ins>")
	wants(t, admin.post(t, "/proposals/1/approve", url.Values{"reason": {"r"}}), http.StatusConflict)
	if w.book.letters[0].Edited {
		t.Error("it was edited by one person")
	}
	wants(t, w.as(t, "operator").get(t, "/dead-letters"), http.StatusOK, "Edits that wait for a second person")
	w.book.proposals[0].By = "oidc:adam@acme.example" // the same person, logged in elsewhere
	wants(t, admin.get(t, "/proposals/1"), http.StatusOK, "You proposed it", "!Approve and make this edit", "Withdraw")
	w.book.proposals[0].By = "somebody"
	wants(t, admin.get(t, "/proposals/1"), http.StatusOK, "Approve and make this edit")
	wants(t, admin.post(t, "/proposals/1/approve", url.Values{"reason": {"r"}}), http.StatusSeeOther)
	if !w.book.letters[0].Edited {
		t.Error("it was not edited")
	}
}
