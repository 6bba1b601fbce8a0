package decision_test

import (
	"testing"
	"time"

	"docket/bench"
	"docket/internal/record/decision"
	"docket/sample"
)

// The benchmark of the whole worker imports this package indirectly, so only an external test can import it.
func init() { decision.Benchmarked = benchmarked }

// benchmarked makes decisions like the benchmark of the whole worker, enough to defeat the branch predictor.
func benchmarked() [][]byte {
	made := bench.NewDecisions(1, time.Date(2026, 11, 21, 2, 0, 39, 0, time.UTC))
	values := make([][]byte, 2000)
	for i := range values {
		values[i] = made.Next().Value
	}
	return values
}

// BenchmarkDecision measures the time of one decision by one Decoder, as in the worker, for each set of decisions.
func BenchmarkDecision(b *testing.B) {
	for _, set := range []struct {
		name   string
		values [][]byte
	}{{"benchmark", benchmarked()}, {"sample", sample.DecisionLogs()}, {"typical", [][]byte{[]byte(decision.Typical)}}} {
		size := 0
		for _, value := range set.values {
			size += len(value)
		}
		b.Run("of="+set.name, func(b *testing.B) { decodeAll(b, set.values, size) })
	}
}

func decodeAll(b *testing.B, values [][]byte, size int) {
	var d decision.Decoder
	d.Begin(5000)
	b.SetBytes(int64(size / len(values)))
	b.ReportAllocs()
	for i, n := 0, 0; b.Loop(); i, n = i+1, n+1 {
		if i == len(values) {
			i = 0
		}
		if n == 5000 {
			d.Begin(5000)
			n = 0
		}
		if _, refusal := d.Decode(values[i], 1<<30); refusal != nil {
			b.Fatal(refusal)
		}
	}
}
