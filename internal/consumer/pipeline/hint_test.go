package pipeline

import (
	"testing"
	"testing/synctest"
	"time"
)

// hinted is a refusal with advice beyond its code.
type hinted struct {
	serverError
	hint string
}

func (h *hinted) Hint() string { return h.hint }

func TestHold_ReportedAgainForAnotherRepair(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w, p := newWorld(), newPartition(t, recordsOf(0, good("a")...))
		w.db.away = func() error {
			switch since := time.Since(began); {
			case since < 10*time.Second:
				return &hinted{serverError{code: "28000"}, "give a certificate"}
			case since < 20*time.Second:
				return &hinted{serverError{code: "28000"}, "renew the certificate"}
			}
			return nil
		}
		w.run(t, p)
		equal(t, "hints", w.told.hints, []string{"give a certificate", "renew the certificate"})
		if h := w.told.homes(); h["row"] != 1 || len(w.kafka.took) > 0 {
			t.Errorf("homes %v", h)
		}
	})
}
