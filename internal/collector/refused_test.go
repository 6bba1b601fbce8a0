package collector

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/redact"
)

func most(n int) func(*Config) { return func(c *Config) { c.MaxRefused = n } }

// heldBy are the decisions of a dead letter as "place value", nil where it is one decision.
func heldBy(t *testing.T, r *kgo.Record) (all []string) {
	t.Helper()
	dead := envelope.OpenDead(r)
	if dead.Refused == 0 {
		return nil
	}
	var d decision.Decoder
	parts, ok := d.Rest(r.Value, 8<<20)
	if !ok || dead.Refused != len(parts) || dead.Origin.Partition != envelope.NoPlace || len(r.Key) != 0 {
		t.Fatalf("no rest: %q, %d decisions, %+v", r.Value, dead.Refused, dead.Origin)
	}
	for _, p := range parts {
		all = append(all, fmt.Sprintf("%d %s", p.Index, p.Value))
	}
	return all
}

func TestMaxRefused_TheRestIsOneDeadLetter(t *testing.T) {
	t.Parallel()
	masked, err := redact.Parse([]string{"/input/password"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hush := `{"decision_id":"h","input":{"password":"hush"}}`
	for name, c := range map[string]struct {
		change func(*Config)
		body   string
		code   string
		held   []string
	}{
		"array":    {func(*Config) {}, gz("[" + strings.Join([]string{good("a"), "0", unnamed, "1", good("b"), "2", `{"decision_id":"x"}`}, ",") + "]"), "wrong_type", []string{"3 1", "5 2", `6 {"decision_id":"x"}`}},
		"lines":    {func(*Config) {}, strings.Join([]string{good("a"), "0", unnamed, "torn", good("b"), "}", `{"decision_id":"x"}`}, "\n"), "syntax", []string{"3 torn", "5 }", `6 {"decision_id":"x"}`}},
		"bracket":  {func(*Config) {}, strings.Join([]string{"[oops", good("a"), good("b"), "[1]", "[torn", "}"}, "\n"), "syntax", []string{"4 [torn", "5 }"}},
		"redacted": {func(c *Config) { c.Redact = masked }, "[0,1," + hush + ",2]", "missing_field", []string{`2 {"decision_id":"h","input":{},"erased":["/input/password"]}`, `3 {"docket_withheld":"wrong_type","bytes":1}`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, most(2), c.change)
			if a := w.post(t, c.body); a.Code != http.StatusOK {
				t.Fatalf("%d %s", a.Code, a.Body)
			}
			letters := w.kafka.in(dlq)
			if len(letters) != 3 || heldBy(t, letters[0]) != nil || heldBy(t, letters[1]) != nil {
				t.Fatalf("%d letters", len(letters))
			}
			if got := heldBy(t, letters[2]); !slices.Equal(got, c.held) || header(letters[2], envelope.FailureCode) != c.code {
				t.Errorf("%s holds %q, want %q", header(letters[2], envelope.FailureCode), got, c.held)
			}
			if dead := w.metric(t, "docket_collector_decisions_total", "dead_letter"); dead != float64(2+len(c.held)) {
				t.Errorf("counted %v", dead)
			}
		})
	}
}

func TestMaxRefused_OneMoreIsALetterOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, most(2))
	w.post(t, "[0,1,2]")
	w.post(t, "[3,4]")
	for _, r := range w.kafka.in(dlq) {
		if heldBy(t, r) != nil {
			t.Errorf("%q shares a letter", r.Value)
		}
	}
	if n := len(w.kafka.in(dlq)); n != 5 {
		t.Errorf("%d letters", n)
	}
}

// Decisions that a client may not upload share a letter as well. It says who uploaded them.
func TestMaxRefused_NotAllowed(t *testing.T) {
	t.Parallel()
	keys, err := envelope.ParseKeys(strings.Repeat("k", 32))
	if err != nil {
		t.Fatal(err)
	}
	right, err := ParseRights([]byte(`{"edge":{"paths":["none"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := ParseTokens("edge:0123456789abcdef0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, most(1), func(c *Config) { c.Keys, c.Auth.Rights, c.Auth.Tokens = keys, right, tokens })
	a := w.post(t, "["+strings.Join([]string{good("a"), good("b"), good("c")}, ",")+"]", "Authorization", "Bearer 0123456789abcdef0123456789abcdef")
	if a.Code != http.StatusOK {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	last := w.kafka.in(dlq)[1]
	if got := heldBy(t, last); !slices.Equal(got, []string{"1 " + good("b"), "2 " + good("c")}) || header(last, envelope.FailureCode) != "not_allowed" {
		t.Errorf("holds %q", got)
	}
	if by := new(envelope.Opener).Uploader(keys, last); by != "edge" {
		t.Errorf("uploaded by %q", by)
	}
}

// A topic that takes little gets each half by itself, down to single decisions; none is dropped.
func TestMaxRefused_TooLargeIsHalved(t *testing.T) {
	t.Parallel()
	var all []string
	for i := range 64 {
		all = append(all, fmt.Sprintf(`{"decision_id":"%04d%x"}`, i, uint64(i)*0x9E3779B97F4A7C15))
	}
	w := newWorld(t, most(1))
	w.kafka.answer = func(r *kgo.Record) error {
		if len(r.Value) > 300 {
			return kerr.MessageTooLarge
		}
		return nil
	}
	if a := w.post(t, "["+strings.Join(all, ",")+"]"); a.Code != http.StatusOK {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	var got []string
	letters := w.kafka.in(dlq)
	for _, r := range letters {
		if held := heldBy(t, r); held != nil {
			for _, one := range held {
				_, value, _ := strings.Cut(one, " ")
				got = append(got, value)
			}
		} else {
			got = append(got, string(r.Value))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, all) || len(letters) < 3 || len(letters) > 32 {
		t.Errorf("%d decisions in %d letters", len(got), len(letters))
	}
	if dead := w.metric(t, "docket_collector_decisions_total", "dead_letter"); dead != 64 {
		t.Errorf("counted %v", dead)
	}
	none := newWorld(t, most(1))
	none.kafka.answer = func(*kgo.Record) error { return kerr.MessageTooLarge }
	if a := none.post(t, "[0,1,2,3]"); a.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("answered %d where no form is taken", a.Code)
	}
}
