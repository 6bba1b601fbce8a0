package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
	"docket/internal/testkit/output"
)

// dayTable is a table with days, and the archive beside it.
type dayTable struct {
	mu      sync.Mutex
	held    map[archive.Day]archive.Location
	wrong   map[archive.Day]error // of Archive
	away    error                 // of Days
	step    time.Duration         // that each step takes
	written map[archive.Day]bool
	letters []archive.Day
	dropped []string // day and desk, in order
	tries   map[string]int
	working int // archives at the same time
	most    int
	ages    int
	aging   error
}

func newDayTable(days ...string) *dayTable {
	d := &dayTable{held: map[archive.Day]archive.Location{}, wrong: map[archive.Day]error{}, written: map[archive.Day]bool{}, tries: map[string]int{}, step: time.Second}
	for _, day := range days {
		d.held[aDay(day)] = archive.Attached
	}
	return d
}

func aDay(text string) archive.Day {
	day, err := archive.ParseDay(text)
	if err != nil {
		panic(err)
	}
	return day
}

func (d *dayTable) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *dayTable) gone() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.dropped)
}

// seen is the table as it was at a moment, for tests to look at.
func (d *dayTable) seen() (s struct {
	tries      map[string]int
	held       map[archive.Day]archive.Location
	written    map[archive.Day]bool
	most, ages int
}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s.tries, s.held, s.written, s.most, s.ages = maps.Clone(d.tries), maps.Clone(d.held), maps.Clone(d.written), d.most, d.ages
	return s
}

// byDesk is the table as one desk has it.
type byDesk struct {
	*dayTable
	desk string
}

func (b byDesk) Days(_ context.Context, before archive.Day) (all []archive.Held, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for day, where := range b.held {
		if day.Before(before.Time) {
			all = append(all, archive.Held{Day: day, Location: where})
		}
	}
	slices.SortFunc(all, func(x, y archive.Held) int { return x.Day.Compare(y.Day.Time) })
	return all, b.away
}

// Archive goes through the steps of a real one: a day that is out of the table is finished without a question.
func (b byDesk) Archive(ctx context.Context, day archive.Day, goOn func(archive.Step) error) (done archive.Archived, err error) {
	b.set(func() {
		b.tries[day.String()]++
		b.working++
		b.most = max(b.most, b.working)
	})
	defer b.set(func() { b.working-- })
	reach := func(s archive.Step) error {
		if idle(ctx, b.step) {
			return ctx.Err()
		}
		b.mu.Lock()
		where, wrong := b.held[day], b.wrong[day]
		b.mu.Unlock()
		if wrong != nil {
			return wrong
		}
		if where == archive.Leaving {
			return nil
		}
		return goOn(s)
	}
	for _, s := range []archive.Step{archive.StepOpened, archive.StepWritten, archive.StepVerified} {
		if s == archive.StepWritten {
			b.mu.Lock()
			reused := b.written[day]
			b.mu.Unlock()
			if reused {
				continue
			}
		}
		if err := reach(s); err != nil {
			b.set(func() { b.written[day] = b.written[day] || s == archive.StepWritten })
			return done, err
		}
		b.set(func() { b.written[day] = b.written[day] || s == archive.StepWritten })
	}
	b.set(func() { b.held[day] = archive.Leaving })
	if idle(ctx, b.step) {
		return done, ctx.Err()
	}
	b.set(func() {
		delete(b.held, day)
		b.dropped = append(b.dropped, day.String()+" "+b.desk)
	})
	return archive.Archived{Day: day, Archive: "decision_logs-" + day.String(), Rows: 10, Bytes: 100, Dropped: true}, nil
}

func (b byDesk) LetterDays(context.Context, archive.Day) ([]archive.Day, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.letters), nil
}

func (b byDesk) ArchiveLetters(_ context.Context, day archive.Day) (archive.LettersArchived, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters = slices.DeleteFunc(b.letters, func(one archive.Day) bool { return one == day })
	return archive.LettersArchived{Day: day, Archives: []string{"dead_letters-" + day.String()}, Letters: 3}, nil
}

func (b byDesk) Age(_ context.Context, goOn func() error) (int, error) {
	if err := goOn(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ages++
	return 2, b.aging
}

// archivingDesk is a desk that archives days.
type archivingDesk struct {
	t    *testing.T
	reg  *prometheus.Registry
	stop func()
}

func runArchiving(t *testing.T, d *dayTable, b *alertLedger, desk, hours string, lag func(context.Context) (int64, error)) *archivingDesk {
	t.Helper()
	open, err := nightly.ParseHours(hours)
	if err != nil {
		t.Fatal(err)
	}
	reg := prometheus.NewRegistry()
	a := NewArchiving(ArchivingConfig{Holder: desk, After: 30, Hours: open, Lag: lag, Metrics: NewArchivingMetrics(reg)}, byDesk{d, desk}, b, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = a.Run(ctx); close(done) }()
	return &archivingDesk{t, reg, func() { cancel(); <-done }}
}

// metric is the value of a metric without labels, or with the result.
func (a *archivingDesk) metric(name, result string) float64 {
	a.t.Helper()
	all, err := a.reg.Gather()
	if err != nil {
		a.t.Fatal(err)
	}
	for _, f := range all {
		for _, m := range f.GetMetric() {
			if f.GetName() == name && (result == "" || m.GetLabel()[0].GetValue() == result) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	a.t.Errorf("no metric %s %s", name, result)
	return -1
}

func noteOf(t *testing.T, b *alertLedger) *nightly.Note {
	t.Helper()
	text, at, err := b.Remembered(t.Context(), nightly.NoteName)
	if err != nil {
		t.Fatal(err)
	}
	n, err := nightly.ParseNote(text, at)
	if err != nil || n == nil {
		t.Fatalf("%q: %v", text, err)
	}
	return n
}

// The clock of these tests begins at 2000-01-01 00:00 UTC. Days before 1999-12-02 are 30 days old.
const (
	oldDay   = "1999-11-01"
	olderDay = "1999-10-01"
	lastDay  = "1999-12-01"
	youngDay = "1999-12-02"
)

func TestArchiving_OldDaysGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay, olderDay, lastDay, youngDay, "1999-09-01"), newAlertLedger()
		d.held[aDay("1999-09-01")] = archive.Shared
		d.letters = []archive.Day{aDay("1999-12-30")}
		a := runArchiving(t, d, b, "a", "", nil)
		defer a.stop()
		pass(time.Minute)
		if got, want := d.gone(), []string{olderDay + " a", oldDay + " a", lastDay + " a"}; !slices.Equal(got, want) {
			t.Fatalf("dropped %q, want %q", got, want)
		}
		n := noteOf(t, b)
		if n.State != nightly.Idle || n.Due != 0 || len(n.Days) != 4 || n.Days[0].Table != archive.LettersName || len(n.Open()) != 0 || n.After != 30 || n.Aged != 2 {
			t.Errorf("note %+v", n)
		}
		for name, want := range map[string]float64{"docket_archive_days_total archived": 4, "docket_archive_days_total failed": 0, "docket_archive_rows_total ": 33, "docket_archive_failed ": 0, "docket_archive_due_days ": 0, "docket_archive_behind_seconds ": 0} {
			metric, result, _ := strings.Cut(name, " ")
			if got := a.metric(metric, result); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
		pass(24 * time.Hour)
		if got := d.gone(); len(got) != 4 || got[3] != youngDay+" a" {
			t.Errorf("a day later dropped %q", got)
		}
		if d.seen().ages != 2 {
			t.Errorf("%d looks at storage classes in a day", d.seen().ages)
		}
	})
}

// It stops at the step that it has reached, and continues from there in the next night.
func TestArchiving_QuietHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay, olderDay, lastDay), newAlertLedger()
		d.step = 30 * time.Minute
		a := runArchiving(t, d, b, "a", "01:00-04:00", nil)
		defer a.stop()
		pass(59 * time.Minute)
		if n := noteOf(t, b); n.State != nightly.Waiting || !strings.Contains(n.Why, "quiet hours") || !strings.Contains(n.Hint, "2000-01-01 01:00Z") || n.Due != 3 || n.Oldest != olderDay {
			t.Errorf("before the hours: %+v", n)
		}
		if len(d.seen().tries) != 0 {
			t.Errorf("archived before the hours: %v", d.seen().tries)
		}
		pass(4 * time.Hour) // a day takes two hours: one is whole by 03:00, and another is written at 04:00
		if got := d.gone(); !slices.Equal(got, []string{olderDay + " a"}) || d.seen().tries[lastDay] != 0 {
			t.Fatalf("in the first night dropped %q, tries %v", got, d.seen().tries)
		}
		n := noteOf(t, b)
		if n.State != nightly.Waiting || n.Due != 2 || !strings.Contains(n.Hint, "2000-01-02 01:00Z") {
			t.Errorf("after the first night: %+v", n)
		}
		if d.seen().held[aDay(oldDay)] != archive.Attached || !d.seen().written[aDay(oldDay)] {
			t.Errorf("the second day is %v, written %v", d.seen().held[aDay(oldDay)], d.seen().written[aDay(oldDay)])
		}
		if behind := a.metric("docket_archive_behind_seconds", ""); behind < (29*24*time.Hour).Seconds() || behind > (31*24*time.Hour).Seconds() {
			t.Errorf("behind %v", time.Duration(behind)*time.Second)
		}
		for night, want := range [][]string{{olderDay + " a", oldDay + " a"}, {olderDay + " a", oldDay + " a", lastDay + " a"}} {
			pass(24 * time.Hour)
			if got := d.gone(); !slices.Equal(got, want) {
				t.Errorf("after night %d dropped %q", night+2, got)
			}
		}
	})
}

// A day that is out of the table does not stay between table and archive, so it is finished at any hour.
func TestArchiving_FinishesADayThatIsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay, olderDay), newAlertLedger()
		d.held[aDay(oldDay)] = archive.Leaving
		a := runArchiving(t, d, b, "a", "03:00-04:00", nil)
		defer a.stop()
		pass(time.Hour)
		if got := d.gone(); !slices.Equal(got, []string{oldDay + " a"}) || d.seen().tries[olderDay] != 0 {
			t.Errorf("dropped %q, tries %v", got, d.seen().tries)
		}
	})
}

func TestArchiving_OneDeskAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var days []string
		for i := range 20 {
			days = append(days, fmt.Sprintf("1999-11-%02d", i+1))
		}
		d, b := newDayTable(days...), newAlertLedger()
		d.step = 40 * time.Second // a day takes longer than a lease
		one := runArchiving(t, d, b, "a", "", nil)
		pass(time.Second)
		other := runArchiving(t, d, b, "b", "", nil)
		defer other.stop()
		pass(10 * time.Minute)
		one.stop() // in the middle of a day
		if due := other.metric("docket_archive_due_days", ""); due != 0 {
			t.Errorf("the desk without the duty shows %v days", due)
		}
		pass(2 * time.Hour)
		if d.seen().most != 1 {
			t.Errorf("%d archives at the same time", d.seen().most)
		}
		by := map[string]int{}
		for _, line := range d.gone() {
			_, desk, _ := strings.Cut(line, " ")
			by[desk]++
		}
		if len(d.seen().held) != 0 || by["a"] < 3 || by["b"] < 10 {
			t.Errorf("left %v, by desk %v", d.seen().held, by)
		}
	})
}

// A desk whose lease ended stops at the next step, as another may work by then.
func TestArchiving_StopsWithoutTheDuty(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay, olderDay), newAlertLedger()
		d.step = time.Minute
		a := runArchiving(t, d, b, "a", "", nil)
		defer a.stop()
		pass(time.Second)
		b.set(func() { b.duties[archiveDuty] = alertDuty{holder: "b", until: time.Now().Add(time.Hour)} })
		pass(30 * time.Minute)
		if got := d.gone(); len(got) != 0 {
			t.Errorf("dropped %q", got)
		}
	})
}

// A failed day does not stop the others. It is tried again after pauses that grow.
func TestArchiving_FailuresAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay, olderDay, lastDay), newAlertLedger()
		d.wrong[aDay(olderDay)] = &archive.CannotError{Why: "the day is odd", Do: "look at it"}
		d.wrong[aDay(oldDay)] = fmt.Errorf("take out: %w", &archive.UncountedError{Why: "not counted", Do: "wait"})
		a := runArchiving(t, d, b, "a", "", nil)
		defer a.stop()
		pass(time.Minute)
		if got := d.gone(); !slices.Equal(got, []string{lastDay + " a"}) {
			t.Fatalf("dropped %q", got)
		}
		n := noteOf(t, b)
		if open := n.Open(); n.State != nightly.Failed || len(open) != 2 || open[0].Why != "take out: not counted" || open[0].Hint != "wait" || !open[0].Waits || open[1].Hint != "look at it" || open[1].Waits {
			t.Errorf("note %+v", n)
		}
		if failed, waits := a.metric("docket_archive_failed", ""), a.metric("docket_archive_days_total", "waits"); failed != 1 || waits != 1 {
			t.Errorf("%v failed, %v wait", failed, waits)
		}
		pass(5 * time.Hour)
		if tries := d.seen().tries[olderDay]; tries < 4 || tries > 8 {
			t.Errorf("%d tries in five hours", tries)
		}
		d.set(func() { delete(d.wrong, aDay(olderDay)) })
		pass(3 * time.Hour)
		if n := noteOf(t, b); n.State != nightly.Waiting || len(n.Open()) != 1 || a.metric("docket_archive_failed", "") != 0 {
			t.Errorf("after it was put right: %+v", n)
		}
		d.set(func() { delete(d.held, aDay(oldDay)) }) // a person archived it
		pass(time.Hour)
		if n := noteOf(t, b); n.State != nightly.Idle || len(n.Open()) != 0 {
			t.Errorf("after a person archived the day: %+v", n)
		}
	})
}

func TestArchiving_DatabaseAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay), newAlertLedger()
		d.away = errors.New("away")
		a := runArchiving(t, d, b, "a", "", nil)
		defer a.stop()
		pass(time.Minute)
		if n := noteOf(t, b); n.State != nightly.Failed || a.metric("docket_archive_failed", "") != 1 {
			t.Errorf("%+v", n)
		}
		d.set(func() { d.away = nil })
		pass(time.Hour)
		if got := d.gone(); len(got) != 1 || a.metric("docket_archive_failed", "") != 0 {
			t.Errorf("dropped %q", got)
		}
	})
}

// While the lag of the consumers grows, nothing more is read or dropped.
func TestArchiving_MakesRoomForConsumers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay, olderDay), newAlertLedger()
		d.step = 30 * time.Second
		var mu sync.Mutex
		lag, by := int64(lagSpared), int64(1000)
		a := runArchiving(t, d, b, "a", "", func(context.Context) (int64, error) {
			mu.Lock()
			defer mu.Unlock()
			lag += by
			return lag, nil
		})
		defer a.stop()
		pass(time.Hour)
		if n := noteOf(t, b); len(d.gone()) != 0 || n.State != nightly.Waiting || n.Why != "the consumers fall behind" || d.seen().held[aDay(olderDay)] != archive.Attached {
			t.Fatalf("dropped %q, note %+v", d.gone(), n)
		}
		mu.Lock()
		by = 0
		mu.Unlock()
		pass(10 * time.Minute)
		if got := d.gone(); len(got) != 2 {
			t.Errorf("dropped %q", got)
		}
	})
}

// A lag that is small or unknown stops nothing.
func TestArchiving_LagThatDoesNotMatter(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(i int64) (int64, error){
		"small":   func(i int64) (int64, error) { return i * 10, nil },
		"unknown": func(i int64) (int64, error) { return i * 1_000_000, errors.New("away") },
		"falling": func(i int64) (int64, error) { return 1_000_000 - i, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, b, i := newDayTable(oldDay, olderDay), newAlertLedger(), int64(0)
				d.step = 30 * time.Second
				a := runArchiving(t, d, b, "a", "", func(context.Context) (int64, error) { i++; return of(i) })
				defer a.stop()
				pass(10 * time.Minute)
				if got := d.gone(); len(got) != 2 {
					t.Errorf("dropped %q", got)
				}
			})
		})
	}
}

// Storage classes that cannot be changed are a failure, and archived days are archived.
func TestArchiving_ClassesFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay), newAlertLedger()
		d.aging = &archive.ShelfError{Err: errors.New("no such class"), Do: "name another"}
		a := runArchiving(t, d, b, "a", "", nil)
		defer a.stop()
		pass(time.Minute)
		if n := noteOf(t, b); len(d.gone()) != 1 || n.State != nightly.Failed || n.Hint != "name another" || a.metric("docket_archive_failed", "") != 1 {
			t.Errorf("dropped %q, note %+v", d.gone(), n)
		}
	})
}

// Each file whose class was not changed is logged with its name and hint, and the next look tries again.
func TestArchiving_ClassesOfSomeFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay), newAlertLedger()
		aging := &archive.AgingError{}
		for n := range archive.MostAgingFaults + 7 {
			aging.Add(fmt.Sprint("file-", n), &archive.ShelfError{Err: errors.New("refused"), Do: "look into its log"})
		}
		d.aging = aging
		log := &output.Buffer{}
		a := NewArchiving(ArchivingConfig{Holder: "a", After: 30, Metrics: NewArchivingMetrics(prometheus.NewRegistry())}, byDesk{d, "a"}, b, zerolog.New(log))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { _ = a.Run(ctx); close(done) }()
		pass(time.Minute)
		if said := log.String(); !strings.Contains(said, `"file":"file-99","hint":"look into its log","message":"storage class not changed"`) || !strings.Contains(said, `"files":7`) {
			t.Errorf("%s", said)
		}
		d.set(func() { d.aging = nil })
		pass(3 * time.Hour)
		if n := noteOf(t, b); n.State != nightly.Idle || n.Aged != 2 || d.seen().ages < 2 {
			t.Errorf("note %+v", n)
		}
		cancel()
		<-done
	})
}

func TestArchivingMetrics_FromTheStart(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	NewArchivingMetrics(reg)
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 8 {
		t.Errorf("%d metrics, %v", n, err)
	}
}
