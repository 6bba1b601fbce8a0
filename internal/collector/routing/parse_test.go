package routing

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"docket/internal/record/decision"
)

// logOf decodes a decision with these further fields.
func logOf(t testing.TB, fields string) *decision.Log {
	t.Helper()
	if fields != "" {
		fields = "," + fields
	}
	r, refusal := decision.Decode([]byte(`{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z"`+fields+`}`), 1<<20)
	if refusal != nil || r.Parts[0].Err != nil {
		t.Fatalf("%s: %v", fields, refusal)
	}
	return &r.Parts[0].Log
}

func TestRules_Match(t *testing.T) {
	t.Parallel()
	const rules = `verdict=denied, error ; path=admin/*,shop/pay; label:tenant=acme,7;label:a/b=x`
	r, wrong := ParseRules(rules)
	if len(wrong) > 0 {
		t.Fatal(wrong)
	}
	for fields, want := range map[string]bool{
		`"result":false`:                          true,
		`"result":{"allow":false}`:                true,
		`"error":{"code":"x"}`:                    true,
		`"result":true`:                           false,
		`"result":[]`:                             false,
		``:                                        false,
		`"path":"admin/users"`:                    true,
		`"path":"admin/"`:                         true,
		`"path":"admin"`:                          false,
		`"path":"shop/pay"`:                       true,
		`"path":"shop/pay/more"`:                  false,
		`"path":"x/admin/users"`:                  false,
		`"labels":{"tenant":"acme"}`:              true,
		`"labels":{"ten\u0061nt":"\u0061cme"}`:    true,
		`"labels":{"tenant":7}`:                   true,
		`"labels":{"tenant":"acme2"}`:             false,
		`"labels":{"tenant":["acme"]}`:            false,
		`"labels":{"a":{"tenant":"acme"}}`:        false,
		`"labels":{"a/b":"x"}`:                    true,
		`"labels":{"tenant":"acme","tenant":"b"}`: false,
		`"input":{"tenant":"acme","path":"admin/users","result":false,"error":1},"result":true`: false,
	} {
		if got := r.Match(logOf(t, fields)); got != want {
			t.Errorf("%s: %v, want %v", fields, got, want)
		}
	}
	if id, _ := ParseRules("label:id=one"); !id.Match(logOf(t, `"labels":{"id":"one"}`)) || id.Match(logOf(t, `"labels":{"id":""}`)) {
		t.Error("label id")
	}
	if (Rules{}).Match(logOf(t, `"result":false`)) {
		t.Error("no rule is true for a decision")
	}
}

func TestRules_AllComplaintsAtOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                                      nil,
		" ":                                     nil,
		"verdict=denied":                        nil,
		"verdict=denied;":                       {"entry 2 is empty"},
		"verdict":                               {"entry 1 has no value"},
		"verdict=":                              {"entry 1 has an empty value"},
		"verdict=denied,,error":                 {"entry 1 has an empty value"},
		"verdict=deny":                          {`entry 1 has the unknown verdict "deny"`},
		"Verdict=denied":                        {"entry 1 has an unknown condition"},
		"label:=a":                              {"entry 1 has an unknown condition"},
		"label=a":                               {"entry 1 has an unknown condition"},
		"path=a*b":                              {"entry 1 has a *"},
		"path=*/a":                              {"entry 1 has a *"},
		"path=*":                                nil,
		"label:a=b*":                            {"entry 1 has a *"},
		"path=a,a":                              {`entry 1 names "a" twice`},
		"path=a;path=b":                         {"entry 2 is the second"},
		"label:a=b;label:c=b":                   nil,
		"x=1;verdict=no,maybe;path=;;label:a=b": {"entry 1", `entry 2 has the unknown verdict "no"`, `entry 2 has the unknown verdict "maybe"`, "entry 3 has an empty", "entry 4 is empty"},
	} {
		r, wrong := ParseRules(text)
		expect(t, text, wrong, want)
		if r.Any() != (want == nil && strings.TrimSpace(text) != "") {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

// expect compares complaints by their beginnings.
func expect(t *testing.T, text string, got, want []string) {
	t.Helper()
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q: %q, want %q", text, got, want)
	}
}

func TestShares_Parse(t *testing.T) {
	t.Parallel()
	s, wrong := ParseShares(" label:id=2000/s ; client = 10/s;urgent=100/s;label:tenant=10000/s")
	if len(wrong) > 0 || s.Urgent != 100 || fmt.Sprint(s.Senders) != "[{label:id 2000 1 id} {client 10 2 } {label:tenant 10000 4 tenant}]" {
		t.Errorf("%+v %q", s, wrong)
	}
}

func TestShares_AllComplaintsAtOnce(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                              nil,
		"label:id":                      {"entry 1 has no number"},
		"label:id=":                     {"entry 1 has no number"},
		"label:id=5":                    {"entry 1 has no share"},
		"label:id=5/m":                  {"entry 1 has no share"},
		"label:id=0/s":                  {"entry 1 has no share"},
		"label:id=-1/s":                 {"entry 1 has no share"},
		"label:id=+1/s":                 {"entry 1 has no share"},
		"label:id=1.5/s":                {"entry 1 has no share"},
		"label:id=1000000001/s":         {"entry 1 has no share"},
		"label:id=1/s,label:b=1/s":      {"entry 1 has no share"},
		"path=1/s":                      {"entry 1 is for an unknown sender"},
		"label:=1/s":                    {"entry 1 is for an unknown sender"},
		"client=1/s;client=2/s":         {"entry 2 is the second"},
		"a=1/s;;urgent=x/s;label:id=/s": {"entry 1", "entry 2 is empty", "entry 3 has no share", "entry 4 has no number"},
	} {
		s, wrong := ParseShares(text)
		expect(t, text, wrong, want)
		if len(wrong) > 0 && (len(s.Senders) > 0 || s.Urgent != 0) {
			t.Errorf("%q: %+v", text, s)
		}
	}
}

// FuzzParse: no text makes a parser panic, each complaint names an entry, and rules without complaints can be used.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"", ";", "verdict=denied,error;path=admin/*;label:tenant=acme", "label:id=2000/s;client=1/s;urgent=5/s", "=", "=/s", "label:=;label:,=*", "path=\xff*;path=**",
		"verdict=;verdict=", "label:id=99999999999999999999/s", "label:\x00=\x00", "urgent=1/s;urgent=1/s"} {
		f.Add(text)
	}
	log := logOf(f, `"path":"a","labels":{"id":"b"}`)
	f.Fuzz(func(t *testing.T, text string) {
		r, wrongRules := ParseRules(text)
		s, wrongShares := ParseShares(text)
		for _, fault := range slices.Concat(wrongRules, wrongShares) {
			if !strings.HasPrefix(fault, "entry ") || strings.ContainsFunc(fault, unicode.IsControl) {
				t.Errorf("%q: complaint %q", text, fault)
			}
		}
		if len(wrongRules) > 0 == r.Any() && strings.TrimSpace(text) != "" {
			t.Errorf("%q: %+v with %q", text, r, wrongRules)
		}
		r.Match(log)
		for _, share := range s.Senders {
			if share.Rate < 1 || share.Rate > mostRate {
				t.Errorf("%q: %+v", text, share)
			}
		}
	})
}
