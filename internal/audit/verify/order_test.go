package verify

import (
	"slices"
	"testing"
	"time"

	"docket/internal/record/home"
)

// TestParkedInOrder_AnotherReading: records that are read again may be parked behind later ones.
func TestParkedInOrder_AnotherReading(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(w *world, late *Forwarded){
		"by another process": func(_ *world, late *Forwarded) { late.By = "docket/b" },
		"a duplicate before": func(w *world, late *Forwarded) {
			row := &w.ev.Rows[w.row(late.Partition, late.Offset)]
			row.Index, row.StoredAt = 1, late.FailedAt.Add(-time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := perfect()
			late, early := w.parked(1, 11), w.parked(1, 12)
			*late, *early = *early, *late // they are in the order of their offsets in parking
			if v := w.decide().Of("I10"); v.State != Broken {
				t.Fatalf("without that it says %v", v)
			}
			again(w, early)
			if v := w.decide().Of("I10"); v.State == Broken {
				t.Errorf("%v", v)
			}
		})
	}
}

// parked returns the parked record of a place.
func (w *world) parked(p int32, o int64) *Forwarded {
	return &w.ev.Forwarded[slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return f.Home == home.Parked && f.Partition == p && f.Offset == o })]
}
