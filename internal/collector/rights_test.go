package collector

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"docket/internal/record/envelope"
)

func TestParseRights(t *testing.T) {
	t.Parallel()
	r, err := ParseRights([]byte(`{"opa-1": {"ids": ["a"], "paths": ["shop/*", "x"]}, "two words": {}, "*": {"paths": ["*"]}}` + "\n"))
	if err != nil || len(r) != 3 || len(r["opa-1"].Paths) != 2 || r["two words"].IDs != nil {
		t.Errorf("%v, %v", r, err)
	}
	for text, want := range map[string]string{
		"": "no JSON object", "[]": "no JSON object", "null": "no JSON object", "{}": "names no client", "{": "no JSON", `{"a":{}`: "no JSON", `{"a":{}} {}`: "behind",
		`{"a":[]}`: `client "a"`, `{"a":null}`: `client "a"`, `{"a":3}`: `client "a"`, `{"a":{"ids":null}}`: `client "a"`, `{"a":{"ids":[null]}}`: "empty text", `{"a":{"id":["x"]}}`: `client "a"`, `{"a":{"ids":"x"}}`: `client "a"`, `{"a":{},"a":{}}`: "twice", `{"":{}}`: "no name",
		`{"a":{"ids":[]}}`: "or empty", `{"a":{"paths":[""]}}`: "empty text", `{"a":{"paths":["a/*/b"]}}`: "elsewhere than at the end", `{"a":{"ids":["**"]}}`: "elsewhere than at the end",
	} {
		if _, err := ParseRights([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestRights_Upload: a decision that a client may not upload is a dead letter that says so. The others are stored.
func TestRights_Upload(t *testing.T) {
	t.Parallel()
	log := func(id, rest string) string {
		return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-01T12:00:00Z","requested_by":"10.0.0.1:4711","input":{"password":"hush"},"result":true%s}`, id, rest)
	}
	own := func(id, rest string) string { return log(id, `,"labels":{"id":"shop-1"}`+rest) }
	for name, c := range map[string]struct {
		rights  string
		upload  []string
		allowed string
	}{
		"labels.id": {`{"opa-1":{"ids":["shop-1","web-*"]}}`, []string{
			own("own", ""), log("begins", `,"labels":{"id":"web-7"}`), log("longer", `,"labels":{"id":"shop-12"}`), log("other", `,"labels":{"id":"web"}`), log("none", ""),
			log("empty", `,"labels":{"id":""}`), log("number", `,"labels":{"id":7}`), log("twice", `,"labels":{"id":"shop-1","id":"bank"}`), log("again", `,"labels":{"id":"bank","id":"shop-1"}`),
		}, "own begins again"},
		"path": {`{"*":{"paths":["shop/*","x/y"]}}`, []string{
			own("below", `,"path":"shop/cart/allow"`), own("exact", `,"path":"x/y"`), own("beside", `,"path":"shop"`), own("longer", `,"path":"x/yz"`), own("none", ""),
			own("slash", `,"path":"/shop/cart"`), own("query", `,"query":"data.shop.cart"`),
		}, "below exact"},
		"both":     {`{"opa-1":{"ids":["shop-1"],"paths":["shop/*"]},"*":{}}`, []string{own("good", `,"path":"shop/a"`), own("path", `,"path":"b/a"`), log("id", `,"path":"shop/a"`)}, "good"},
		"any":      {`{"opa-1":{},"*":{"ids":["x"]}}`, []string{log("a", "")}, "a"},
		"no file":  {"", []string{log("a", "")}, "a"},
		"any path": {`{"opa-1":{"paths":["*"]}}`, []string{own("a", `,"path":""`), own("b", "")}, "a"},
	} {
		auth := Auth{}
		var err error
		if auth.Tokens, err = ParseTokens("opa-1:" + secret); err != nil {
			t.Fatal(err)
		}
		if c.rights != "" {
			if auth.Rights, err = ParseRights([]byte(c.rights)); err != nil {
				t.Fatal(err)
			}
		}
		w := newWorld(t, func(cfg *Config) { cfg.Auth = auth })
		if a := w.post(t, "["+strings.Join(append(slices.Clone(c.upload), unnamed), ",")+"]", "Authorization", "Bearer "+secret); a.Code != 200 {
			t.Fatalf("%s: %d %s", name, a.Code, a.Body)
		}
		denied := 0
		for _, value := range c.upload {
			id := strings.Split(value, `"`)[3]
			allowed := slices.Contains(strings.Fields(c.allowed), id)
			topic := dlq
			if allowed {
				topic = logs
			} else {
				denied++
			}
			found := 0
			for _, r := range w.kafka.in(topic) {
				if string(r.Value) != value {
					continue
				}
				found++
				if why := header(r, envelope.FailureMessage); !allowed && (header(r, envelope.FailureCode) != "not_allowed" || header(r, envelope.FailureKind) != "decode" ||
					header(r, envelope.DecisionID) != id || !strings.Contains(why, "labels.id") && !strings.Contains(why, "path") || strings.Contains(why, "bank")) {
					t.Errorf("%s: %s: %v", name, id, r.Headers)
				}
			}
			if found != 1 {
				t.Errorf("%s: %s is in %s %d times", name, id, topic, found)
			}
		}
		if got := len(w.kafka.kept); got != len(c.upload)+1 {
			t.Errorf("%s: %d records", name, got)
		}
		if got := w.metric(t, "docket_collector_not_allowed_total"); got != float64(denied) {
			t.Errorf("%s: %v counted, want %d", name, got, denied)
		}
		if said := w.log.String(); strings.Count(said, "decisions not allowed") != min(denied, 1) || strings.Contains(said, "hush") || denied > 0 && !strings.Contains(said, `"name":"opa-1"`) {
			t.Errorf("%s: %s", name, said)
		}
	}
}

// TestRights_UnnamedClient: a client without a name in the file may upload nothing, until it has one.
func TestRights_UnnamedClient(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa-1:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(cfg *Config) { cfg.Auth = Auth{Tokens: tokens, Rights: Rights{"opa-2": {}}} })
	a := w.post(t, good("a"), "Authorization", "Bearer "+secret)
	if p := problem(t, a); a.Code != 403 || p.Reason != reasonClient || len(w.kafka.kept) != 0 || !strings.Contains(w.log.String(), `"name":"opa-1"`) {
		t.Errorf("%d %s, %d kept: %s", a.Code, a.Body, len(w.kafka.kept), w.log)
	}
	w.Admit(Auth{Tokens: tokens, Rights: Rights{AnyClient: {}}})
	if a := w.post(t, good("a"), "Authorization", "Bearer "+secret); a.Code != 200 {
		t.Errorf("once everybody may: %d", a.Code)
	}
}
