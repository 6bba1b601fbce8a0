package complete_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
)

// answersOf are the answers of a shard after one look, at a time.
func answersOf(t *testing.T, l *completetest.Log, b completetest.Books, at time.Time) *complete.Answers {
	t.Helper()
	w := completetest.Watch(l, func() time.Time { return at })
	if err := w.Look(t.Context()); (err != nil) != (l.Err != nil) {
		t.Fatal(err)
	}
	return &complete.Answers{Status: func(context.Context) complete.Status { return w.Status() }, Books: b, Within: time.Hour}
}

func TestJoined_WorstOfShards(t *testing.T) {
	t.Parallel()
	all := map[string]int64{completetest.Source: 7}
	value := completetest.Decision(noon, "a/b")
	done := answersOf(t, &completetest.Log{Ends: all, Done: all, Values: []string{value}}, completetest.Books{N: 2}, noon)
	earlier := answersOf(t, &completetest.Log{Ends: all, Done: all, Values: []string{value, value}}, completetest.Books{N: 3}, noon.Add(-time.Second))
	late := answersOf(t, &completetest.Log{Ends: all}, completetest.Books{}, noon)
	away := answersOf(t, &completetest.Log{Err: context.DeadlineExceeded}, completetest.Books{}, noon)
	standby := answersOf(t, &completetest.Log{Ends: all, Done: all}, completetest.Books{Standby: true}, noon)
	for name, c := range map[string]struct {
		of   []*complete.Answers
		want string
	}{
		"both complete":  {[]*complete.Answers{done, earlier}, `{"freshness":"FRESH","complete_until":"2026-11-22T11:59:54Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":3,"dead_lettered":5,"spooled":null}`},
		"in any order":   {[]*complete.Answers{earlier, done}, `{"freshness":"FRESH","complete_until":"2026-11-22T11:59:54Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":3,"dead_lettered":5,"spooled":null}`},
		"one is behind":  {[]*complete.Answers{done, late}, `{"freshness":"CATCHING_UP","complete_until":null,"behind":7,"eta_ms":null,"eta_low_ms":null,"eta_high_ms":null,"parked":1,"dead_lettered":2,"spooled":null}`},
		"one is unknown": {[]*complete.Answers{away, done}, `{"freshness":"PARTIAL","complete_until":null,"behind":null,"eta_ms":null,"eta_low_ms":null,"eta_high_ms":null,"parked":null,"dead_lettered":null,"spooled":null}`},
		"a standby":      {[]*complete.Answers{late, standby}, `{"freshness":"PARTIAL","complete_until":null,"behind":7,"eta_ms":null,"eta_low_ms":null,"eta_high_ms":null,"parked":0,"dead_lettered":0,"spooled":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(complete.Joined(c.of...).Begin(t.Context(), complete.Range{}).End(complete.Facts{Found: true}))
			if err != nil || string(got) != c.want {
				t.Errorf("it says %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// States say how far they have come with their mark. A record can have reached Kafka long before it is stored behind the mark, so they
// do not say until when they are complete.
func TestEndStates_NeverSayUntilWhen(t *testing.T) {
	t.Parallel()
	all := map[string]int64{completetest.Source: 7}
	b := answersOf(t, &completetest.Log{Ends: all, Done: all}, completetest.Books{N: 2}, noon).Begin(t.Context(), complete.Range{})
	for name, c := range map[string]struct {
		facts complete.Facts
		mark  time.Time
		want  reader.Freshness
	}{
		"near":            {complete.Facts{Found: true}, noon.Add(-time.Minute), reader.Fresh},
		"behind":          {complete.Facts{Found: true}, noon.Add(-2 * time.Minute), reader.CatchingUp},
		"none":            {complete.Facts{}, noon, reader.NotFound},
		"none and behind": {complete.Facts{}, noon.Add(-time.Hour), reader.CatchingUp},
		"no room":         {complete.Facts{Partly: true}, noon, reader.Partial},
	} {
		got := b.EndStates(c.facts, c.mark)
		if got.Freshness != c.want || got.CompleteUntil != nil || got.DeadLettered == nil || *got.DeadLettered != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	shard := answersOf(t, &completetest.Log{Ends: all, Done: all}, completetest.Books{N: 2}, noon)
	for mark, want := range map[time.Time]reader.Freshness{noon: reader.Fresh, noon.Add(-time.Hour): reader.CatchingUp} {
		got := complete.Joined(shard, shard).Begin(t.Context(), complete.Range{}).EndStates(complete.Facts{Found: true}, mark)
		if got.Freshness != want || got.CompleteUntil != nil || *got.DeadLettered != 4 {
			t.Errorf("two shards: %+v, want %s", got, want)
		}
	}
	var none *complete.Answers
	if got := none.Begin(t.Context(), complete.Range{}).EndStates(complete.Facts{Found: true}, noon); got.Freshness != reader.Partial {
		t.Errorf("without Kafka: %+v", got)
	}
}
