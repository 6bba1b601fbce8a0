package complete

import (
	"testing"
	"time"
)

// TestStatus_Waits names each partition of the last look, and only while that is recent.
func TestStatus_Waits(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tr := newTrack(0)
	a, b := place{"t", 1}, place{"t", 0}
	tr.look(begun, nil, map[place]seen{a: {end: 10, committed: 4, hasCommit: true}, b: {end: 7, committed: 7, hasCommit: true}})
	tr.look(begun.Add(5*time.Second), map[place]int64{a: 4}, map[place]seen{a: {end: 20, committed: 4, hasCommit: true}})
	now := begun.Add(6 * time.Second)
	s := Status{now: func() time.Time { return now }, at: begun.Add(5 * time.Second), waits: tr.waits()}
	all, at, known := s.Waits()
	if !known || !at.Equal(begun.Add(5*time.Second)) || len(all) != 1 || all[0] != (Waits{"t", 1, 16, begun}) {
		t.Errorf("%v %v %v", all, at, known)
	}
	now = now.Add(time.Minute)
	if _, _, known := s.Waits(); known {
		t.Error("an old look says what waits now")
	}
	if _, _, known := (&Status{now: time.Now}).Waits(); known {
		t.Error("no look says what waits")
	}
}
