package columnar

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/parquet-go/parquet-go"

	"docket/internal/record/subject"
)

func TestSize_OfADecision(t *testing.T) {
	const n = 30_000
	all := lines(t, n, 12)
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	var content int
	for _, l := range all {
		_, _ = zip.Write(append(l, '\n'))
		content += len(l) + 1
	}
	_ = zip.Close()
	var out bytes.Buffer
	start := time.Now()
	w, err := NewWriter(&out, Options{Columns: table(), Subject: subject.Spec{Kind: subject.RequestedByHost}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if err := w.Write(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	fmt.Printf("line %d, gzip %.1f, parquet %.1f, kept %d, %.0f rows/s\n", content/n, float64(zipped.Len())/n, float64(out.Len())/n, w.Kept(), n/took.Seconds())
	f, err := parquet.OpenFile(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			fmt.Printf("%-20v %8.2f of %8.2f pages %v bloom %.2f idx %d %v\n", c.MetaData.PathInSchema, float64(c.MetaData.TotalCompressedSize)/n, float64(c.MetaData.TotalUncompressedSize)/n, c.MetaData.EncodingStats, float64(c.MetaData.BloomFilterLength)/n, c.ColumnIndexLength+c.OffsetIndexLength, c.MetaData.Encoding)
		}
	}
}
