package decision

import (
	"bytes"
	"testing"

	"docket/sample"
)

func TestDecode_RealDecisions(t *testing.T) {
	t.Parallel()
	logs := sample.DecisionLogs()
	for i, line := range logs {
		checkDecision(t, only(t, string(line)), line)
		if t.Failed() {
			t.Fatalf("at line %d", i)
		}
	}
	for form, value := range map[string][]byte{
		"lines": bytes.Join(logs, []byte("\n")),
		"array": append(append([]byte("["), bytes.Join(logs, []byte(","))...), ']'),
	} {
		record, refusal := Decode(value, 1<<30)
		if refusal != nil || len(record.Parts) != len(logs) || record.Sole {
			t.Fatalf("%s: got %d parts, %v; want %d", form, len(record.Parts), refusal, len(logs))
		}
		for i, part := range record.Parts {
			if part.Index != i || part.Err != nil || !bytes.Equal(part.Value, logs[i]) {
				t.Fatalf("%s: part %d: index %d, %v", form, i, part.Index, part.Err)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	logs := sample.DecisionLogs()
	largest := logs[0]
	for _, line := range logs {
		if len(line) > len(largest) {
			largest = line
		}
	}
	cases := map[string][][]byte{
		"each":    logs,
		"largest": {largest},
		"array":   {append(append([]byte("["), bytes.Join(logs, []byte(","))...), ']')},
		"lines":   {bytes.Join(logs, []byte("\n"))},
		"gzip":    {zip(b, string(bytes.Join(logs[:100], []byte("\n"))))},
	}
	for name, values := range cases {
		b.Run(name, func(b *testing.B) {
			size := 0
			for _, value := range values {
				size += len(value)
			}
			b.SetBytes(int64(size / len(values)))
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, refusal := Decode(values[i%len(values)], 1<<30); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}
