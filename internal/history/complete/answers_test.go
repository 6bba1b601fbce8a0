package complete_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/testkit/completetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func nowIs() time.Time { return noon }

// said is the answer about all decisions, as JSON, after one look.
func said(t *testing.T, l *completetest.Log, b completetest.Books, f complete.Facts) string {
	t.Helper()
	w := completetest.Watch(l, nowIs)
	if err := w.Look(t.Context()); (err != nil) != (l.Err != nil) {
		t.Fatal(err)
	}
	a := &complete.Answers{Status: func(context.Context) complete.Status { return w.Status() }, Books: b, Within: time.Hour}
	text, err := json.Marshal(a.Begin(t.Context(), complete.Range{}).End(f))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnswers_JSON(t *testing.T) {
	t.Parallel()
	all := map[string]int64{completetest.Source: 7}
	found := complete.Facts{Found: true}
	value := completetest.Decision(noon, "a/b")
	for name, c := range map[string]struct {
		log   *completetest.Log
		books completetest.Books
		facts complete.Facts
		want  string
	}{
		"fresh": {&completetest.Log{Ends: all, Done: all}, completetest.Books{}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":null}`},
		"not found": {&completetest.Log{Ends: all, Done: all}, completetest.Books{}, complete.Facts{},
			`{"freshness":"NOT_FOUND","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":null}`},
		"archived": {&completetest.Log{}, completetest.Books{}, complete.Facts{Found: true, Archived: true},
			`{"freshness":"ARCHIVED","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":0}`},
		"partly": {&completetest.Log{}, completetest.Books{}, complete.Facts{Partly: true},
			`{"freshness":"PARTIAL","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":0}`},
		"a part of the table unread": {&completetest.Log{}, completetest.Books{}, complete.Facts{Partly: true, RowsLack: true},
			`{"freshness":"PARTIAL","complete_until":null,"behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":0}`},
		"behind": {&completetest.Log{Ends: all}, completetest.Books{N: 3}, found,
			`{"freshness":"CATCHING_UP","complete_until":null,"behind":7,"eta_ms":null,"eta_low_ms":null,"eta_high_ms":null,"parked":0,"dead_lettered":3,"spooled":0}`},
		"behind, and nobody reads": {&completetest.Log{Ends: all, Alone: true}, completetest.Books{N: 3}, found,
			`{"freshness":"HOLDING","complete_until":null,"behind":7,"eta_ms":null,"eta_low_ms":null,"eta_high_ms":null,"parked":0,"dead_lettered":3,"spooled":0}`},
		"nobody has to read": {&completetest.Log{Ends: all, Done: all, Alone: true}, completetest.Books{}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":null}`},
		"parked": {&completetest.Log{Values: []string{value, "{", value}, Done: map[string]int64{completetest.Parking: 1}}, completetest.Books{}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":2,"dead_lettered":0,"spooled":null}`},
		"dead letters that no desk has entered": {&completetest.Log{Ends: map[string]int64{completetest.Dead: 2}, Done: map[string]int64{completetest.Dead: 1}}, completetest.Books{N: 3}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":null,"spooled":0}`},
		"the ledger lacks some": {&completetest.Log{}, completetest.Books{N: 3, Unknown: true}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":null,"spooled":0}`},
		"a standby": {&completetest.Log{}, completetest.Books{Standby: true}, found,
			`{"freshness":"PARTIAL","complete_until":null,"behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":0}`},
		"no ledger answers": {&completetest.Log{}, completetest.Books{Err: errors.New("away")}, found,
			`{"freshness":"PARTIAL","complete_until":null,"behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":null,"spooled":0}`},
		"no spool has records": {&completetest.Log{Ends: all, Done: all, Notes: map[string]string{completetest.Source: "docket1 a.7.0"}}, completetest.Books{}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":0}`},
		"a spool may have records": {&completetest.Log{Ends: all, Done: all, Notes: map[string]string{completetest.Source: "docket1 a.7.0 b.6.1"}}, completetest.Books{}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":null}`},
		"the replayer's spool may have records": {&completetest.Log{Ends: all, Done: map[string]int64{completetest.Source: 7, completetest.Parking: 1}, Values: []string{value},
			Notes: map[string]string{completetest.Source: "docket1 a.7.0", completetest.Parking: "docket1 b.6.1"}}, completetest.Books{}, found,
			`{"freshness":"FRESH","complete_until":"2026-11-22T11:59:55Z","behind":0,"eta_ms":0,"eta_low_ms":0,"eta_high_ms":0,"parked":0,"dead_lettered":0,"spooled":null}`},
		"no Kafka answers": {&completetest.Log{Err: errors.New("away")}, completetest.Books{}, found,
			`{"freshness":"PARTIAL","complete_until":null,"behind":null,"eta_ms":null,"eta_low_ms":null,"eta_high_ms":null,"parked":null,"dead_lettered":null,"spooled":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := said(t, c.log, c.books, c.facts); got != c.want {
				t.Errorf("it says %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAnswers_WithoutAny(t *testing.T) {
	t.Parallel()
	var none *complete.Answers
	if c := none.Begin(t.Context(), complete.Range{}).End(complete.Facts{Found: true}); c.Freshness != reader.Partial || c.CompleteUntil != nil || c.Behind != nil || c.Parked != nil {
		t.Errorf("%+v", c)
	}
}

func TestAnswers_ParkedOfTheRange(t *testing.T) {
	t.Parallel()
	l := &completetest.Log{Values: []string{
		completetest.Decision(noon, "a/b"), completetest.Decision(noon.Add(-time.Hour), "a/b"), completetest.Decision(noon, "c"), "not JSON",
	}}
	w := completetest.Watch(l, nowIs)
	if err := w.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := &complete.Answers{Status: func(context.Context) complete.Status { return w.Status() }, Books: completetest.Books{}}
	for name, c := range map[string]struct {
		r    complete.Range
		want int64
	}{
		"all":     {complete.Range{}, 4},
		"since":   {complete.Range{Since: noon}, 3},
		"until":   {complete.Range{Until: noon}, 2},
		"path":    {complete.Range{Paths: []string{"a/b"}}, 3},
		"below":   {complete.Range{Paths: []string{"a/*"}}, 3},
		"service": {complete.Range{Services: []string{"c"}}, 2},
		"both":    {complete.Range{Since: noon, Paths: []string{"a/*", "x"}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := a.Begin(t.Context(), c.r).End(complete.Facts{}).Parked; got == nil || *got != c.want {
				t.Errorf("%v are parked, want %d", got, c.want)
			}
		})
	}
}

// TestWatch_NeverWaits looks at a Kafka that answers nothing. The status is there at once, and grows old.
func TestWatch_NeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &completetest.Log{Ends: map[string]int64{completetest.Source: 4}, Done: map[string]int64{completetest.Source: 4}}
		w := completetest.Watch(l, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		a := &complete.Answers{Status: func(context.Context) complete.Status { return w.Status() }, Books: completetest.Books{}}
		ask := func() reader.Completeness {
			began := time.Now()
			c := a.Begin(ctx, complete.Range{}).End(complete.Facts{Found: true})
			if took := time.Since(began); took != 0 {
				t.Errorf("an answer waits for %v", took)
			}
			return c
		}
		synctest.Wait()
		first := ask()
		if first.Freshness != reader.Fresh || first.CompleteUntil == nil || w.Status().Slow() {
			t.Fatalf("%+v", first)
		}
		free := l.Hang()
		time.Sleep(10 * time.Second)
		if c := ask(); c.Freshness != reader.Fresh || c.Behind == nil {
			t.Errorf("after 10 s without an answer of Kafka: %+v", c)
		}
		if !w.Status().Slow() {
			t.Error("Kafka does not count as slow")
		}
		time.Sleep(25 * time.Second)
		late := ask()
		if late.Freshness != reader.Partial || late.Behind != nil || late.Parked != nil || late.DeadLettered != nil {
			t.Errorf("after 35 s without an answer of Kafka: %+v", late)
		}
		if late.CompleteUntil == nil || late.CompleteUntil.Before(*first.CompleteUntil) {
			t.Errorf("it was complete until %v and is not any more", first.CompleteUntil)
		}
		free()
		time.Sleep(30 * time.Second)
		if c := ask(); c.Freshness != reader.Fresh || !c.CompleteUntil.After(*late.CompleteUntil) {
			t.Errorf("Kafka answers again: %+v", c)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWatch_Refreshes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &completetest.Log{Ends: map[string]int64{completetest.Source: 4}, Done: map[string]int64{completetest.Source: 4}}
		w := completetest.Watch(l, time.Now)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		was := w.Status().Until()
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		if until := w.Status().Until(); until.Sub(was) != 5*time.Second {
			t.Errorf("after 5 s it went on by %v", until.Sub(was))
		}
		stop()
		<-ended
	})
}

func TestSettle_WaitsForTheConsumers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &completetest.Log{Ends: map[string]int64{completetest.Source: 4}, Done: map[string]int64{completetest.Source: 3}}
		w := completetest.Watch(l, time.Now)
		began := time.Now()
		time.AfterFunc(120*time.Millisecond, func() { l.Set(l.Ends, map[string]int64{completetest.Source: 4}) })
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		s := w.Settle(ctx)
		if s.Until().IsZero() || time.Since(began) > 200*time.Millisecond {
			t.Errorf("complete until %v after %v", s.Until(), time.Since(began))
		}
		l.Set(map[string]int64{completetest.Source: 9}, nil)
		began = time.Now()
		if s := completetest.Watch(l, time.Now).Settle(ctx); !s.Until().IsZero() || time.Since(began) > time.Second {
			t.Errorf("it never catches up: complete until %v after %v", s.Until(), time.Since(began))
		}
	})
}

func TestStatus_Read(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		log *completetest.Log
		ok  bool
	}{
		"nothing waits":         {&completetest.Log{}, true},
		"something is parked":   {&completetest.Log{Values: []string{"{"}}, false},
		"something is dead":     {&completetest.Log{Ends: map[string]int64{completetest.Dead: 1}}, false},
		"something is not read": {&completetest.Log{Ends: map[string]int64{completetest.Source: 1}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := completetest.Watch(c.log, nowIs)
			if _, ok := w.Status().Read(); ok {
				t.Error("it knows before it has looked")
			}
			if err := w.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
			until, ok := w.Status().Read()
			if ok != c.ok || ok && !until.Equal(noon.Add(-complete.Margin)) {
				t.Errorf("%v, %v", until, ok)
			}
		})
	}
}
