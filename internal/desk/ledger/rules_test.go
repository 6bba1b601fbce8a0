package ledger

import (
	"testing"
	"time"
)

func TestState_Decidable(t *testing.T) {
	t.Parallel()
	for _, s := range States() {
		if got, want := s.Decidable(), Legal(s, Processing, Retried); got != want {
			t.Errorf("%s is decidable: %t, and may be retried: %t", s, got, want)
		}
		if got, want := s.Decidable(), Legal(s, Resolved, Closed); got != want {
			t.Errorf("%s is decidable: %t, and may be closed: %t", s, got, want)
		}
	}
}

func TestGivenUpPauses(t *testing.T) {
	t.Parallel()
	pauses := GivenUpPauses()
	for i, pause := range pauses {
		if want := min(24*time.Hour, time.Second<<i); pause != want {
			t.Errorf("pause %d is %s, want %s", i, pause, want)
		}
	}
	if len(pauses) != 18 || pauses[17] != 24*time.Hour {
		t.Errorf("%d pauses, the last %s", len(pauses), pauses[len(pauses)-1])
	}
}
