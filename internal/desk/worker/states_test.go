package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"docket/internal/history/state"
	"docket/internal/record/verdict"
)

// keeping is a table of states, and what is new in it.
type keeping struct {
	none         error // of Flips
	storedBefore time.Time
	mu           sync.Mutex
	rounds       map[string]int // by desk
	next         state.Round
	err          error
	took         time.Duration
	trims        []time.Duration // idle
	gone         []int64         // of the next trims
	trimErr      error
	flips        []state.Flip
	denials      []state.Denial
	compared     []state.Comparison
	judged       []state.Judgement
	toldOf       []string
}

type keeper struct {
	*keeping
	desk string
}

func (k keeper) Follow(context.Context) (state.Round, error) {
	time.Sleep(k.took)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rounds[k.desk]++
	r := k.next
	k.next = state.Round{Lag: r.Lag, States: r.States, Unbegun: r.Unbegun}
	return r, k.err
}

func (k keeper) Trim(_ context.Context, idle, _ time.Duration) (gone int64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trims = append(k.trims, idle)
	if len(k.gone) > 0 {
		gone, k.gone = k.gone[0], k.gone[1:]
	}
	return gone, k.trimErr
}

func (k *keeping) Flips(_ context.Context, q state.FlipQuery) ([]state.Flip, state.Mark, error) {
	var out []state.Flip
	for _, f := range k.flips {
		if f.ID > q.After {
			out = append(out, f)
		}
	}
	if q.Backward {
		slices.Reverse(out)
	}
	return out[:min(q.Limit, len(out))], state.Mark{StoredBefore: k.storedBefore}, k.none
}

// Before anything is stored there are no states, and nothing to tell of them.
func TestStateAlerts_NothingStoredYet(t *testing.T) {
	t.Parallel()
	k := &keeping{none: state.ErrNone}
	if err := NewStateAlerts(state.Watch{Paths: []string{"*"}}, 0, k, newAlertLedger(), nil).check(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
}

func (k *keeping) Denials(_ context.Context, limit int) ([]state.Denial, error) {
	return k.denials[:min(limit, len(k.denials))], nil
}

func (k *keeping) ToldDenials(_ context.Context, paths []string) error {
	k.denials, k.toldOf = k.denials[len(paths):], append(k.toldOf, paths...)
	return nil
}

func (k *keeping) Revisions(_ context.Context, _ int64, limit int) ([]state.Comparison, error) {
	return k.compared[:min(limit, len(k.compared))], nil
}

func (k *keeping) JudgedRevisions(_ context.Context, all []state.Judgement) error {
	k.compared, k.judged = k.compared[len(all):], append(k.judged, all...)
	return nil
}

func (k *keeping) done(desk string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rounds[desk]
}

func (k *keeping) trimmed() []time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.trims)
}

func runStates(k *keeping, b *alertLedger, desk string, reg prometheus.Registerer) (stop func()) {
	s := NewStates(StatesConfig{Holder: desk, Idle: 90 * 24 * time.Hour, KeepFlips: time.Hour, Metrics: NewStateMetrics(reg)}, keeper{k, desk}, b, nil, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = s.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

func TestStates_OneDeskAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b := &keeping{rounds: map[string]int{}}, newAlertLedger()
		stopA := runStates(k, b, "a", prometheus.NewRegistry())
		pass(time.Second)
		stopB := runStates(k, b, "b", prometheus.NewRegistry())
		pass(5 * time.Minute)
		if a, other := k.done("a"), k.done("b"); a < 290 || other != 0 {
			t.Errorf("%d rounds by the one, %d by the other", a, other)
		}
		stopA() // it gives the duty back
		pass(6 * time.Second)
		if k.done("b") == 0 {
			t.Error("the other does not take over")
		}
		stopB()
	})
}

// The lag grows while rounds fail, and work that took long is followed by a longer pause.
func TestStates_LagAndPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b, reg := &keeping{rounds: map[string]int{}, took: 2 * time.Second}, newAlertLedger(), prometheus.NewRegistry()
		k.next = state.Round{Lag: 12 * time.Second, States: 7, Rows: 9, Flips: 1, Counts: state.Counts{Began: 3, Same: 2, Changed: 1, Flipped: 1, Obsolete: 2}, Skipped: map[string]int64{state.SkipNoPath: 4}}
		stop := runStates(k, b, "a", reg)
		defer stop()
		pass(2 * time.Second)
		metric := func(want string) {
			t.Helper()
			if err := testutil.GatherAndCompare(reg, strings.NewReader(want), strings.Fields(strings.ReplaceAll(want, "\n", " "))[2]); err != nil {
				t.Error(err)
			}
		}
		metric("# HELP docket_state_applied_total Stored decisions that became the newest of their subject and path.\n# TYPE docket_state_applied_total counter\ndocket_state_applied_total 7\n")
		metric("# HELP docket_state_obsolete_total Stored decisions that were older than the state of their subject and path.\n# TYPE docket_state_obsolete_total counter\ndocket_state_obsolete_total 2\n")
		metric("# HELP docket_state_lag_seconds How long ago the newest decisions were stored that the states have for certain; 0 at a desk that does not keep them just now.\n# TYPE docket_state_lag_seconds gauge\ndocket_state_lag_seconds 12\n")
		if n := k.done("a"); n != 1 {
			t.Fatalf("%d rounds", n)
		}
		pass(19 * time.Second)
		if n := k.done("a"); n != 1 {
			t.Errorf("%d rounds within twenty times the work", n)
		}
		k.mu.Lock()
		k.err = errors.New("away")
		k.mu.Unlock()
		pass(41 * time.Second)
		metric("# HELP docket_state_lag_seconds How long ago the newest decisions were stored that the states have for certain; 0 at a desk that does not keep them just now.\n# TYPE docket_state_lag_seconds gauge\ndocket_state_lag_seconds 72\n")
	})
}

// A desk whose first round never ends well is behind, too, or no alert would say so.
func TestStates_LagBeforeTheFirstRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b, reg := &keeping{rounds: map[string]int{}, err: errors.New("away")}, newAlertLedger(), prometheus.NewRegistry()
		stop := runStates(k, b, "a", reg)
		defer stop()
		pass(time.Hour)
		const want = "# HELP docket_state_lag_seconds How long ago the newest decisions were stored that the states have for certain; 0 at a desk that does not keep them just now.\n# TYPE docket_state_lag_seconds gauge\ndocket_state_lag_seconds 3600\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "docket_state_lag_seconds"); err != nil || k.done("a") < 2 {
			t.Errorf("%v after %d rounds", err, k.done("a"))
		}
	})
}

// A transaction that is open from before the first round keeps the states from beginning. No alert would say so if each round
// that waits for it set the lag back.
func TestStates_LagWhileNothingBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b, reg := &keeping{rounds: map[string]int{}, next: state.Round{Unbegun: true}}, newAlertLedger(), prometheus.NewRegistry()
		stop := runStates(k, b, "a", reg)
		defer stop()
		pass(time.Hour)
		lag := func(want string) {
			t.Helper()
			text := "# HELP docket_state_lag_seconds How long ago the newest decisions were stored that the states have for certain; 0 at a desk that does not keep them just now.\n# TYPE docket_state_lag_seconds gauge\ndocket_state_lag_seconds " + want + "\n"
			if err := testutil.GatherAndCompare(reg, strings.NewReader(text), "docket_state_lag_seconds"); err != nil || k.done("a") < 2 {
				t.Errorf("%v after %d rounds", err, k.done("a"))
			}
		}
		lag("3600")
		k.mu.Lock()
		k.next = state.Round{Lag: 12 * time.Second}
		k.mu.Unlock()
		pass(time.Second)
		lag("12")
	})
}

func TestStates_BehindWithoutPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b := &keeping{rounds: map[string]int{}, took: time.Millisecond}, newAlertLedger()
		more := NewStates(StatesConfig{Holder: "a", Metrics: NewStateMetrics(prometheus.NewRegistry())}, alwaysMore{keeper{k, "a"}}, b, nil, zerolog.Nop())
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = more.Run(ctx)
		if n := k.done("a"); n < 900 {
			t.Errorf("%d rounds in a second", n)
		}
	})
}

type alwaysMore struct{ keeper }

func (a alwaysMore) Follow(ctx context.Context) (state.Round, error) {
	r, err := a.keeper.Follow(ctx)
	r.More = true
	return r, err
}

func TestStates_IdleOnesAreRemoved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b := &keeping{rounds: map[string]int{}, gone: []int64{10_000, 5, 0}}, newAlertLedger()
		stop := runStates(k, b, "a", prometheus.NewRegistry())
		pass(time.Minute)
		if trims := k.trimmed(); len(trims) != 3 || trims[0] != 90*24*time.Hour {
			t.Errorf("removed %v", trims)
		}
		pass(61 * time.Minute)
		if n := len(k.trimmed()); n != 4 {
			t.Errorf("removed %d times after an hour", n)
		}
		stop()
	})
}

// A table that cannot be trimmed silences no alert, and alerts that cannot be told keep no old rows.
func TestStates_AlertsAndTrimAreApart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trim, ledger error
		told, trims  int
	}{"no trim": {trim: errAlertLedger, told: 1, trims: 1}, "no alert": {ledger: errAlertLedger, trims: 1}} {
		k, b, in := &keeping{rounds: map[string]int{}, trimErr: c.trim, storedBefore: time.Now()}, newAlertLedger(), &alertInbox{}
		k.denials = []state.Denial{{Path: "p", StoredAt: time.Now()}}
		s := NewStates(StatesConfig{Holder: "a", Metrics: NewStateMetrics(prometheus.NewRegistry())}, keeper{k, "a"}, b, NewStateAlerts(state.Watch{}, 0, k, b, in), zerolog.Nop())
		s.until = time.Now().Add(statesLease) // it has the duty
		b.err = c.ledger
		if _, err := s.round(t.Context()); !errors.Is(err, errAlertLedger) {
			t.Errorf("%s: %v", name, err)
		}
		if told, trims := len(in.take()), len(k.trimmed()); told != c.told || trims != c.trims {
			t.Errorf("%s: %d told, %d trims", name, told, trims)
		}
	}
}

func flipped(id int64, subject, path string, stored time.Time) state.Flip {
	return state.Flip{ID: id, Key: state.Key{Subject: subject, Path: path}, Was: verdict.Allowed, Verdict: verdict.Denied, Version: state.Version{ID: "d" + subject}, StoredAt: stored}
}

func TestStateAlerts_WatchedFlipsOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		k, b, in := &keeping{}, newAlertLedger(), &alertInbox{}
		watch := state.Watch{Subjects: []string{"alice"}, Paths: []string{"admin/*"}}
		now := time.Now()
		k.flips = []state.Flip{flipped(1, "alice", "old", now.Add(-2*time.Hour)), flipped(2, "alice", "a/b", now), flipped(3, "bob", "a/b", now), flipped(4, "carol", "admin/x", now)}
		for range 2 { // a desk that starts again tells nothing again
			a := NewStateAlerts(watch, time.Minute, k, b, in)
			for range 3 {
				if err := a.check(t.Context(), time.Now()); err != nil {
					t.Fatal(err)
				}
				pass(time.Minute)
			}
		}
		got := in.take()
		if len(got) != 1 || got[0].Title != "2 verdicts that are watched changed" || got[0].Key != "states:flips" || len(got[0].Lines) != 3 ||
			got[0].Lines[0] != "subject alice, path a/b: denied, and allowed before, decision dalice" || got[0].Lines[1] != "path admin/x: denied, and allowed before, decision dcarol" {
			t.Errorf("%+v", got)
		}
		k.flips = append(k.flips, flipped(5, "alice", "a/b", time.Now()))
		a := NewStateAlerts(watch, time.Minute, k, b, in)
		if err := a.check(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		in.expect(t, "a further one", "alert states:flips: 1 verdict that is watched changed")
		if err := a.check(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		in.expect(t, "within the interval")
	})
}

func TestStateAlerts_FirstDenials(t *testing.T) {
	t.Parallel()
	k, b, in := &keeping{}, newAlertLedger(), &alertInbox{}
	now := time.Now()
	k.denials = []state.Denial{{Path: "a/b", Version: state.Version{ID: "d1"}, StoredAt: now}, {Path: "old", Version: state.Version{ID: "d2"}, StoredAt: now.Add(-2 * newsAge)}}
	if err := NewStateAlerts(state.Watch{}, 0, k, b, in).check(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	in.expect(t, "one path", "alert states:first-denial: First denial on a path")
	if strings.Join(k.toldOf, " ") != "a/b old" || len(k.denials) > 0 {
		t.Errorf("told of %q", k.toldOf)
	}
}

// Once the states were close to the present, what is stored from then on is told, however late. States that begin again are not.
func TestStateAlerts_LateIsTold(t *testing.T) {
	t.Parallel()
	k, b, in := &keeping{}, newAlertLedger(), &alertInbox{}
	start := time.Now()
	denied := func(path string, stored time.Time) {
		k.denials = append(k.denials, state.Denial{Path: path, StoredAt: stored})
		k.flips = append(k.flips, flipped(int64(len(k.flips)+1), "alice", path, stored))
		before := state.Rate{PathRevision: state.PathRevision{Path: path, Revision: "r1"}, Allowed: 100, Last: stored}
		k.compared = append(k.compared, state.Comparison{Rate: state.Rate{PathRevision: state.PathRevision{Path: path, Revision: "r2"}, Denied: 100, Last: stored}, Before: &before})
	}
	check := func(what string, now, storedBefore time.Time, want ...string) {
		t.Helper()
		k.storedBefore = storedBefore
		if err := NewStateAlerts(state.Watch{Subjects: []string{"alice"}}, 0, k, b, in).check(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		in.expect(t, what, want...)
	}
	all := []string{"alert states:flips: 1 verdict that is watched changed", "alert states:first-denial: First denial on a path", "alert states:deny-rate: A new revision of the policies denies more"}
	denied("old", start.Add(-5*time.Hour))
	check("states begin", start, start.Add(-4*time.Hour))
	check("they are close", start, start.Add(-time.Minute))
	denied("late", start.Add(time.Minute))
	check("the desk was away", start.Add(9*time.Hour), start.Add(2*time.Minute), all...)
	denied("later", start.Add(time.Hour))
	check("it is behind", start.Add(9*time.Hour), start.Add(2*time.Hour), all...)
	denied("again", start.Add(time.Hour))
	check("they begin again", start.Add(9*time.Hour), start.Add(-4*time.Hour))
	denied("of long ago", start.Add(2*time.Hour))
	check("they are behind again", start.Add(9*time.Hour), start.Add(2*time.Hour))
}

// A watch that begins tells what comes from then on, and the last hour, but nothing else that was stored while nobody watched.
func TestStateAlerts_WatchThatBeginsLater(t *testing.T) {
	t.Parallel()
	k, b, in := &keeping{}, newAlertLedger(), &alertInbox{}
	start := time.Now()
	watched := state.Watch{Subjects: []string{"alice"}}
	told := "alert states:flips: 1 verdict that is watched changed"
	at := func(what string, hours int, watch state.Watch, want ...string) {
		t.Helper()
		now := start.Add(time.Duration(hours) * time.Hour)
		k.storedBefore = now.Add(-time.Minute)
		if err := NewStateAlerts(watch, 0, k, b, in).check(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		in.expect(t, what, want...)
	}
	flip := func(hours int) {
		k.flips = append(k.flips, flipped(int64(len(k.flips)+1), "alice", "p", start.Add(time.Duration(hours)*time.Hour)))
	}
	at("nobody watches", 0, state.Watch{})
	flip(1)
	at("nobody watches yet", 2, state.Watch{})
	at("somebody watches", 9, watched)
	flip(10)
	at("the desk was away", 20, watched, told)
	at("nobody watches any more", 21, state.Watch{})
	flip(22)
	at("somebody watches again", 30, watched)
	flip(31)
	at("and the desk was away", 50, watched, told)
}

// A desk that watches before there is anything tells the first flip, however long it was away.
func TestStateAlerts_FirstFlipLate(t *testing.T) {
	t.Parallel()
	k, b, in := &keeping{none: state.ErrNone}, newAlertLedger(), &alertInbox{}
	start := time.Now()
	check := func(now time.Time) {
		t.Helper()
		if err := NewStateAlerts(state.Watch{Subjects: []string{"alice"}}, 0, k, b, in).check(t.Context(), now); err != nil {
			t.Fatal(err)
		}
	}
	check(start)
	k.none, k.storedBefore = nil, start
	check(start)
	k.flips = []state.Flip{flipped(1, "alice", "p", start.Add(time.Minute))}
	k.storedBefore = start.Add(9 * time.Hour)
	check(start.Add(9 * time.Hour))
	in.expect(t, "the first flip", "alert states:flips: 1 verdict that is watched changed")
}

func TestStateAlerts_RevisionThatDeniesMore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	rate := func(revision string, allowed, denied int64, last time.Time) state.Rate {
		return state.Rate{PathRevision: state.PathRevision{Path: "a/b", Revision: revision}, Last: last, Allowed: allowed, Denied: denied}
	}
	before := rate("r1", 90, 10, now)
	for name, test := range map[string]struct {
		of   state.Comparison
		want []string
	}{
		"more":     {state.Comparison{Rate: rate("r2", 70, 31, now), Before: &before}, []string{"alert states:deny-rate: A new revision of the policies denies more"}},
		"little":   {state.Comparison{Rate: rate("r2", 75, 25, now), Before: &before}, nil},
		"the only": {state.Comparison{Rate: rate("r2", 0, 100, now)}, nil},
		"old":      {state.Comparison{Rate: rate("r2", 0, 100, now.Add(-2*newsAge)), Before: &before}, nil},
		"later":    {state.Comparison{Rate: rate("r2", 170, 31, now), Judged: state.Judgement{Allowed: 100}, Before: &before}, []string{"alert states:deny-rate: A new revision of the policies denies more"}},
		"earlier":  {state.Comparison{Rate: rate("r2", 100, 100, now), Judged: state.Judgement{Denied: 100}, Before: &before}, nil},
	} {
		k, in := &keeping{compared: []state.Comparison{test.of}}, &alertInbox{}
		if err := NewStateAlerts(state.Watch{}, 0, k, newAlertLedger(), in).check(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		in.expect(t, name, test.want...)
		if len(k.compared) > 0 {
			t.Errorf("%s: it is compared again", name)
		}
		if want := (state.Judgement{PathRevision: test.of.PathRevision, Allowed: test.of.Allowed, Denied: test.of.Denied, Told: len(test.want) > 0}); len(k.judged) != 1 || k.judged[0] != want {
			t.Errorf("%s: judged %+v, want %+v", name, k.judged, want)
		}
	}
}

// A message names at most ten, and no subject that the setting does not name.
func TestStateAlerts_ManyAtOnce(t *testing.T) {
	t.Parallel()
	k, in := &keeping{}, &alertInbox{}
	now := time.Now()
	for i := range 2500 {
		k.flips = append(k.flips, flipped(int64(i+1), "secret", "admin/x", now))
		k.flips[i].Version.ID = "d"
	}
	b := newAlertLedger()
	if err := NewStateAlerts(state.Watch{Paths: []string{"*"}}, 0, k, b, in).check(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	got := in.take()
	if len(got) != 1 || len(got[0].Lines) != namedNews+2 || got[0].Lines[namedNews] != "and 2,490 more" || b.notes[flipsNote].text != "2500" {
		t.Fatalf("%+v, %+v", got, b.notes)
	}
	if strings.Contains(strings.Join(got[0].Lines, " "), "secret") {
		t.Error("it names a subject")
	}
}
