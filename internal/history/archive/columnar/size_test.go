package columnar

import (
	"bytes"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// TestSize_OfADecision: the goal is 130 bytes for a decision as the bench makes them, and 0.8 of gzip lines.
func TestSize_OfADecision(t *testing.T) {
	t.Parallel()
	const n, goal, part = 20_000, 130, 0.8
	all := lines(t, n, 12)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	for _, line := range all {
		_, _ = zip.Write(append(line, '\n'))
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	d := write(t, Options{Subject: byHost}, all)
	size, before := float64(len(d.data))/n, float64(zipped.Len())/n
	if size > goal || size > part*before {
		t.Errorf("%.1f bytes a decision, %.1f as gzip lines", size, before)
	}
	f := open(t, d)
	for _, g := range f.file.Metadata().RowGroups {
		for _, c := range g.Columns {
			t.Logf("%-20v %6.2f bytes", c.MetaData.PathInSchema, float64(c.MetaData.TotalCompressedSize)/n)
		}
	}
}
