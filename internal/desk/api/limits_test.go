package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"docket/internal/desk/api"
	"docket/internal/testkit/readertest"
)

func TestBody_RefusesBadJSONAndTooMuch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *api.Config, _ *api.Ports) { c.MaxBody = 4 << 20 })
	path := "/dead-letters/" + id(0) + "/retry"
	kind := func(k string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Content-Type")
			if k != "" {
				r.Header.Set("Content-Type", k)
			}
		}
	}
	for _, k := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "application/cbor", "problem+json", ";"} {
		if a := w.ask(t, "operator", "POST", path, `{"reason":"r"}`, kind(k)); a.problem(t).Status != http.StatusUnsupportedMediaType {
			t.Errorf("%q: %v", k, a)
		}
	}
	for body, code := range map[string]int{
		"": 400, "{": 400, `{"reason":"r"} {"reason":"r"}`: 400, "[]": 422, `"reason"`: 422, "null": 422, `{"reason":"r","` + marker + `":1}`: 422,
		`{"Reason":"r"}`: 422, `{"reason":"r","reason":"s"}`: 422, `{"reason":null}`: 422, `{"reason":"r","x":{"y":[null]}}`: 422,
		`{"reason":"` + strings.Repeat("x", 1<<20) + `"}`: 413, strings.Repeat("[", 200_000): 422,
	} {
		a := w.ask(t, "operator", "POST", path, body, kind("application/json; charset=utf-8"))
		if a.problem(t).Status != code || strings.Contains(a.body, marker) {
			t.Errorf("%.60q gave %d and not %d: %.300s", body, a.code, code, a.body)
		}
	}
	if p := w.ask(t, "operator", "POST", path, `{"reason":§`).problem(t); len(p.Faults) != 1 || p.Faults[0].Message != "is not the JSON that is expected there" {
		t.Errorf("a parser's words are passed on: %+v", p)
	}
	if w.book.letters[id(0)].State != "PENDING" {
		t.Error("it was moved all the same")
	}
	large := `{"reason":"r","payload":"` + strings.Repeat("x", 3<<20) + `"}`
	if a := w.ask(t, "operator", "PUT", "/dead-letters/"+id(0)+"/payload", large); a.code != http.StatusOK {
		t.Errorf("a large payload gave %d", a.code)
	}
	if a := w.ask(t, "operator", "PUT", "/dead-letters/"+id(1)+"/payload", strings.Replace(large, "x", strings.Repeat("x", 2<<20), 1)); a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("one that is too large gave %d", a.code)
	}
	if a := w.ask(t, "viewer", "GET", "/groups", "x"); a.code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body where none belongs gave %d", a.code)
	}
}

func TestQuery_RefusesUnknownParameters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, query := range []string{"limit=0", "limit=1001", "limit=x", "limit=-1", "states=GONE", "states=pending", "kind=odd", "fingerprint=xyz", "fingerprint=abc",
		"from=yesterday", "partition=-2", "partition=x", "partition=99999999999", "code=", "code=1&code=2", "codes=1", "path=" + strings.Repeat("p", 4097),
		"state=PENDING", marker + "=1", "after=" + strings.Repeat("a", 513)} {
		if p := w.ask(t, "viewer", "GET", "/dead-letters?"+query, "").problem(t); p.Status != http.StatusUnprocessableEntity || len(p.Faults) == 0 || strings.Contains(fmt.Sprint(p), marker) {
			t.Errorf("%.80s: %+v", query, p)
		}
	}
}

// TestSecrets_AppearNowhere causes each event, good and bad, with secrets in every place that can contain one.
func TestSecrets_AppearNowhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withJobs(t)
	bodies := []string{fmt.Sprintf(`{"payload":%q,"reason":7}`, marker), fmt.Sprintf(`{"payload":%q`, marker), fmt.Sprintf(`{%q:1}`, marker), fmt.Sprintf(`[%q]`, marker),
		fmt.Sprintf(`{"payload":[%q],"reason":"r"}`, marker), fmt.Sprintf(`{"base64":%q,"reason":"r"}`, marker), fmt.Sprintf(`{"filter":{"kind":%q},"reason":%q}`, marker, marker),
		fmt.Sprintf(`{"act":%q,"filter":{%q:1},"rate":%q}`, marker, marker, marker), fmt.Sprintf(`{"ids":[%q]}`, marker), marker}
	var told strings.Builder
	for _, row := range permissions {
		if row.operation == "show-payload" || row.operation == "show-proposal" || row.role == "auditor" {
			w.ask(t, "operator", row.method, row.path, "") // request the payload
			continue
		}
		for _, role := range []string{"viewer", "operator", "admin"} {
			told.WriteString(w.ask(t, role, row.method, row.path, row.body).body)
			if row.method != http.MethodGet {
				for _, b := range bodies {
					told.WriteString(w.ask(t, role, row.method, row.path, b).body)
				}
			}
		}
	}
	for _, path := range []string{"/dead-letters/" + marker, "/classify/" + marker + "!", "/jobs/" + marker, "/" + marker, "/groups?kind=" + marker, "/dead-letters/" + id(0) + "/history", "/dead-letters?limit=" + marker,
		"/decisions?after=" + marker, "/decisions?match=input:" + marker, "/decisions/" + marker, "/decisions/follow?tail=" + marker, "/decisions/stats?step=" + marker, "/decisions?since=" + marker, "/decisions?label=" + marker} {
		told.WriteString(w.ask(t, "viewer", "GET", path, "").body)
	}
	for where, text := range map[string]string{"answer": told.String(), "log": w.log.String()} {
		for _, secret := range []string{marker, "planted-token", markOfRetry, readertest.Secret} {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s is in an %s: …%s…", secret, where, text[max(0, i-200):min(len(text), i+60)])
			}
		}
	}
	if len(told.String()) < 10_000 || len(w.log.String()) < 1000 {
		t.Error("too little was told for this to mean anything")
	}
}
