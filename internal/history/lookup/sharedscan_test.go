package lookup

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/reader"
)

// TestShared_OneScan: concurrent requests share a scan, each gets its own answer, and none waits for one that left.
func TestShared_OneScan(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var scans [][]string
	running := 0
	gate := make(chan struct{})
	began := make(chan struct{}, 100)
	s := &Shared{turn: make(chan struct{}, 1), look: func(_ context.Context, ids []string) ([]Answer, int64) {
		mu.Lock()
		running++
		if running > 1 {
			t.Error("two scans at once")
		}
		scans = append(scans, slices.Clone(ids))
		mu.Unlock()
		began <- struct{}{}
		<-gate
		mu.Lock()
		running--
		mu.Unlock()
		var all []Answer
		for _, id := range ids {
			all = append(all, Answer{ID: id})
		}
		return all, 0
	}}
	var wait sync.WaitGroup
	ask := func(ctx context.Context, id string, want error) {
		wait.Go(func() {
			if a, err := s.Find(ctx, id); !errors.Is(err, want) || err == nil && a.ID != id {
				t.Errorf("%s: %+v, %v", id, a, err)
			}
		})
	}
	ask(t.Context(), "0", nil)
	<-began // the first scan is running
	gone, leave := context.WithCancel(t.Context())
	ask(gone, "gone", context.Canceled)
	for i := range 50 {
		ask(t.Context(), fmt.Sprint(i%10), nil)
	}
	for n := 0; n < 51; runtime.Gosched() { // until all wait
		s.mu.Lock()
		n = len(s.wait)
		s.mu.Unlock()
	}
	leave()
	close(gate)
	wait.Wait()
	if len(scans) != 2 || len(scans[1]) != 11 {
		t.Errorf("scans: %v", scans)
	}
}

// TestShared_PausesAfterManyRecords: a scan of a pile, or a long one, is followed by a pause as long as itself.
func TestShared_PausesAfterManyRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		read        int64
		scan, pause time.Duration
	}{
		{0, shortScan, 0},
		{fewRecords, shortScan, 0},
		{fewRecords + 1, shortScan, shortScan},
		{0, shortScan + 1, shortScan + 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &Shared{turn: make(chan struct{}, 1), look: func(_ context.Context, ids []string) ([]Answer, int64) {
				time.Sleep(c.scan)
				return []Answer{{ID: ids[0]}}, c.read
			}}
			from := time.Now()
			for range 2 {
				if _, err := s.Find(t.Context(), "d-1"); err != nil {
					t.Fatal(err)
				}
			}
			if took := time.Since(from); took != 2*c.scan+c.pause {
				t.Errorf("two scans of %v and %d records took %v, want a pause of %v", c.scan, c.read, took, c.pause)
			}
		})
	}
}

// Several askers get one answer. Each may show another decision of it, and changes no answer but its own.
func TestShown_KeepsOtherAnswers(t *testing.T) {
	t.Parallel()
	shared := Answer{ID: "x", Archived: []reader.Decision{
		{Row: reader.Row{ID: "x", Time: noon, Archived: &reader.ArchivedIn{Day: "2026-05-01", File: "first"}}},
		{Row: reader.Row{ID: "x", Time: noon.AddDate(0, 0, 1), Archived: &reader.ArchivedIn{Day: "2026-05-02", File: "second"}}},
	}}
	shared.Found = append(make([]Found, 0, 4), Found{Where: Parked})
	one, other := shared, shared
	one.Shown(shared.Archived[0])
	other.Shown(shared.Archived[1])
	if len(one.Found) != 2 || one.Found[1].Day != "2026-05-02" || len(other.Found) != 2 || other.Found[1].Day != "2026-05-01" {
		t.Errorf("the one has %+v, the other %+v", one.Found, other.Found)
	}
}
