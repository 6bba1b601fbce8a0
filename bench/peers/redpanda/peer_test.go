package main

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestStatement_NumbersAllValues(t *testing.T) {
	t.Parallel()
	got := statement("t", []string{"a", "b"}, 2, "ON CONFLICT DO NOTHING")
	if want := "INSERT INTO t (a, b) VALUES ($1,$2),($3,$4) ON CONFLICT DO NOTHING"; got != want {
		t.Errorf("got %s", got)
	}
}

func TestOffsets_MarkedUpToFirstUnwrittenBatch(t *testing.T) {
	t.Parallel()
	in := &input{}
	var batches []*taken
	for offset := range int64(3) {
		in.take([]*kgo.Record{{Offset: offset}})
		batches = append(batches, in.unmarked[len(in.unmarked)-1])
	}
	for _, c := range []struct {
		written int
		marks   []int64
	}{{1, nil}, {0, []int64{0, 1}}, {2, []int64{2}}} {
		var marked []int64
		for _, r := range in.written(batches[c.written]) {
			marked = append(marked, r.Offset)
		}
		if !slices.Equal(marked, c.marks) {
			t.Errorf("with batch %d written %v are marked, want %v", c.written, marked, c.marks)
		}
	}
}
