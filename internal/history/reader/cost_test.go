package reader_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/history/reader"
)

// TestWhy_ReadsAPayloadOnce: a payload can have a million names, and a person waits for the page.
//
//nolint:paralleltest // it measures what is the whole process's
func TestWhy_ReadsAPayloadOnce(t *testing.T) {
	const names = 20_000
	var b strings.Builder
	for i := range names {
		fmt.Fprintf(&b, `"n%d":%d,`, i, i)
	}
	raw := `{` + b.String() + `"last":1}`
	s := day(t, `"path":"p","requested_by":"a","result":false,"input":`+raw)
	found, err := s.ByID(t.Context(), "d-0")
	if err != nil {
		t.Fatal(err)
	}
	why := testing.AllocsPerRun(3, func() {
		if _, err := reader.Why(t.Context(), s, found[0], reader.Question{}); err != nil {
			t.Error(err)
		}
	})
	// Nodes are made in slabs, and their texts are parts of the payload.
	if most := 0.05 * names; why > most {
		t.Errorf("%.2f allocations for each name, want %.2f at most", why/names, most/names)
	}
}
