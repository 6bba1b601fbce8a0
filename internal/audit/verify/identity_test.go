package verify

import (
	"testing"
	"time"
)

// The same decision_id at another time is another decision, down to the microsecond.
func TestIdentity_HasTheTime(t *testing.T) {
	t.Parallel()
	for _, apart := range []time.Duration{time.Hour, time.Microsecond} {
		truth, ev := NewTruth(), &Evidence{AllRows: true, Committed: Offsets{in(0): 2}}
		for offset, at := range []time.Time{noon, noon.Add(apart)} {
			place, body := Place{source, 0, int64(offset), 0}, []byte(`{"decision_id":"d"}`)
			truth.Add(Decision{Place: place, ID: "d", Time: at, Value: SumOf(body), Body: body})
			ev.Rows = append(ev.Rows, Row{Place: place, ID: "d", Time: at.Add(999 * time.Nanosecond), Raw: body})
		}
		if err := Decide(ev, truth, nil).Err(); err != nil {
			t.Errorf("%v apart: %v", apart, err)
		}
		ev.Rows = ev.Rows[:1]
		if v := Decide(ev, truth, nil).Of("I1"); v.State != Broken || v.Findings != 1 {
			t.Errorf("%v apart, one of the two has no row: %v", apart, v)
		}
	}
}
