package reader_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"docket/internal/history/reader"
	"docket/internal/record/decision"
	"docket/internal/record/subject"
	"docket/internal/testkit/readertest"
	"docket/sample"
)

// decided makes a stored decision of a path and a result; an empty result is none.
func decided(t *testing.T, path, rest string) reader.Decision {
	t.Helper()
	if rest != "" {
		rest = "," + rest
	}
	return stored(t, fmt.Sprintf(`{"decision_id":"d-1","timestamp":"2026-11-21T10:00:00Z","path":%q,"requested_by":"10.0.0.7:4711"%s}`, path, rest))
}

func stored(t *testing.T, raw string) reader.Decision {
	t.Helper()
	record, refused := decision.Decode([]byte(raw), int64(len(raw)))
	if refused != nil || record.Parts[0].Err != nil {
		t.Fatalf("%s: %v", raw, refused)
	}
	return readertest.Of(record.Parts[0].Log, 0)
}

func texts(x reader.Explanation) string {
	var out []string
	for _, r := range x.Reasons {
		text := r.Text
		for _, more := range [][2]string{{"policy", r.Policy}, {"rule", r.Rule}, {"code", r.Code}, {"level", r.Level}} {
			if more[1] != "" {
				text += " " + more[0] + "=" + more[1]
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func spoke(x reader.Explanation) string {
	var out []string
	for _, s := range x.Spoke {
		out = append(out, strings.TrimSpace(s.Kind+" "+s.Name+" "+s.Outcome))
	}
	return strings.Join(out, "; ")
}

func TestExplain_CommonShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		path, rest     string
		verdict        reader.Verdict
		from           string
		reasons, spoke string
		extractors     []string
		other          bool // columns have another verdict
	}{
		"a boolean":             {path: "http/authz/allow", rest: `"result":false`, verdict: reader.Denied, from: "/result is false"},
		"a boolean that allows": {path: "http/authz/allow", rest: `"result":true`, verdict: reader.Allowed, from: "/result is true"},
		"allow":                 {path: "http/authz", rest: `"result":{"allow":false,"reason":"no role"}`, verdict: reader.Denied, from: "/result/allow is false", reasons: "no role"},
		"said twice": {
			path: "shop/refund", rest: `"result":{"allow":false,"reasons":["too much","own order"],"violations":[{"rule":"limit","message":"too much"},{"rule":"own","message":"own order"},{"rule":"other","message":"too much"}]}`,
			verdict: reader.Denied, from: "/result/allow is false", reasons: "too much rule=limit; own order rule=own; too much rule=other", spoke: "rule limit; rule own; rule other",
		},
		"allowed":                    {path: "http/authz", rest: `"result":{"allowed":true,"message":"as owner"}`, verdict: reader.Allowed, from: "/result/allowed is true", reasons: "as owner"},
		"no result":                  {path: "http/authz", rest: ``, verdict: reader.Undefined, from: "no result"},
		"an error":                   {path: "http/authz", rest: `"error":{"code":"internal_error","message":"x"}`, verdict: reader.Error, from: "/error is set"},
		"a list of reasons":          {path: "a", rest: `"result":{"allow":false,"reasons":["one","two"]}`, verdict: reader.Denied, from: "/result/allow is false", reasons: "one; two"},
		"objects as reasons":         {path: "a", rest: `"result":{"allow":false,"violations":[{"msg":"m","policy":"p","rule":"r","code":"E1","severity":"high"},{"reason":"n","id":"i"}]}`, verdict: reader.Denied, from: "/result/allow is false", reasons: "m policy=p rule=r code=E1 level=high; n rule=i", spoke: "policy p; rule r; rule i"},
		"warnings":                   {path: "a", rest: `"result":{"allow":true,"warnings":["old"]}`, verdict: reader.Allowed, from: "/result/allow is true", reasons: "old level=warning"},
		"a map of names to true":     {path: "a", rest: `"result":{"allow":false,"denials":{"too young":true,"too old":false}}`, verdict: reader.Denied, from: "/result/allow is false", reasons: "too young"},
		"a map of names to lists":    {path: "a", rest: `"result":{"allow":false,"violations":{"age":["too young"],"size":[]}}`, verdict: reader.Denied, from: "/result/allow is false", reasons: "too young policy=age", spoke: "policy age"},
		"a map of names to text":     {path: "a", rest: `"result":{"allow":false,"errors":{"age":"too young"}}`, verdict: reader.Denied, from: "/result/allow is false", reasons: "too young policy=age", spoke: "policy age"},
		"a score with its breakdown": {path: "a", rest: `"result":{"allow":false,"score":{"score":50,"max_score":100,"threshold":70,"breakdown":[{"policy":"p","passed":false,"weight":25},{"policy":"q","passed":true}]}}`, verdict: reader.Denied, from: "/result/allow is false", spoke: "policy p failed; policy q passed"},
		"policies as a map":          {path: "a", rest: `"result":{"allow":false,"policies":{"p":true,"q":false},"rules":["r"]}`, verdict: reader.Denied, from: "/result/allow is false", spoke: "policy p passed; policy q failed; rule r"},
		"a deny list":                {path: "kubernetes/admission/deny", rest: `"result":["no label"]`, verdict: reader.Denied, from: "/result is not empty, and a rule named deny lists violations", reasons: "no label", other: true},
		"an empty deny list":         {path: "kubernetes/admission/deny", rest: `"result":[]`, verdict: reader.Allowed, from: "/result is empty, and a rule named deny lists violations", other: true},
		"conftest, one rule":         {path: "main/deny_latest", rest: `"result":[{"msg":"latest","metadata":{"x":1}}]`, verdict: reader.Denied, from: "/result is not empty, and a rule named deny_latest lists violations", reasons: "latest", other: true},
		"conftest, all":              {path: "main", rest: `"result":{"deny":[],"violation":[{"msg":"v","details":{}}],"warn":["w"]}`, verdict: reader.Denied, from: "/result/violation is not empty", reasons: "v; w level=warning", other: true},
		"conftest, none":             {path: "main", rest: `"result":{"deny":[],"warn":["w"]}`, verdict: reader.Allowed, from: "/result/deny is empty", reasons: "w level=warning", other: true},
		"a list of warnings":         {path: "main/warn", rest: `"result":["w"]`, verdict: reader.Other, reasons: "w level=warning"},
		"a boolean deny":             {path: "main/deny", rest: `"result":true`, verdict: reader.Denied, from: "/result is true, and a rule named deny denies when it is true", other: true},
		"a boolean deny inside":      {path: "main", rest: `"result":{"denied":false}`, verdict: reader.Allowed, from: "/result/denied is false", other: true},
		"Gatekeeper":                 {path: "k8srequiredlabels/violation", rest: `"result":[{"msg":"you must provide labels","details":{"missing_labels":["app"]}}]`, verdict: reader.Denied, from: "/result is not empty, and a rule named violation lists violations", reasons: "you must provide labels", other: true},
		"Kubernetes admission":       {path: "system/main", rest: `"result":{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":false,"uid":"u","status":{"message":"no team label","reason":"Forbidden","code":403}}}`, verdict: reader.Denied, from: "/result/response/allowed is false", reasons: "no team label code=403", other: true},
		"Envoy":                      {path: "envoy/authz/allow", rest: `"result":{"allowed":false,"http_status":403,"headers":{"x-why":"no"},"body":"no role"}`, verdict: reader.Denied, from: "/result/allowed is false", reasons: "no role"},
		"entitlements":               {path: "main/main", rest: `"result":{"allowed":false,"entz":[],"message":"bob may not write"}`, verdict: reader.Denied, from: "/result/allowed is false", reasons: "bob may not write"},
		"an outcome":                 {path: "main", rest: `"result":{"outcome":{"allow":true,"enforce":[]}}`, verdict: reader.Allowed, from: "/result/outcome/allow is true", other: true},
		"a word":                     {path: "main", rest: `"result":{"decision":"DENY","reason":"x"}`, verdict: reader.Denied, from: "/result/decision says deny", reasons: "x", other: true},
		"a decision with its reason": {path: "main", rest: `"result":{"decision":{"allow":false,"reasons":["x"]}}`, verdict: reader.Denied, from: "/result/decision/allow is false", reasons: "x", other: true},
		"nothing that is known":      {path: "flags/token", rest: `"result":{"at":1,"id":"x"}`, verdict: reader.Other},
		"a number":                   {path: "flags/rollout", rest: `"result":7`, verdict: reader.Other},
		"text":                       {path: "flags/color", rest: `"result":"green"`, verdict: reader.Other},

		"extractors": {
			path: "shop/price", rest: `"result":{"ok":"permit","why":{"de":["teuer"]},"by":[{"id":"p9"}],"r":"r1","allow":false}`,
			extractors: []string{"shop/price=allow:/ok", "shop/*=reasons:/why/de", "shop/*=policies:/by", "shop/price=rules:/r"},
			verdict:    reader.Allowed, from: "extractor allow at /result/ok", reasons: "teuer", spoke: "policy p9; rule r1", other: true,
		},
		"the closest extractor": {
			path: "shop/price", rest: `"result":{"a":true,"b":["x"]}`, extractors: []string{"*=allow:/a", "shop/*=deny:/b", "*=allow:/c", "shop/price=allow:/none"},
			verdict: reader.Allowed, from: "extractor allow at /result/a", other: true,
		},
		"deny by extractor": {
			path: "shop/price", rest: `"result":{"b":["x"]}`, extractors: []string{"shop/*=deny:/b"}, verdict: reader.Denied, from: "extractor deny at /result/b", other: true,
		},
		"an extractor of another path": {path: "shopping/price", rest: `"result":{"b":["x"]}`, extractors: []string{"shop/*=deny:/b"}, verdict: reader.Other},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := reader.ParseExtractors(c.extractors)
			if err != nil {
				t.Fatal(err)
			}
			d := decided(t, c.path, c.rest)
			x := reader.Explain(d, reader.Around{}, reader.Question{Extractors: e})
			if x.Verdict != c.verdict || x.VerdictFrom != c.from || texts(x) != c.reasons || spoke(x) != c.spoke {
				t.Errorf("%s: %s\nreasons %s\nspoke %s", x.Verdict, x.VerdictFrom, texts(x), spoke(x))
			}
			known := c.verdict != reader.Other || c.reasons != ""
			if x.Recognised != known || (x.Verdict != d.Verdict) != c.other || x.VerdictStored != d.Verdict {
				t.Errorf("recognised %t, stored as %s", x.Recognised, x.VerdictStored)
			}
			for _, r := range x.Reasons {
				if !strings.HasPrefix(r.Pointer, "/result") {
					t.Errorf("reason at %s", r.Pointer)
				}
			}
			if nothing := slices.ContainsFunc(x.Notes, func(n string) bool { return strings.HasPrefix(n, "no verdict or reason was recognised") }); nothing == known {
				t.Errorf("notes %q", x.Notes)
			}
		})
	}
}

func TestParseExtractors_Refusals(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "a", "a=allow", "a=allow:x", "=allow:/x", "a=verdict:/x", "a=subject:", "a=reasons:/~2", "/=allow:/x"} {
		if e, err := reader.ParseExtractors([]string{"ok=allow:/x", text}); !reader.IsWord(err) || !strings.Contains(err.Error(), "extractor 2") {
			t.Errorf("%q: %v, %v", text, e, err)
		}
	}
	e, err := reader.ParseExtractors([]string{"a=b/c=allow:/x=deny:y", "/p/*=subject:/user"})
	if err != nil || e[0].Path != "a=b/c" || e[0].Pointer != "/x=deny:y" || e[1].Path != "p/*" {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestExplain_EverySample: a shape is recognised exactly if a person would recognise it.
func TestExplain_EverySample(t *testing.T) {
	t.Parallel()
	verdicts := map[reader.Verdict]int{}
	for _, raw := range sample.DecisionLogs() {
		d := stored(t, string(raw))
		x := reader.Explain(d, reader.Around{}, reader.Question{Subject: subject.Spec{Kind: subject.RequestedByHost}})
		verdicts[x.Verdict]++
		odd := strings.HasPrefix(*d.Path, "feature/flags/") || *d.Path == "no/such/policy"
		if !x.Recognised && !odd {
			t.Errorf("nothing recognised in %s", raw)
		}
		if odd && x.Recognised && x.Verdict == reader.Other {
			t.Errorf("something made up of %s", raw)
		}
		var result struct{ Result json.RawMessage }
		if err := json.Unmarshal(raw, &result); err != nil {
			t.Fatal(err)
		}
		lists := *d.Path == "kubernetes/admission/deny" || *d.Path == "cloud_access/device_posture/response"
		if lists && x.Verdict == reader.Denied && len(x.Reasons) == 0 {
			t.Errorf("no reason in %s", raw)
		}
		if *d.Path == "cloud_access/device_posture/response" && (len(x.Spoke) != 4 || x.Score == nil) {
			t.Errorf("%d policies of four in %s", len(x.Spoke), raw)
		}
		if x.Asked.Subject != "127.0.0.1" || x.OPA.Version == "" || x.Evaluation == nil || len(x.Asked.Input) == 0 && *d.Path != "no/such/policy" {
			t.Errorf("asked %+v, OPA %+v, %+v", x.Asked, x.OPA, x.Evaluation)
		}
	}
	if verdicts[reader.Denied] == 0 || verdicts[reader.Allowed] == 0 || verdicts[reader.Undefined] == 0 || verdicts[reader.Other] == 0 {
		t.Errorf("%v", verdicts)
	}
	t.Log(verdicts)
}
