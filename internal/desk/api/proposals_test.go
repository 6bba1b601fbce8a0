package api_test

import (
	"net/http"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

// TestEdit_NeedsASecondPerson: an operator may not change evidence at all. An admin may only propose it while the
// rule is on.
func TestEdit_NeedsASecondPerson(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.book.two = true
	path, body := "/dead-letters/"+id(0), `{"payload":"{\"path\":\"other\"}","reason":"r","retry":true}`
	if p := w.ask(t, "operator", "PUT", path+"/payload", body).problem(t); p.Status != http.StatusForbidden || !strings.Contains(p.Detail, "changes path and needs the role admin") {
		t.Errorf("%+v", p)
	}
	if !strings.Contains(w.log.String(), "request refused by role") {
		t.Error(w.log)
	}
	if p := w.ask(t, "admin", "PUT", path+"/payload", body).problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Hint, "/proposals") {
		t.Errorf("%+v", p)
	}
	if e := w.book.letters[id(0)]; e.Edited || len(w.book.audit[id(0)]) != 1 {
		t.Errorf("%+v", e)
	}
	if a := w.ask(t, "operator", "PUT", path+"/payload", `{"payload":"{\"label\":1}","reason":"r"}`); a.code != http.StatusOK {
		t.Error("nobody's evidence:", a)
	}
	if p := w.ask(t, "admin", "POST", path+"/proposals", `{"payload":"{\"label\":2}","reason":"r"}`).problem(t); p.Status != http.StatusUnprocessableEntity {
		t.Errorf("%+v", p)
	}
	var p api.Proposal
	w.ask(t, "admin", "POST", path+"/proposals", body).into(t, &p)
	made := w.book.proposed[len(w.book.proposed)-1]
	if p.By != "adam" || p.State != ledger.ProposalOpen || !p.Vouched || !p.Retry || made.By != "adam" || !made.Vouched || string(made.Value) != `{"path":"other"}` {
		t.Errorf("%+v %+v", p, made)
	}
}

func TestProposals_AreDecided(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var shown api.ProposalPayload
	w.ask(t, "operator", "GET", "/proposals/1", "").into(t, &shown)
	if shown.Value.Text == nil || !strings.Contains(*shown.Value.Text, marker) || !strings.Contains(shown.Diff, `+  "path": "`+marker+`"`) {
		t.Errorf("%+v", shown)
	}
	if log := w.log.String(); !strings.Contains(log, `"operator":"olga"`) || !strings.Contains(log, "payload read") || strings.Contains(log, marker) || w.count(t, "docket_desk_api_payload_looks_total", nil) != 1 {
		t.Error(log)
	}
	var p api.Proposal
	w.ask(t, "admin", "POST", "/proposals/1/approve", `{"reason":"looked at it"}`).into(t, &p)
	if p.State != ledger.ProposalApproved || p.DecidedBy != "adam" || p.DecidedWhy != "looked at it" || p.DecidedAt == nil {
		t.Errorf("%+v", p)
	}
	// The audit has the difference that the approver saw. It is computed here.
	if line := w.book.audit[id(0)][1]; !strings.Contains(line.Diff, `+  "path": "`+marker+`"`) {
		t.Errorf("%+v", line)
	}
	w.book.proposed[3].By = "adam"
	for path, want := range map[string]string{"/proposals/1/approve": "approved or rejected before", "/proposals/2/approve": "database login can be one person", "/proposals/4/approve": "you proposed it"} {
		if p := w.ask(t, "admin", "POST", path, `{"reason":"r"}`).problem(t); p.Status != http.StatusConflict || !strings.Contains(p.Detail, want) {
			t.Errorf("%s: %+v", path, p)
		}
	}
	w.ask(t, "admin", "POST", "/proposals/4/reject", `{"reason":"mine"}`).into(t, &p)
	if p.State != ledger.ProposalRejected || p.DecidedBy != "adam" {
		t.Errorf("%+v", p)
	}
	for _, path := range []string{"GET /proposals/99", "POST /proposals/99/approve", "POST /proposals/99/reject"} {
		method, path, _ := strings.Cut(path, " ")
		body := map[string]string{"POST": `{"reason":"r"}`}[method]
		if p := w.ask(t, "admin", method, path, body).problem(t); p.Status != http.StatusNotFound {
			t.Errorf("%s: %+v", path, p)
		}
	}
	w.book.refuses = sqlError{"42501"}
	if p := w.ask(t, "admin", "POST", "/proposals/3/reject", `{"reason":"r"}`).problem(t); p.Status != http.StatusServiceUnavailable || !strings.Contains(p.Hint, "docket_desk_api") {
		t.Errorf("%+v", p)
	}
	var list, all api.ProposalList
	w.ask(t, "viewer", "GET", "/proposals", "").into(t, &list)
	a := w.ask(t, "viewer", "GET", "/proposals?all=true", "")
	if a.into(t, &all); len(list.Proposals) != 3 || len(all.Proposals) != 5 || strings.Contains(a.body, marker) {
		t.Errorf("%d open, %d in all: %s", len(list.Proposals), len(all.Proposals), a.body)
	}
}
