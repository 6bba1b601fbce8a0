//go:build integration

package load

import (
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// sameAnswer sends one subject the same answer again and again, while a desk keeps the states. Part of it waits in the
// topic before the desk begins, and the rest comes while the desk follows.
func sameAnswer(y *system) []Bound {
	n, steps := 100_000, 5
	if !*whole {
		n, steps = 4_000, 1
	}
	y.consume()
	// Timestamps rise, so that each decision is the newest of its subject when it is stored.
	first := time.Now().UTC().Add(-time.Hour).Truncate(time.Microsecond)
	y.answers(first, 0, n/2)
	y.until("half of the decisions are stored", func() bool { return y.lane(byDefault) >= int64(n/2) })
	desk := y.start("desk", "DOCKET_STATES=true", "DOCKET_READER_SUBJECT=input:/user")
	desk.awaitReady()
	y.until("the first half has a state", func() bool { return y.number("SELECT coalesce(sum(decisions), 0) FROM decision_states") >= int64(n/2) })
	for step := range steps { // so that the state is updated several times
		had := y.number("SELECT decisions FROM decision_states")
		y.answers(first, n/2+n/2/steps*step, n/2+n/2/steps*(step+1))
		y.until("further decisions are in the state", func() bool { return y.number("SELECT decisions FROM decision_states") > had })
	}
	y.until("all decisions are in the state", func() bool { return y.number("SELECT sum(decisions) FROM decision_states") >= int64(n) })
	last := first.Add(time.Duration(n-1) * time.Millisecond)
	whole := y.number("SELECT count(*) FROM decision_states WHERE since = $1 AND last_seen = $2 AND version_ts = $2 AND decisions = $3 AND late = 0 AND before_ts IS NULL", first, last, n)
	y.until("the server has counted the updates", func() bool {
		return y.number("SELECT coalesce(sum(n_tup_upd), 0)::bigint FROM pg_stat_user_tables WHERE relname = 'decision_states'") >= int64(steps)
	})
	updates := y.number("SELECT n_tup_upd FROM pg_stat_user_tables WHERE relname = 'decision_states'")
	heavy := y.number("SELECT n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'decision_states'")
	y.t.Logf("%d updates of the state for %d decisions", updates, n)
	return []Bound{
		Exactly("states", float64(y.number("SELECT count(*) FROM decision_states")), 1, "states"),
		Exactly("states with all decisions, since the first and seen with the last", float64(whole), 1, "states"),
		Exactly("flips", float64(y.number("SELECT count(*) FROM decision_flips")), 0, "flips"),
		AtMost("updates of the state, a decision", float64(updates)/float64(n), 0.1, ""),
		AtMost("of the updates, those that changed an index", float64(heavy)/float64(updates), 0.1, ""),
		Exactly("decisions without a row", float64(int64(n)-y.lane(byDefault)), 0, "decisions"),
	}
}

// answers sends decisions with the same answer to the same subject, a millisecond apart. One key keeps their order.
func (y *system) answers(first time.Time, from, to int) {
	y.t.Helper()
	var mu sync.Mutex
	var failure error
	for i := from; i < to; i++ {
		value := fmt.Appendf(nil, `{"decision_id":"same-%06d","timestamp":%q,"path":"http/finance/authz/allow","input":{"user":"alice"},"result":{"allow":true,"reasons":["owner"]},"bundles":{"main":{"revision":"r1"}}}`,
			i, first.Add(time.Duration(i)*time.Millisecond).Format(time.RFC3339Nano))
		y.client.Produce(y.t.Context(), &kgo.Record{Topic: y.topic, Key: []byte("alice"), Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				mu.Lock()
				defer mu.Unlock()
				failure = err
			}
		})
	}
	y.must(y.client.Flush(y.t.Context()))
	mu.Lock()
	defer mu.Unlock()
	y.must(failure)
}
