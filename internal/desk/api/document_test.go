package api_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
)

func TestDocument_IsValidOpenAPI(t *testing.T) {
	t.Parallel()
	doc, err := served()
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(doc.OpenAPI, "3.1") || doc.Info.Version != "1.2.3" {
		t.Errorf("the document is of OpenAPI %s, version %s", doc.OpenAPI, doc.Info.Version)
	}
	yaml := newWorld(t).ask(t, "viewer", http.MethodGet, "/openapi.yaml", "")
	other, err := openapi3.NewLoader().LoadFromData([]byte(yaml.body))
	if err != nil || other.Paths.Len() != doc.Paths.Len() || doc.Paths.Len() < 15 {
		t.Errorf("as YAML it has %d paths, as JSON %d: %v", other.Paths.Len(), doc.Paths.Len(), err)
	}
}

// All operations, each with the least role that may use it and a request that succeeds with that role.
var permissions = []struct {
	operation, role, method, path, body string
	code                                int
}{
	{"list-dead-letters", "viewer", "GET", "/dead-letters?states=PENDING,FAILED&kind=data&limit=2&partition=0&from=2026-01-01T00:00:00Z", "", 200},
	{"show-dead-letter", "viewer", "GET", "/dead-letters/" + id(0), "", 200},
	{"show-history", "viewer", "GET", "/dead-letters/" + id(0)[:6] + "/history", "", 200},
	{"list-groups", "viewer", "GET", "/groups?code=23514", "", 200},
	{"report", "viewer", "GET", "/report", "", 200},
	{"classify", "viewer", "GET", "/classify/23514", "", 200},
	{"whoami", "viewer", "GET", "/whoami", "", 200},
	{"where-is", "viewer", "GET", "/where-is?q=decision-logs/0/1", "", 200},
	{"check", "operator", "GET", "/check", "", 200},
	{"verify", "operator", "GET", "/verify?since=2h&settled=true&from=decision-logs/0/1&from=decision-logs/1/2", "", 200},
	{"list-jobs", "viewer", "GET", "/jobs?limit=5", "", 200},
	{"show-job", "viewer", "GET", "/jobs/1", "", 200},
	{"search-decisions", "viewer", "GET", "/decisions?since=3h&verdict=denied&verdict=allowed&path=authz/*&path=http/example/authz/allow&label=app%3Dcheckout&limit=5&order=oldest", "", 200},
	{"search-decisions", "auditor", "GET", "/decisions?payload=true&match=input:/n%3D1", "", 200},
	{"search-decisions", "auditor", "GET", "/decisions?match=result:/reasons", "", 200},
	{"show-decision", "auditor", "GET", "/decisions/" + decisionID, "", 200},
	{"count-decisions", "viewer", "GET", "/decisions/stats?by=service&since=2h&step=5m&service=checkout&service=payments", "", 200},
	{"follow-decisions", "viewer", "GET", "/decisions/follow?verdict=denied", "", 200},
	{"follow-decisions", "auditor", "GET", "/decisions/follow?payload=true&limit=3&tail=" + tailAt(0), "", 200},
	{"follow-decisions", "auditor", "GET", "/decisions/follow?match=input:/n&limit=3&tail=" + tailAt(0), "", 200},
	{"explain-decision", "auditor", "GET", "/decisions/" + decisionID + "/why?neighbours=2&same_input=true", "", 200},
	{"diff-decisions", "auditor", "GET", "/decisions/diff?a=" + decisionID + "&b=" + decisionID, "", 200},
	{"show-states", "auditor", "GET", "/states?subject=alice&path=admin/*&path=a/b&limit=5", "", 200},
	{"list-flips", "auditor", "GET", "/flips?subject=alice&path=admin/*&since=3h&after=1&before=99&order=oldest&limit=5", "", 200},
	{"explain-decision", "auditor", "GET", "/decisions/" + decisionID + "/why?elsewhere=false", "", 200},
	{"list-desks", "viewer", "GET", "/desks?within=5&backlog=true", "", 200},
	{"list-surplus", "viewer", "GET", "/surplus?all=true&limit=5", "", 200},
	{"order-surplus", "operator", "POST", "/surplus/1/order", `{"reason":"r"}`, 200},
	{"touch-payload", "operator", "POST", "/dead-letters/" + id(0) + "/touches", `{"payload":"{}"}`, 200},
	{"show-history", "operator", "GET", "/dead-letters/" + id(0) + "/history?payload=true", "", 200},
	{"find-rows", "viewer", "GET", "/rows?id=" + decisionID, "", 200},
	{"find-rows", "viewer", "GET", "/rows?limit=2&prefix=" + decisionID[:8], "", 200},
	{"find-rows", "auditor", "GET", "/rows?payload=true&id=" + decisionID, "", 200},
	{"find-homes", "viewer", "GET", "/homes?id=" + decisionID, "", 200},
	{"find-homes", "auditor", "GET", "/homes?payload=true&id=" + decisionID, "", 200},
	{"show-completeness", "viewer", "GET", "/completeness?since=2h&path=authz/*&service=checkout", "", 200},
	{"show-payload", "operator", "GET", "/dead-letters/" + id(0) + "/payload", "", 200},
	{"edit-payload", "operator", "PUT", "/dead-letters/" + id(0) + "/payload", `{"payload":"{}","reason":"r","retry":true}`, 200},
	{"edit-payload", "admin", "PUT", "/dead-letters/" + id(0) + "/payload", `{"payload":"{\"path\":1}","reason":"r","retry":true}`, 200},
	{"list-proposals", "viewer", "GET", "/proposals?all=true&limit=5", "", 200},
	{"show-proposal", "operator", "GET", "/proposals/1", "", 200},
	{"propose-edit", "admin", "POST", "/dead-letters/" + id(0) + "/proposals", `{"payload":"{\"path\":1}","reason":"r","retry":true}`, 201},
	{"approve-edit", "admin", "POST", "/proposals/1/approve", `{"reason":"r"}`, 200},
	{"reject-edit", "admin", "POST", "/proposals/1/reject", `{"reason":"r"}`, 200},
	{"retry-dead-letter", "operator", "POST", "/dead-letters/" + id(0) + "/retry", `{"reason":"r"}`, 200},
	{"resolve-dead-letter", "operator", "POST", "/dead-letters/" + id(0) + "/resolve", `{"note":"n"}`, 200},
	{"try-dead-letters", "operator", "POST", "/trials", `{"filter":{"code":"23514"}}`, 200},
	{"create-job", "operator", "POST", "/jobs", `{"act":"retry","filter":{"code":"23514"},"limit":1000,"reason":"r"}`, 201},
	{"create-job", "admin", "POST", "/jobs", `{"act":"retry","filter":{"code":"23514"},"limit":1001,"reason":"r"}`, 201},
	{"create-job", "admin", "POST", "/jobs", `{"act":"resolve","filter":{},"all":true,"reason":"r"}`, 201},
	{"assign-dead-letter", "operator", "POST", "/dead-letters/" + id(0) + "/assign", `{"to":"mara","reason":"r"}`, 200},
	{"snooze-dead-letter", "operator", "POST", "/dead-letters/" + id(0) + "/snooze", `{"reason":"r"}`, 200},
	{"reopen-dead-letter", "operator", "POST", "/dead-letters/" + id(3) + "/reopen", `{"note":"n"}`, 200},
	{"assign-group", "operator", "POST", "/groups/" + fingerprint + "/assign", `{"to":"","reason":"r"}`, 200},
	{"show-group-history", "viewer", "GET", "/groups/" + fingerprint + "/history?limit=5", "", 200},
	{"list-audit", "viewer", "GET", "/audit?act=closed&act=retried&actor=mara&since=3h&until=1h&before=9&limit=5", "", 200},
	{"list-audit", "viewer", "GET", "/audit?of=groups&group=" + fingerprint + "&after=1", "", 200},
	{"show-calendar", "viewer", "GET", "/archive?before=2026-11-02&limit=5", "", 200},
	{"list-archives", "viewer", "GET", "/archives?limit=1&after=" + archiveName, "", 200},
	{"verify-archive", "operator", "GET", "/archives/" + archiveName + "/verify", "", 200},
	{"forget-day", "admin", "POST", "/archive/2026-02-25/forget", `{"reason":"over"}`, 200},
	{"list-rules", "viewer", "GET", "/rules?all=true&limit=5&fingerprint=" + fingerprint, "", 200},
	{"add-rule", "operator", "POST", "/rules", `{"fingerprint":"` + fingerprint + `","act":"snooze","until":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `","reason":"r"}`, 201},
	{"add-rule", "admin", "POST", "/rules", `{"fingerprint":"` + fingerprint + `","topic":"t","act":"resolve","most":1001,"until":"` + time.Now().Add(time.Hour).UTC().Format(time.RFC3339) + `","reason":"r"}`, 201},
	{"approve-rule", "operator", "POST", "/rules/1/approve", `{"reason":"r"}`, 200},
	{"remove-rule", "operator", "POST", "/rules/2/remove", `{"reason":"r"}`, 200},
	{"approve-job", "operator", "POST", "/jobs/4/approve", `{"reason":"r"}`, 200},
	{"stop-job", "operator", "POST", "/jobs/1/stop", `{"reason":"r"}`, 200},
	{"resume-job", "operator", "POST", "/jobs/2/resume", `{"reason":"r"}`, 200},
	{"resume-job", "admin", "POST", "/jobs/3/resume", `{"reason":"r"}`, 200},
}

func TestRoles_AreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	doc, err := served()
	if err != nil {
		t.Fatal(err)
	}
	exercised := map[string]int{}
	ranks := []string{"", "viewer", "auditor", "operator", "admin"}
	still := newWorld(t)
	still.withJobs(t)
	for _, row := range permissions {
		for rank, role := range ranks {
			want := row.code
			switch {
			case role == "":
				want = http.StatusUnauthorized
			case rank < slices.Index(ranks, row.role):
				want = http.StatusForbidden
			}
			w := still // neither a refusal nor a look changes it
			if want < 400 && row.method != http.MethodGet {
				w = newWorld(t)
				w.withJobs(t)
			}
			a := w.ask(t, role, row.method, row.path, row.body)
			if a.code != want {
				t.Errorf("%s by %q gave %d and not %d: %s", row.operation, role, a.code, want, a.body)
			}
			if want >= 400 {
				a.problem(t)
			} else {
				exercised[row.operation]++
			}
		}
	}
	all := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			all++
			if exercised[op.OperationID] == 0 {
				t.Errorf("%s %s (%s) is not in the table", method, path, op.OperationID)
			}
			least := slices.IndexFunc(permissions, func(p struct {
				operation, role, method, path, body string
				code                                int
			}) bool {
				return p.operation == op.OperationID
			})
			if least >= 0 && op.Extensions[api.RoleExtension] != permissions[least].role {
				t.Errorf("%s says that it needs %v", op.OperationID, op.Extensions[api.RoleExtension])
			}
		}
	}
	if all != len(exercised) || all < 18 {
		t.Errorf("%d operations, %d of them exercised", all, len(exercised))
	}
	t.Logf("%d operations, %d rows, %d roles", all, len(permissions), len(ranks))
}

func TestLogin_NoAnswerWithoutCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, path := range []string{"", "/", "/openapi.json", "/openapi.yaml", "/no-such-thing", "/../../etc/passwd", "//whoami"} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "BREW"} {
			a := w.ask(t, "", method, path, "")
			if a.code != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s gave %d without credentials", method, path, a.code)
			}
		}
	}
	if got := w.ask(t, "viewer", "GET", "/openapi.json", ""); got.code != http.StatusOK {
		t.Errorf("a viewer got %d for the document", got.code)
	}
	for _, path := range []string{"/no-such-thing", "/decisions/", "/decisions/%2F/", "/decisions/%2F/no-such-thing"} {
		if p := w.ask(t, "admin", "GET", path, "").problem(t); p.Status != http.StatusNotFound || p.Detail != "there is nothing here" {
			t.Errorf("%s: %+v", path, p)
		}
	}
	if got := w.ask(t, "admin", "GET", "/no-such-thing", ""); got.problem(t).Status != http.StatusNotFound {
		t.Error(got)
	}
	got := w.ask(t, "admin", "DELETE", "/jobs/1", "")
	if got.problem(t).Status != http.StatusMethodNotAllowed || !strings.Contains(got.header.Get("Allow"), "GET") {
		t.Error(got)
	}
}

// withJobs adds a waiting job, a stopped job of few letters, and a stopped job without a limit.
func (w *world) withJobs(t *testing.T) {
	t.Helper()
	for _, j := range []string{`"limit":10`, `"limit":10`, `"limit":0`} {
		if a := w.ask(t, "admin", "POST", "/jobs", `{"act":"retry","filter":{"code":"23514"},"reason":"r",`+j+`}`); a.code != http.StatusCreated {
			t.Fatal(a)
		}
	}
	w.book.jobs = append(w.book.jobs, ledger.Job{ID: 4, Act: ledger.Closed, State: ledger.JobProposed, Operator: "mara", Reason: "r", Limit: 10, CreatedAt: noon})
	if e := w.book.letters[id(3)]; e != nil {
		e.State = ledger.Resolved
	}
	for _, id := range []string{"2", "3"} {
		if a := w.ask(t, "admin", "POST", "/jobs/"+id+"/stop", `{"reason":"r"}`); a.code != http.StatusOK {
			t.Fatal(a)
		}
	}
}

// The check of answers against the document would notice one that is not in it.
func TestDocument_RefusesAnotherAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.ask(t, "viewer", http.MethodGet, "/dead-letters", "")
	found, err := router()
	if err != nil {
		t.Fatal(err)
	}
	route, _, err := found.FindRoute(httptest.NewRequest(http.MethodGet, api.Prefix+"/dead-letters", http.NoBody))
	if err != nil {
		t.Fatal(err)
	}
	if err := fits(route, a); err != nil {
		t.Error(err)
	}
	for name, b := range map[string]answer{
		"no list":          {a.code, a.header, `[]`},
		"a field more":     {a.code, a.header, `{"invented":1,` + a.body[1:]},
		"a field less":     {a.code, a.header, `{}`},
		"of another kind":  {a.code, http.Header{"Content-Type": {"text/html"}}, a.body},
		"not JSON":         {a.code, a.header, a.body + "x"},
		"a problem's form": {http.StatusForbidden, http.Header{"Content-Type": {"application/problem+json"}}, `{"status":"403"}`},
	} {
		if fits(route, b) == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
