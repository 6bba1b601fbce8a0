package historydb

import (
	"testing"
	"time"
)

func TestStates_RoundsFitTheServer(t *testing.T) {
	t.Parallel()
	s := NewStates(nil, StatesConfig{})
	s.span = time.Hour
	for range 20 {
		s.learn(true)
	}
	if s.room != leastFolded || s.span != leastStateSpan {
		t.Errorf("after many failures a round has %d states of %v", s.room, s.span)
	}
	for range 20 {
		s.learn(false)
	}
	if s.room != mostFolded {
		t.Errorf("a round has %d states for ever", s.room)
	}
	if s.learn(true); s.room != mostFolded/2 {
		t.Errorf("after a failure a round has %d states", s.room)
	}
}
