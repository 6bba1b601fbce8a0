package worker

import (
	"context"
	"testing"
	"time"

	"docket/internal/history/state"
)

// yearsOfFlips are flips of one subject, one a second and every third number, of which the newest is of now.
type yearsOfFlips struct {
	*keeping
	n     int64
	now   time.Time
	asked int
}

func (y *yearsOfFlips) Flips(_ context.Context, q state.FlipQuery) (out []state.Flip, _ state.Mark, _ error) {
	y.asked++
	at, step := q.After/3+1, int64(1)
	if q.Backward {
		at, step = y.n, -1
	}
	for ; at > q.After/3 && at <= y.n && len(out) < q.Limit; at += step {
		out = append(out, flipped(3*at, "alice", "p", y.now.Add(time.Duration(at-y.n)*time.Second)))
	}
	return out, state.Mark{StoredBefore: y.now}, nil
}

// A first watch reads the flips that it may tell, and not those of years: the desk has its duty for a minute.
func TestStateAlerts_FirstWatchOverYears(t *testing.T) {
	t.Parallel()
	for n, told := range map[int64]string{
		5_000_000: "3,601 verdicts that are watched changed", 10: "10 verdicts that are watched changed", 1: "1 verdict that is watched changed", 0: "",
	} {
		b, in := newAlertLedger(), &alertInbox{}
		y := &yearsOfFlips{keeping: &keeping{}, n: n, now: time.Now()}
		if err := NewStateAlerts(state.Watch{Subjects: []string{"alice"}}, 0, y, b, in).check(t.Context(), y.now); err != nil {
			t.Fatal(err)
		}
		if y.asked > 100 {
			t.Errorf("%d flips: %d questions", n, y.asked)
		}
		if got := in.take(); told == "" && len(got) > 0 || told != "" && (len(got) != 1 || got[0].Title != told) {
			t.Errorf("%d flips: %+v", n, got)
		}
	}
}
