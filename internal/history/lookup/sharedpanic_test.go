package lookup

import (
	"context"
	"testing"
	"time"
)

// A panic of a look ends the request that looked. Later ones look again, and one that waited for it is told.
func TestShared_FindAfterPanic(t *testing.T) {
	t.Parallel()
	s := NewShared(&Look{})
	waits := &asker{"waits", make(chan Answer, 1)}
	s.wait = append(s.wait, waits)
	looks := 0
	s.look = func(_ context.Context, ids []string) (all []Answer, read int64) {
		if looks++; looks == 1 {
			panic("a fault")
		}
		for _, id := range ids {
			all = append(all, Answer{ID: id, Whole: true})
		}
		return all, 0
	}
	ended := make(chan any, 1)
	go func() {
		defer func() { ended <- recover() }()
		_, _ = s.Find(t.Context(), "a") // it panics
	}()
	if fault := <-ended; fault == nil {
		t.Error("the panic is gone")
	}
	if got := <-waits.done; got.ID != "waits" || got.Complete() {
		t.Errorf("the one that waited has %+v", got)
	}
	soon, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if got, err := s.Find(soon, "b"); err != nil || got.ID != "b" || !got.Whole {
		t.Errorf("after the panic: %+v, %v", got, err)
	}
}
