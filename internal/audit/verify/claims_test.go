package verify

import (
	"testing"

	"docket/internal/record/home"
)

func TestCompleteUntil_Counted(t *testing.T) {
	t.Parallel()
	parked := func(w *world, failed, stamp float64) {
		f := w.in(home.Parked, 1, 11)
		f.FailedAt, f.Stamp = second(failed), second(stamp)
	}
	for name, spoil := range map[string]func(w *world){
		"it was parked":               func(w *world) { w.claimed(11, 1); parked(w, 0.1, 0.1) },
		"how many parked: not known":  func(w *world) { w.claimed(11, 0); parked(w, 0.1, 0.1); w.hist.Claims[0].Parked = nil },
		"how many spooled: not known": func(w *world) { w.claimed(11, 0); parked(w, 0.1, 1.5); w.hist.Claims[0].Spooled = nil },
		"its spool sent it after the look": func(w *world) {
			w.claimed(11, 0)
			parked(w, 0.1, 0.3)
			f := w.in(home.Parked, 1, 11)
			w.hist.Claims[0].Spooled, w.hist.Claims[0].Ends = nil, map[string]map[int32]int64{f.Found: {f.At.Partition: f.At.Offset}}
		},
		"it was a dead letter before it was put back": func(w *world) {
			w.claimed(3, 1)
			w.hist.Moved = []Forwarded{{Place: Place{source, 1, 3, 0}, Home: home.DeadLetter, FailedAt: second(0.1), Stamp: second(0.1)}}
		},
		"its retry was parked": func(w *world) {
			w.claimed(11, 1)
			w.hist.Claims[0].Parked = new(int64)
			w.hist.Moved = []Forwarded{{Place: Place{source, 1, 11, 0}, Home: home.DeadLetter, FailedAt: second(0.05), Stamp: second(0.05)}}
			parked(w, 0.1, 0.1)
		},
		"it came to Kafka later": func(w *world) { w.claimed(3, 0); w.truth.At(Place{source, 1, 3, 0}).Reached = second(0.5) },
		"it was stored before":   func(w *world) { w.claimed(3, 0); w.ev.Rows[w.row(1, 3)].StoredAt = second(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := perfect()
			spoil(w)
			if v := w.decide().Of("I19"); v.State != Held || v.Checked != 1 {
				t.Errorf("%v", v)
			}
		})
	}
}
