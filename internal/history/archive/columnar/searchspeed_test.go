package columnar

import (
	"testing"

	"docket/internal/record/subject"
)

// BenchmarkSearch_Subject looks for a subject on a path in a group of rows, most of which are of others.
func BenchmarkSearch_Subject(b *testing.B) {
	spec := subject.Spec{Kind: subject.Input, Pointer: "/user"}
	all := lines(b, 250_000, 12)
	at := &disk{data: write(b, Options{Subject: spec}, all).data}
	f := open(b, at)
	who, _ := spec.Of(payloadOf(b, all[100_000]))
	for _, q := range []struct {
		name string
		Question
	}{
		{"alone", Question{Subject: who, By: spec}},
		{"on a path", Question{Subject: who, By: spec, Paths: []string{"http/*"}}},
		{"a path", Question{Paths: []string{"nothing/like/it", "http/z"}}},
	} {
		b.Run(q.name, func(b *testing.B) {
			for b.Loop() {
				n := 0
				if err := f.Search(b.Context(), q.Question, func(Row) (bool, error) { n++; return true, nil }); err != nil || n == 0 && q.Subject != "" {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// payloadOf is the payload of a line.
func payloadOf(t testing.TB, line []byte) []byte {
	t.Helper()
	cells := make([][]byte, len(table()))
	if err := Split(line, len(cells), func(i int) string { return table()[i].Name }, cells); err != nil {
		t.Fatal(err)
	}
	for i, c := range table() {
		if c.Name == "raw" {
			return cells[i]
		}
	}
	return nil
}
