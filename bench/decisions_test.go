package bench

import (
	"bytes"
	"encoding/json"
	"regexp"
	"testing"
	"time"

	"docket/internal/record/decision"
	"docket/sample"
)

func TestDecisions_SeedRepeatsAndItemsDiffer(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a, b, other := NewDecisions(7, at), NewDecisions(7, at), NewDecisions(8, at)
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 2000 {
		x, y, z := a.Next(), b.Next(), other.Next()
		if !bytes.Equal(x.Value, y.Value) || !bytes.Equal(x.Key, y.Key) || x.ID != y.ID {
			t.Fatalf("one seed, two decisions:\n%s\n%s", x.Value, y.Value)
		}
		if bytes.Equal(x.Value, z.Value) || seen[x.ID] || !uuid.MatchString(x.ID) {
			t.Fatalf("id %s", x.ID)
		}
		seen[x.ID] = true
	}
}

func TestDecisions_DecodeAndLookReal(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, line := range sample.DecisionLogs() {
		for name := range members(t, line) {
			known[name] = true
		}
	}
	const n = 2000
	d, size, objects := NewDecisions(1, time.Now()), 0, 0
	for range n {
		one := d.Next()
		size += len(one.Value)
		record, refusal := decision.Decode(one.Value, 1<<20)
		if refusal != nil || len(record.Parts) != 1 || record.Parts[0].Err != nil {
			t.Fatalf("refused: %s", one.Value)
		}
		all := members(t, one.Value)
		for name := range all {
			if !known[name] {
				t.Fatalf("no real decision has %s", name)
			}
		}
		if all["result"][0] == '{' {
			objects++
		}
	}
	if mean := size / n; mean < 600 || mean > 720 {
		t.Errorf("%d bytes on average", mean)
	}
	if objects < n/4 || objects > n*5/12 {
		t.Errorf("%d of %d results are objects", objects, n)
	}
}

func TestDecisions_Padded(t *testing.T) {
	t.Parallel()
	got := NewDecisions(1, time.Now()).Padded(900_000).Next()
	if n := len(got.Value); n < 900_000 || n > 901_000 || !json.Valid(got.Value) {
		t.Errorf("%d bytes", n)
	}
}

func TestDecisions_Steady(t *testing.T) {
	t.Parallel()
	const n = 60_000
	d := NewDecisions(1, time.Now()).Steady()
	said, denied, repeated, other := map[string]string{}, 0, 0, 0
	for range n {
		all := members(t, d.Next().Value)
		result := string(all["result"])
		if bytes.Contains(all["result"], []byte("false")) {
			denied++
		}
		var input struct{ User string }
		if err := json.Unmarshal(all["input"], &input); err != nil {
			t.Fatal(err)
		}
		key := input.User + string(all["path"])
		if before, again := said[key]; again {
			if repeated++; before != result {
				other++
			}
		}
		said[key] = result
	}
	if denied < n/5 || denied > n*3/10 {
		t.Errorf("%d of %d are denied", denied, n)
	}
	if other == 0 || other > repeated*3/100 {
		t.Errorf("%d of %d answers differ from the one before", other, repeated)
	}
}

func members(t *testing.T, line []byte) (found map[string]json.RawMessage) {
	t.Helper()
	if err := json.Unmarshal(line, &found); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	return found
}
