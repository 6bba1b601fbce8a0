package api_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/desk/api"
)

func TestParseTokens(t *testing.T) {
	t.Parallel()
	const secret = "secretsecretsecret"
	tokens, err := api.ParseTokens(" ann:viewer:" + secret + "1\n\tbob@example.com:admin:" + secret + "2==\nann:viewer:" + secret + "3 ")
	if err != nil || len(tokens) != 3 || tokens[0].Name != "ann" || tokens[1].Role != api.Admin {
		t.Fatal(tokens, err)
	}
	if shown := fmt.Sprintf("%v %+v %#v", tokens, tokens, tokens); strings.Contains(shown, secret) {
		t.Error("a token is kept as it is")
	}
	if none, err := api.ParseTokens(" \n"); err != nil || len(none) != 0 {
		t.Error(none, err)
	}
	for entry, why := range map[string]string{
		secret + "x":                                  "name:role:token",
		"ann:" + secret + "x":                         "name:role:token",
		":viewer:" + secret + "x":                     "name",
		"a/n:viewer:" + secret + "x":                  "name",
		"-ann:viewer:" + secret + "x":                 "name",
		"ann\x1b[2J:viewer:" + secret + "x":           "name",
		strings.Repeat("n", 65) + ":viewer:" + secret: "name",
		"ann:root:" + secret + "x":                    "role",
		"ann:nobody:" + secret + "x":                  "role",
		"ann:Viewer:" + secret + "x":                  "role",
		"ann:viewer:secretsecretsec":                  "fewer than 16",
		"ann:viewer:" + strings.Repeat("s", 513):      "more than 512",
		"ann:viewer:" + secret + "ü":                  "header",
		"cid:viewer:" + secret + "first":              "entry before",
		"bea:admin:" + secret + "y":                   "another role",
	} {
		tokens, err := api.ParseTokens("bea:viewer:" + secret + "first " + entry)
		if err == nil || len(tokens) != 1 {
			t.Errorf("%q was taken", entry)
			continue
		}
		if !strings.HasPrefix(err.Error(), "entry 2 ") || !strings.Contains(err.Error(), why) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", entry, err)
		}
	}
	if _, err := api.ParseTokens("x y:viewer:short"); err == nil || !strings.Contains(err.Error(), "entry 1") || !strings.Contains(err.Error(), "entry 2") {
		t.Error("not all complaints came at once:", err)
	}
}

func TestParseClients(t *testing.T) {
	t.Parallel()
	clients, err := api.ParseClients([]string{"Ann Smith:operator", " svc.desk-1:viewer "})
	if err != nil || len(clients) != 2 || clients[0] != (api.Client{Name: "Ann Smith", Role: api.Operator}) {
		t.Fatal(clients, err)
	}
	for _, entry := range []string{"ann", ":viewer", "ann:", "ann:boss", "a:b:viewer", "ann\n:viewer", "first:viewer"} {
		if _, err := api.ParseClients([]string{"first:viewer", entry}); err == nil || !strings.HasPrefix(err.Error(), "entry 2 ") || strings.Contains(err.Error(), "ann") {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func FuzzParseTokens(f *testing.F) {
	f.Add(everybody)
	f.Add("a:viewer:0123456789abcdef\x00 b:admin:")
	f.Add(":::: é:admin:0123456789abcdef")
	f.Fuzz(func(t *testing.T, text string) {
		tokens, err := api.ParseTokens(text)
		entries := strings.Fields(text)
		if err == nil && len(tokens) != len(entries) {
			t.Fatalf("%d entries gave %d tokens without a complaint", len(entries), len(tokens))
		}
		for _, k := range tokens {
			if k.Role < api.Viewer || k.Role > api.Admin || k.Name == "" || strings.ContainsFunc(k.Name, func(r rune) bool { return r < ' ' || r > '~' || r == ':' }) {
				t.Fatalf("%q with role %v was taken", k.Name, k.Role)
			}
		}
		if err == nil {
			return
		}
		for _, e := range entries {
			if _, secret, _ := strings.Cut(e, ":"); len(secret) >= 24 && strings.Contains(err.Error(), secret) {
				t.Fatal("a complaint quotes an entry")
			}
		}
	})
}

func TestParseGroups_Complaints(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a:viewer":            "",
		"cn=x:y:z:admin":      "",
		"a:viewer, a:admin":   "entry 2 has the group of an entry before it",
		"a":                   "entry 1 is not group:role",
		":viewer":             "entry 1 is not group:role",
		"a:nobody":            "entry 1 has a role that is none of",
		"a:viewer,b:boss,c:x": "entry 2 has a role that is none of viewer, auditor, operator, admin; entry 3 has",
	} {
		groups, err := api.ParseGroups(strings.Split(text, ","))
		if want == "" && (err != nil || len(groups) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, %v", text, groups, err)
		}
	}
}

func TestGroupRoles_Highest(t *testing.T) {
	t.Parallel()
	groups, err := api.ParseGroups([]string{"a:viewer", "b:admin", "c:operator"})
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[string]api.Role{"": api.Nobody, "x": api.Nobody, "A": api.Nobody, "a": api.Viewer, "c,a": api.Operator, "a,b,c": api.Admin} {
		if got := groups.Role(strings.Split(of, ",")); got != want {
			t.Errorf("%q: %v, want %v", of, got, want)
		}
	}
	if known := groups.Known([]string{"x", "c", "a"}); strings.Join(known, ",") != "a,c" {
		t.Error(known)
	}
}
