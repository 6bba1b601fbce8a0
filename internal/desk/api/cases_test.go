package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/testkit/ledgermodel"
)

// cases look after the letters of a book, with one rule that waits for a second person and one job that does.
func (b *book) cases() ledgermodel.Cases {
	c := ledgermodel.Cases{
		Begin: b.enter, Letter: func(id string) *ledger.Entry { return b.letters[id] }, Group: func(f string) bool { return f == fingerprint }, Two: true,
		Job: func(id int64) *ledger.Job {
			if id < 1 || int(id) > len(b.jobs) {
				return nil
			}
			return &b.jobs[id-1]
		},
	}
	for _, topic := range []string{"", "other"} {
		_, _ = c.AddRule(context.Background(), ledger.Rule{Fingerprint: fingerprint, Topic: topic, Act: ledger.Closed, Most: 10, Failures: 1, EndsAt: time.Now().Add(time.Hour)}, ledger.Actor{Name: "mara", Why: "w"})
	}
	return c
}

var fingerprint = ledger.Fingerprint(envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "check_violation", Table: "decision_logs", Constraint: "path_ok"})

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

func TestCases_OfALetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var l api.Letter
	w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/assign", `{"to":"mara","reason":"r"}`).into(t, &l)
	if l.Assigned != "mara" {
		t.Errorf("%+v", l)
	}
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/snooze", `{"until":"`+until+`","reason":"r"}`).into(t, &l)
	if l.SnoozedUntil == nil || l.SnoozedUntil.Format(time.RFC3339) != until {
		t.Errorf("%+v", l)
	}
	if p := w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/snooze", `{"until":"2020-01-01T00:00:00Z","reason":"r"}`).problem(t); p.Status != http.StatusUnprocessableEntity || p.Faults[0].Location != "until" && p.Faults[0].Location != "…" {
		t.Errorf("%+v", p)
	}
	if p := w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/reopen", `{"note":"n"}`).problem(t); p.Status != http.StatusConflict || p.State != "PENDING" {
		t.Errorf("%+v", p)
	}
	w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/resolve", `{"note":"n"}`)
	if a := w.ask(t, "operator", "POST", "/dead-letters/"+id(0)+"/reopen", `{"note":"n"}`); a.code != http.StatusOK || !strings.Contains(a.body, `"act":"reopened"`) {
		t.Error(a)
	}
}

func TestCases_OfAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	until := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	rule := func(more string) string {
		return `{"fingerprint":"` + fingerprint + `","until":"` + until + `","reason":"r",` + more + `}`
	}
	if p := w.ask(t, "operator", "POST", "/rules", rule(`"act":"retry"`)).problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Detail, "rule 1 holds") {
		t.Errorf("%+v", p)
	}
	if p := w.ask(t, "operator", "POST", "/rules", rule(`"act":"retry","topic":"t","most":1001`)).problem(t); p.Status != http.StatusForbidden {
		t.Errorf("%+v", p)
	}
	var r api.Rule
	w.ask(t, "operator", "POST", "/rules", rule(`"act":"retry","topic":"t","after_seconds":90,"rate":0.5`)).into(t, &r)
	if r.State != ledger.RuleProposed || r.Most != ledger.DefaultActs || r.Failures != ledger.DefaultFailures || r.AfterSeconds != 90 || r.By != "olga" {
		t.Errorf("%+v", r)
	}
	if p := w.ask(t, "operator", "POST", "/rules/3/approve", `{"reason":"r"}`).problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Detail, "another person") {
		t.Errorf("%+v", p)
	}
	w.ask(t, "admin", "POST", "/rules/3/approve", `{"reason":"r"}`).into(t, &r)
	if r.State != ledger.RuleActive || r.ApprovedBy == "" || r.ApprovedBy == "olga" {
		t.Errorf("%+v", r)
	}
	w.ask(t, "operator", "POST", "/groups/"+fingerprint+"/assign", `{"to":"mara","reason":"r"}`)
	var h api.GroupHistory
	w.ask(t, "viewer", "GET", "/groups/"+fingerprint+"/history?limit=3", "").into(t, &h)
	var acts []string
	for _, e := range h.Events {
		acts = append(acts, e.Act)
	}
	if got := strings.Join(acts, " "); got != "assigned rule_approved rule_proposed" {
		t.Error(got)
	}
	if p := w.ask(t, "viewer", "GET", "/groups/0123456789abcdef/history", "").problem(t); p.Status != http.StatusNotFound {
		t.Errorf("%+v", p)
	}
}
