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
		"by the same process": func(w *world, late *Forwarded) {
			again := *w.parked(1, 12)
			again.At.Offset, again.FailedAt, again.Stamp = 1000, late.FailedAt.Add(time.Second), late.FailedAt.Add(time.Second)
			w.ev.Forwarded = append(w.ev.Forwarded, again)
		},
		"and were sent bare before": func(w *world, late *Forwarded) {
			bare := *late
			bare.At.Offset, bare.By, bare.FailedAt, bare.Stamp = 1000, "", time.Time{}, late.FailedAt.Add(-time.Second)
			w.ev.Forwarded = append(w.ev.Forwarded, bare)
		},
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

// A row that was stored from a partition, a lane or offsets that were not read says nothing about the order.
func TestOrder_RowsFromElsewhere(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]Place{
		"a later lane": {source + "-urgent", 0, 0, 0}, "another partition": {source, 1, 19, 0}, "before the part": {source, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := perfect()
			ev, truth := w.part(0)
			truth = truth.from(2) // without 0/0, whose decision 0/5 repeats
			row := &ev.Rows[slices.IndexFunc(ev.Rows, func(r Row) bool { return r.ID == "d-0-0" })]
			row.Place = from
			if v := DecidePart(ev, truth).Of("I10"); v.State != Held || v.Checked == 0 {
				t.Errorf("%v", v)
			}
		})
	}
}

// from is the part of a truth about partition 0 that begins at an offset.
func (t *Truth) from(offset int64) *Truth {
	late := NewTruth()
	late.Spans = map[Partition]Span{in(0): {offset, 20}}
	for _, d := range t.Decisions() {
		if d.Offset >= offset {
			late.Add(*d)
		}
	}
	return late
}

// parked returns the parked record of a place.
func (w *world) parked(p int32, o int64) *Forwarded {
	return &w.ev.Forwarded[slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return f.Home == home.Parked && f.Partition == p && f.Offset == o })]
}
