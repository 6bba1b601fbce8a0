package decision

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"docket/sample"
)

// kinds are the real decision logs by decision and type of result, as names for benchmarks.
func kinds(tb testing.TB) map[string][][]byte {
	tb.Helper()
	found := map[string][][]byte{}
	for _, line := range sample.DecisionLogs() {
		var d struct {
			Path   string
			Result json.RawMessage
		}
		if err := json.Unmarshal(line, &d); err != nil {
			tb.Fatal(err)
		}
		shape := "number"
		switch {
		case len(d.Result) == 0:
			shape = "undefined"
		case d.Result[0] == '{':
			shape = "object"
		case d.Result[0] == '[':
			shape = "array"
		case d.Result[0] == 't' || d.Result[0] == 'f':
			shape = "boolean"
		}
		name := strings.ReplaceAll(d.Path, "/", ".") + "-" + shape
		found[name] = append(found[name], line)
	}
	return found
}

func TestKinds_OfTheSample(t *testing.T) {
	t.Parallel()
	shapes := map[string]bool{}
	for name := range kinds(t) {
		shapes[name[strings.LastIndexByte(name, '-')+1:]] = true
	}
	for _, want := range []string{"undefined", "object", "array", "boolean", "number"} {
		if !shapes[want] {
			t.Errorf("the sample has no result that is %s", want)
		}
	}
}

func BenchmarkDecodeKind(b *testing.B) {
	all := kinds(b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			size := 0
			for _, line := range all[name] {
				size += len(line)
			}
			b.SetBytes(int64(size / len(all[name])))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, refusal := Decode(all[name][i%len(all[name])], 1<<30); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}
