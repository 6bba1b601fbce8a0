package errclass_test

import (
	"strings"
	"testing"

	"docket/internal/errclass"
)

func TestDescribe_AllOfAClassification(t *testing.T) {
	t.Parallel()
	want := `53100  disk_full
  class         systemic: the set-up is to blame
  rule          hold
  what happens  Docket holds: it stores and commits nothing until the probe
                row is accepted, then it continues by itself. If the probe row
                is never rejected, Docket bisects the batch and parks records
                that fail alone.
  why           The server's disk is full. Parking would only fill Kafka.
`
	if got := errclass.Describe("53100"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDescribe_CheckViolation(t *testing.T) {
	t.Parallel()
	got := errclass.Describe("23514")
	for _, part := range []string{"With the name of a constraint:", "probe_bisect", "Without one:", "rule          hold\n", "no partition", "With that of a migration under way:", "rule          await\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing from\n%s", part, got)
		}
	}
}

func TestDescribe_AnyCaseAndTerminalWidth(t *testing.T) {
	t.Parallel()
	if errclass.Describe("23p01") != errclass.Describe("23P01") {
		t.Error("lower case is not read")
	}
	if !strings.HasPrefix(errclass.Describe("empty"), "empty  empty_record\n") {
		t.Error("our own code of five letters is taken for a SQLSTATE")
	}
	for _, v := range errclass.Table() {
		for line := range strings.Lines(errclass.Describe(v.Code)) {
			if len(strings.TrimSuffix(line, "\n")) > 78 {
				t.Errorf("%s: line of %d: %q", v.Code, len(line), line)
			}
		}
	}
}

func TestDescribe_UnknownCode(t *testing.T) {
	t.Parallel()
	got := errclass.Describe("\x1b[31m" + strings.Repeat("x", 500))
	if strings.Contains(got, "\x1b") || len(got) > 1000 {
		t.Errorf("raw or endless: %q", got)
	}
	if !strings.Contains(got, "ambiguous_commit") {
		t.Errorf("our own codes are not named:\n%s", got)
	}
}

func TestNames_ArePublished(t *testing.T) {
	t.Parallel()
	for class, want := range map[errclass.Class]string{
		0: "unknown", errclass.Transient: "transient", errclass.Data: "data", errclass.Systemic: "systemic",
		errclass.OK: "ok", errclass.Cancelled: "cancelled", 200: "Class(200)",
	} {
		if class.String() != want {
			t.Errorf("class %d is %q, want %q", class, class, want)
		}
	}
	seen := map[string]bool{}
	for rule := errclass.RetryPark; rule <= errclass.Ignore; rule++ {
		if seen[rule.String()] || rule.String() == "" || rule.Effect() == "" {
			t.Errorf("rule %d: %q, %q", rule, rule, rule.Effect())
		}
		seen[rule.String()] = true
	}
	var zero errclass.Rule
	if zero != errclass.RetryPark || errclass.Rule(200).String() != "Rule(200)" || errclass.Rule(200).Effect() == "" {
		t.Error("the zero rule or one that is none")
	}
}
