package conservation

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"docket/internal/audit/verify"
)

var testSamples = [][]byte{
	[]byte(`{"labels":{"id":"o1","version":"1.22.0"},"decision_id":"x","path":"http/authz/allow","input":{"timestamp":"no","decision_id":"no"},"result":true,"timestamp":"2026-01-01T00:00:00Z","req_id":1}`),
	[]byte(` {"timestamp":"2026-01-01T00:00:00Z","path":"a","decision_id":"y","result":{"allow":false}} `),
}

func testConfig() Config {
	return Config{
		Records: 2000, Seed: 7, Samples: testSamples, MaxRecordBytes: 64 << 10,
		Start: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func generate(t *testing.T, cfg Config) []Record {
	t.Helper()
	g, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var out []Record
	for r, ok := g.Next(); ok; r, ok = g.Next() {
		out = append(out, r)
	}
	return out
}

func TestGenerator_SameSeedSameRecords(t *testing.T) {
	t.Parallel()
	a, b := generate(t, testConfig()), generate(t, testConfig())
	if !reflect.DeepEqual(a, b) {
		t.Fatal("two runs with one seed differ")
	}
	other := testConfig()
	other.Seed++
	if reflect.DeepEqual(a, generate(t, other)) {
		t.Fatal("two seeds make the same records")
	}
}

func TestGenerator_PlantsEveryKind(t *testing.T) {
	t.Parallel()
	for _, n := range []int{MinRecords, 2000} {
		cfg := testConfig()
		cfg.Records = n
		records := generate(t, cfg)
		if len(records) != n {
			t.Fatalf("%d records made, %d asked for", len(records), n)
		}
		seen := make(map[string]int)
		for _, r := range records {
			seen[r.Planted]++
		}
		for _, k := range kinds() {
			if seen[k.name] == 0 {
				t.Errorf("of %d records none is %q", n, k.name)
			}
		}
		if seen[""] < n*8/10 {
			t.Errorf("of %d records only %d are ordinary", n, seen[""])
		}
	}
}

func TestGenerator_UniqueIdentities(t *testing.T) {
	t.Parallel()
	first := make(map[verify.Identity]string)
	repeats := 0
	for _, r := range generate(t, testConfig()) {
		for _, d := range r.Decisions {
			if d.ID == "" {
				continue
			}
			id := verify.Identity{ID: d.ID, Time: d.Time}
			if _, again := first[id]; again {
				repeats++
				switch r.Planted {
				case "duplicate", "compressed duplicate", "duplicate inside a record", "id conflict", "duplicate of a twin", "two that have one twin":
				default:
					t.Errorf("%q uses the identity of %q", r.Planted, first[id])
				}
			}
			first[id] = r.Planted
		}
	}
	if repeats == 0 {
		t.Error("nothing was repeated")
	}
}

func TestGenerator_GoodDecisionHasItsIdentity(t *testing.T) {
	t.Parallel()
	for _, r := range generate(t, testConfig()) {
		for _, d := range r.Decisions {
			if d.Code != "" {
				continue
			}
			var got struct {
				ID   string    `json:"decision_id"`
				Time time.Time `json:"timestamp"`
			}
			if err := json.Unmarshal(d.Body, &got); err != nil {
				t.Fatalf("%q: %v", r.Planted, err)
			}
			if got.ID != d.ID || !got.Time.Truncate(time.Microsecond).Equal(d.Time) {
				t.Fatalf("%q: body says %v %v, the truth %v %v", r.Planted, got.ID, got.Time, d.ID, d.Time)
			}
		}
	}
}

func TestGenerator_BodiesInOrder(t *testing.T) {
	t.Parallel()
	for _, r := range generate(t, testConfig()) {
		if len(r.Decisions) < 2 {
			continue
		}
		value := r.Value
		if bytes.HasPrefix(value, []byte{0x1f, 0x8b}) {
			zr, err := gzip.NewReader(bytes.NewReader(value))
			if err != nil {
				t.Fatal(err)
			}
			var plain bytes.Buffer
			if _, err := plain.ReadFrom(zr); err != nil {
				t.Fatal(err)
			}
			value = plain.Bytes()
		}
		for i, d := range r.Decisions {
			_, rest, ok := bytes.Cut(value, d.Body)
			if !ok {
				t.Fatalf("%q: decision %d is not in its record, or not in order", r.Planted, i)
			}
			value = rest
		}
	}
}

func TestParseSample_Refusals(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{``, `[]`, `{`, `{"decision_id":"a"}`, `{"decision_id":1,"timestamp":"t"}`, `{"timestamp":"t"}`, `{"input":{"decision_id":"a","timestamp":"t"}}`} {
		cfg := testConfig()
		cfg.Samples = [][]byte{[]byte(raw)}
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was taken", raw)
		}
	}
	for name, spoil := range map[string]func(*Config){
		"no samples":    func(c *Config) { c.Samples = nil },
		"too few":       func(c *Config) { c.Records = MinRecords - 1 },
		"no size limit": func(c *Config) { c.MaxRecordBytes = 0 },
	} {
		cfg := testConfig()
		spoil(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
