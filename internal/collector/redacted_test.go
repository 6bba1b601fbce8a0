package collector

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/redact"
	"docket/internal/record/subject"
)

// TestRedact_MaskedReachesNeitherTopic has the secret in decisions that are refused for every reason.
func TestRedact_MaskedReachesNeitherTopic(t *testing.T) {
	t.Parallel()
	rules, err := redact.Parse([]string{"/input/password"}, []string{"/input/user"})
	if err != nil {
		t.Fatal(err)
	}
	const fields = `"timestamp":"2026-03-01T12:00:00Z","input":{"password":"hush","user":"hush","path":"open"}`
	for name, c := range map[string]struct {
		body, code string
		kept, dead int
		shows      string
	}{
		"a good one":           {`[{"decision_id":"a",` + fields + `}]`, "", 1, 0, "open"},
		"no id":                {`[{` + fields + `}]`, "missing_field", 0, 1, "open"},
		"a key twice":          {`[{"decision_id":"a","decision_id":"a",` + fields + `}]`, "duplicate_key", 0, 1, "open"},
		"the input twice":      {`[{"decision_id":"a","input":{"password":"hush"},` + fields + `}]`, "duplicate_key", 0, 1, "open"},
		"the password twice":   {`[{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","input":{"password":"hush","password":"hush","path":"open"}}]`, "", 1, 0, "open"},
		"an escaped key":       {`[{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","input":{"p\u0061ssword":"hush","path":"open"}}]`, "", 1, 0, "open"},
		"a wrong type":         {`[{"decision_id":"a","path":7,` + fields + `}]`, "wrong_type", 0, 1, "open"},
		"out of range":         {`[{"decision_id":"a\u0000",` + fields + `}]`, "out_of_range", 0, 1, "open"},
		"unfaithful":           {`[{"decision_id":"a","x":"\u0000",` + fields + `}]`, "", 1, 0, "open"},
		"no object":            {`["hush"]`, "wrong_type", 0, 1, "docket_withheld"},
		"an array":             {`[[{` + fields + `}]]`, "wrong_type", 0, 1, "docket_withheld"},
		"a line that is torn":  {`{"decision_id":"a",` + fields + "}\n{" + fields, "syntax", 1, 1, "docket_withheld"},
		"a line with a tail":   {`{"decision_id":"a",` + fields + "}\n{" + fields + `} "hush"`, "syntax", 1, 1, "docket_withheld"},
		"a text, by itself":    {`"hush"`, "wrong_type", 0, 1, "docket_withheld"},
		"a secret in a number": {`[7]`, "wrong_type", 0, 1, "docket_withheld"},
	} {
		w := newWorld(t, func(cfg *Config) { cfg.Redact = rules })
		a := w.post(t, c.body)
		dead := w.kafka.in(dlq)
		if a.Code != 200 || len(w.kafka.in(logs)) != c.kept || len(dead) != c.dead {
			t.Errorf("%s: %d, %d kept, %d dead: %s", name, a.Code, len(w.kafka.in(logs)), len(dead), a.Body)
			continue
		}
		shown := false
		for _, r := range w.kafka.kept {
			text := string(r.Key) + string(r.Value)
			for _, h := range r.Headers {
				text += string(h.Value)
			}
			if strings.Contains(text, "hush") {
				t.Errorf("%s: %s has %q", name, r.Topic, r.Value)
			}
			shown = shown || strings.Contains(text, c.shows)
		}
		if !shown || c.dead == 1 && header(dead[0], envelope.FailureCode) != c.code {
			t.Errorf("%s: %q", name, w.kafka.kept[0].Value)
		}
		if strings.Contains(a.Body.String()+w.log.String(), "hush") {
			t.Errorf("%s: the log or the answer tells", name)
		}
		if c.kept == 1 && c.dead == 0 {
			if r := w.kafka.in(logs)[0]; func() bool {
				d, refused := decision.Decode(r.Value, 1<<20)
				return refused != nil || d.Parts[0].Err != nil
			}() {
				t.Errorf("%s: what was redacted does not read: %s", name, r.Value)
			}
		}
	}
}

func TestRedact_MaskedIsNotTheKey(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ drop, mask, key string }{{"/input/user", "", "a"}, {"", "/input/user", redact.Mask}} {
		rules, err := redact.Parse(list(c.drop), list(c.mask))
		if err != nil {
			t.Fatal(err)
		}
		by, err := subject.Parse("input:/user")
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, func(cfg *Config) { cfg.Redact, cfg.Key = rules, by })
		w.post(t, `[{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","input":{"user":"hush"}}]`)
		if got := string(w.kafka.kept[0].Key); got != c.key {
			t.Errorf("keyed by %q, want %q", got, c.key)
		}
	}
}

func list(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func TestRedact_HoldsInEveryFormOfALetter(t *testing.T) {
	t.Parallel()
	rules, err := redact.Parse([]string{"/input/password"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for refusals := range 4 {
		w := newWorld(t, func(cfg *Config) { cfg.Redact = rules })
		n := 0
		w.kafka.answer = func(r *kgo.Record) error {
			if strings.Contains(inflated(r.Value), "hush") {
				t.Errorf("after %d refusals %s is offered the secret", n, r.Topic)
			}
			if n++; n <= refusals {
				return kerr.MessageTooLarge
			}
			return nil
		}
		if a := w.post(t, "["+good("a")+"]"); a.Code != 200 || len(w.kafka.kept) != 1 {
			t.Errorf("%d refusals: %d", refusals, a.Code)
		}
	}
}
