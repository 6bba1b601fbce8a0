//go:build synctests

package sim

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/kafka"
	"docket/internal/programs/desk"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/ledgermodel"
)

// desks is the group of the desk.
const desks = "docket-desk"

// deskProgram is the desk as internal/programs/desk wires it, without alerts, counts and the API. The brokers and the
// probe of the schedule are real. The ledger and the lookups in the table use models.
type deskProgram struct {
	intake  *worker.Intake
	sources []*kafka.Source
	workers []interface{ Run(context.Context) error }
	closers []func()
}

// newDeskProgram opens a desk.
func newDeskProgram(p *process, log zerolog.Logger) (d *deskProgram, err error) {
	d = &deskProgram{}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	s, name := p.settings, "docket desk"
	brokers, err := app.Kafka(s, p.name)
	if err != nil {
		return nil, err
	}
	brokers.Dialer = p.dialer(toKafka, p.w.wires.Dial)
	db, err := app.OpenDatabaseBy(s, config.Desk, p.dialer(toDatabase, p.w.db.Dial), log)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, db.Close)
	publisher, err := kafka.NewPublisher(brokers, kafka.PublisherConfig{Timeout: s.PublishTimeout}, log, p.registry)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, publisher.Close)
	for _, topic := range []string{s.KafkaDLQTopic, s.KafkaParkingDLQTopic} {
		src, err := kafka.NewSource(brokers, kafka.SourceConfig{Topic: topic, Group: s.DeskGroup, BatchRecords: 5, Drain: s.ShutdownTimeout},
			log, prometheus.WrapRegistererWith(prometheus.Labels{"reads": topic}, p.registry))
		if err != nil {
			return nil, err
		}
		d.sources, d.closers = append(d.sources, src), append(d.closers, src.Close)
	}
	reader, err := kafka.NewReader(brokers)
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, reader.Close)
	book := desksBook{p}
	d.intake = worker.NewIntake(worker.IntakeConfig{
		MaxRecordBytes: int64(s.MaxRecordBytes), MaxAttempts: s.DeskMaxAttempts, Actor: ledger.Actor{Name: name, Why: "read from its dead-letter topic"}, Keys: s.HeaderKeys(),
	}, book, nil, log)
	schedule, err := worker.NewSchedule(worker.ScheduleConfig{
		Holder: p.name, First: s.DeskRetryFirst, Interval: s.DeskRetryInterval, Kinds: desk.Kinds(s), Lease: s.DeskLease, Portion: 3,
		Backoff: s.DeskRetryBackoff, MaxBackoff: s.DeskRetryMaxBackoff, MaxAttempts: s.DeskMaxAttempts,
	}, book, db, log)
	if err != nil {
		return nil, err
	}
	d.workers = []interface{ Run(context.Context) error }{
		worker.NewSurplus(worker.SurplusConfig{Holder: p.name, MaxEntered: s.DeskMaxEntered, Interval: 200 * time.Millisecond, Lease: 3 * time.Second}, d.intake, book, desk.SurplusTopics(reader), log),
		worker.NewRelay(worker.RelayConfig{
			Holder: p.name, Topics: desk.RetryTopics(s), Interval: s.DeskRelayInterval, Batch: s.DeskRelayBatch, Tries: s.DeskRelayTries, Lease: desk.RelayLease(s), Extend: s.DeskLease, Keys: s.HeaderKeys(),
		}, book, desk.Publisher(publisher), log),
		worker.NewMarking(worker.MarkConfig{MaxRecordBytes: int64(s.MaxRecordBytes)}, book, log),
		worker.NewWatcher(worker.WatchConfig{MaxRecordBytes: int64(s.MaxRecordBytes), MaxPause: 2 * time.Second, MaxAttempts: s.DeskMaxAttempts}, book, desksTable{p}, ledger.Actor{Name: name}, log),
		worker.NewUpkeep(worker.UpkeepConfig{Holder: p.name, KeepResolved: s.DeskKeepResolved}, book, ledger.Actor{Name: name}, log),
		worker.NewJobs(worker.JobsConfig{Holder: p.name, Lease: 3 * time.Second, Step: 200 * time.Millisecond, LetterLease: s.DeskLease, Alike: 3, Window: 6, AtOnce: 2}, book, db, log),
		schedule,
	}
	if len(p.w.plan.Rulings) > 0 { // a desk without rules asks for them all the same, and other schedules stay as they are
		d.workers = append(d.workers, worker.NewRules(worker.RulesConfig{Holder: p.name, Interval: 500 * time.Millisecond, LetterLease: s.DeskLease, Portion: 2, Window: 3, Turns: 2}, book, db, log))
	}
	return d, nil
}

// Run works until ctx ends.
func (d *deskProgram) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var all errgroup.Group
	run := func(f func(context.Context) error) {
		all.Go(func() error {
			err := f(ctx)
			if err != nil {
				stop()
			}
			return err
		})
	}
	for _, src := range d.sources {
		run(func(ctx context.Context) error {
			return src.Run(ctx, func(ctx context.Context, a *kafka.Assignment) error { return d.intake.Carry(ctx, a) })
		})
	}
	for _, w := range d.workers {
		run(w.Run)
	}
	return all.Wait()
}

// Close closes everything, in reverse order.
func (d *deskProgram) Close() {
	for _, c := range slices.Backward(d.closers) {
		c()
	}
}

// ledgerWeather has the faults of calls to the ledger, for all processes.
type ledgerWeather struct {
	mu     sync.Mutex
	away   int
	spared int // calls before the next fault
	failed int // calls that fail before they have an effect
	lost   int // calls whose answer is lost
}

func (l *ledgerWeather) stayAway() (heal func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.away--
	}
}

// strike makes calls fail and answers get lost, after a few calls.
func (l *ledgerWeather) strike(after, failed, lost int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spared, l.failed, l.lost = after, l.failed+failed, l.lost+lost
}

// next returns the fate of a call.
func (l *ledgerWeather) next() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.away > 0:
		return cutBefore
	case l.spared > 0:
		l.spared--
	case l.failed > 0:
		l.failed--
		return cutBefore
	case l.lost > 0:
		l.lost--
		return cutAfter
	}
	return delivered
}

func ofTheLedger() []evil {
	draw := func(d dice, _ *schedule) event { return event{N: d.IntN(1000)} }
	lost := evil{"answer of the ledger lost", draw, func(w *world, e event) func() {
		w.books.strike(e.N%7, 0, 1+e.N%4)
		return nothing
	}}
	return []evil{
		{"ledger away", draw, func(w *world, _ event) func() { return w.books.stayAway() }},
		{"ledger fails a few", draw, func(w *world, e event) func() { w.books.strike(e.N%7, 1+e.N%4, 0); return nothing }},
		lost, lost,
	}
}

var errLedger = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// asked is a call of a desk to the ledger or to the table. It is an effect, and can fail before it, or lose its
// answer.
func asked[T any](ctx context.Context, p *process, what string, do func() (T, error)) (T, error) {
	var none T
	time.Sleep(transit)
	after, err := p.effect("ledger "+what, 0)
	if err != nil {
		return none, err
	}
	defer after()
	if err := ctx.Err(); err != nil {
		return none, err
	}
	become := p.w.books.next()
	if become == cutBefore || p.w.net.refuses(toDatabase) || p.w.db.Alone() {
		return none, errLedger
	}
	v, err := do()
	if become == cutAfter {
		return none, errLedger
	}
	return v, err
}

func told(ctx context.Context, p *process, what string, do func() error) error {
	_, err := asked(ctx, p, what, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// desksBook is the ledger as a desk reaches it.
type desksBook struct{ p *process }

func (k desksBook) inner() *ledgermodel.Book { return k.p.w.book }

func (k desksBook) Enter(ctx context.Context, letters []ledger.Letter, most int, by ledger.Actor) (ledger.EnteredCount, error) {
	return asked(ctx, k.p, "Enter", func() (ledger.EnteredCount, error) { return k.inner().Enter(ctx, letters, most, by) })
}

func (k desksBook) EnterSurplus(ctx context.Context, portion ledger.Portion, most int, by ledger.Actor) (ledger.EnteredCount, ledger.Passed, error) {
	type both struct {
		count ledger.EnteredCount
		done  ledger.Passed
	}
	b, err := asked(ctx, k.p, "EnterSurplus", func() (b both, err error) {
		b.count, b.done, err = k.inner().EnterSurplus(ctx, portion, most, by)
		return b, err
	})
	return b.count, b.done, err
}

func (k desksBook) Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error) {
	return asked(ctx, k.p, "Surplus", func() ([]ledger.Surplus, error) { return k.inner().Surplus(ctx, all, after, n) })
}

func (k desksBook) SurplusSums(ctx context.Context) (ledger.SurplusSums, error) {
	return asked(ctx, k.p, "SurplusSums", func() (ledger.SurplusSums, error) { return k.inner().SurplusSums(ctx) })
}

func (k desksBook) ArchivedSurplus(ctx context.Context, id, from, last int64, archive string, letters int64) (int64, error) {
	return asked(ctx, k.p, "ArchivedSurplus", func() (int64, error) { return k.inner().ArchivedSurplus(ctx, id, from, last, archive, letters) })
}

func (k desksBook) OrderSurplus(ctx context.Context, id int64, by ledger.Actor) error {
	return told(ctx, k.p, "OrderSurplus", func() error { return k.inner().OrderSurplus(ctx, id, by) })
}

func (k desksBook) TrimSurplus(ctx context.Context) error {
	return told(ctx, k.p, "TrimSurplus", func() error { return k.inner().TrimSurplus(ctx) })
}

func (k desksBook) RetryMatching(ctx context.Context, f ledger.Filter, before time.Time, n int, lease time.Duration, by ledger.Actor) ([]int64, error) {
	return asked(ctx, k.p, "RetryMatching", func() ([]int64, error) { return k.inner().RetryMatching(ctx, f, before, n, lease, by) })
}

func (k desksBook) Claim(ctx context.Context, holder string, n int, lease time.Duration) ([]ledger.Sending, error) {
	return asked(ctx, k.p, "Claim", func() ([]ledger.Sending, error) { return k.inner().Claim(ctx, holder, n, lease) })
}

func (k desksBook) Published(ctx context.Context, holder string, placed []ledger.Placed, extend time.Duration) error {
	return told(ctx, k.p, "Published", func() error { return k.inner().Published(ctx, holder, placed, extend) })
}

func (k desksBook) Unpublished(ctx context.Context, holder string, id int64, code string, pause time.Duration, giveUp bool) error {
	return told(ctx, k.p, "Unpublished", func() error { return k.inner().Unpublished(ctx, holder, id, code, pause, giveUp) })
}

func (k desksBook) Awaited(ctx context.Context, n int) ([]ledger.Awaited, error) {
	return asked(ctx, k.p, "Awaited", func() ([]ledger.Awaited, error) { return k.inner().Awaited(ctx, n) })
}

func (k desksBook) Stored(ctx context.Context, ids []int64, why []string, by ledger.Actor) error {
	return told(ctx, k.p, "Stored", func() error { return k.inner().Stored(ctx, ids, why, by) })
}

func (k desksBook) Overtaken(ctx context.Context, possible []ledger.Possible, maxAttempts int, by ledger.Actor) (int, error) {
	return asked(ctx, k.p, "Overtaken", func() (int, error) { return k.inner().Overtaken(ctx, possible, maxAttempts, by) })
}

func (k desksBook) LookAgain(ctx context.Context, ids []int64, after time.Duration) error {
	return told(ctx, k.p, "LookAgain", func() error { return k.inner().LookAgain(ctx, ids, after) })
}

func (k desksBook) Unmarked(ctx context.Context, n int) ([]ledger.Unmarked, int64, error) {
	type found struct {
		due []ledger.Unmarked
		all int64
	}
	f, err := asked(ctx, k.p, "Unmarked", func() (f found, err error) {
		f.due, f.all, err = k.inner().Unmarked(ctx, n)
		return f, err
	})
	return f.due, f.all, err
}

func (k desksBook) MarkEdited(ctx context.Context, id int64, rows []ledger.RowName) (marked, missing int, err error) {
	n, err := asked(ctx, k.p, "MarkEdited", func() (n [2]int, err error) {
		n[0], n[1], err = k.inner().MarkEdited(ctx, id, rows)
		return n, err
	})
	return n[0], n[1], err
}

func (k desksBook) EndLeases(ctx context.Context, by ledger.Actor) (int, error) {
	return asked(ctx, k.p, "EndLeases", func() (int, error) { return k.inner().EndLeases(ctx, by) })
}

func (k desksBook) Unarchived(ctx context.Context, before time.Time) (int64, error) {
	return asked(ctx, k.p, "Unarchived", func() (int64, error) { return k.inner().Unarchived(ctx, before) })
}

func (k desksBook) Remove(ctx context.Context, before time.Time, n int, by ledger.Actor) (int, error) {
	return asked(ctx, k.p, "Remove", func() (int, error) { return k.inner().Remove(ctx, before, n, by) })
}

func (k desksBook) Compact(ctx context.Context) error {
	return told(ctx, k.p, "Compact", func() error { return k.inner().Compact(ctx) })
}

func (k desksBook) Duty(ctx context.Context, name, holder string, every, lease time.Duration) (bool, error) {
	return asked(ctx, k.p, "Duty", func() (bool, error) { return k.inner().Duty(ctx, name, holder, every, lease) })
}

func (k desksBook) DutyDone(ctx context.Context, name, holder string) error {
	return told(ctx, k.p, "DutyDone", func() error { return k.inner().DutyDone(ctx, name, holder) })
}

func (k desksBook) Desks(ctx context.Context, within time.Duration) ([]string, error) {
	return asked(ctx, k.p, "Desks", func() ([]string, error) { return k.inner().Desks(ctx, within) })
}

func (k desksBook) Remember(ctx context.Context, name, text string) error {
	return told(ctx, k.p, "Remember", func() error { return k.inner().Remember(ctx, name, text) })
}

func (k desksBook) Remembered(ctx context.Context, name string) (text string, at time.Time, err error) {
	type note struct {
		text string
		at   time.Time
	}
	n, err := asked(ctx, k.p, "Remembered", func() (n note, err error) {
		n.text, n.at, err = k.inner().Remembered(ctx, name)
		return n, err
	})
	return n.text, n.at, err
}

func (k desksBook) Job(ctx context.Context, id int64) (ledger.Job, error) {
	return asked(ctx, k.p, "Job", func() (ledger.Job, error) { return k.inner().Job(ctx, id) })
}

func (k desksBook) TakeJob(ctx context.Context, holder string, lease time.Duration) (ledger.Job, error) {
	return asked(ctx, k.p, "TakeJob", func() (ledger.Job, error) { return k.inner().TakeJob(ctx, holder, lease) })
}

func (k desksBook) KeepJob(ctx context.Context, id int64, holder, note string, lease time.Duration) (ledger.Job, error) {
	return asked(ctx, k.p, "KeepJob", func() (ledger.Job, error) { return k.inner().KeepJob(ctx, id, holder, note, lease) })
}

func (k desksBook) EndJob(ctx context.Context, id int64, holder string, state ledger.JobState, note string) error {
	return told(ctx, k.p, "EndJob", func() error { return k.inner().EndJob(ctx, id, holder, state, note) })
}

func (k desksBook) FirstEnds(ctx context.Context, id int64, n int) ([]ledger.Sending, error) {
	return asked(ctx, k.p, "FirstEnds", func() ([]ledger.Sending, error) { return k.inner().FirstEnds(ctx, id, n) })
}

func (k desksBook) ResolveMatching(ctx context.Context, f ledger.Filter, before time.Time, n int, by ledger.Actor) (int, error) {
	return asked(ctx, k.p, "ResolveMatching", func() (int, error) { return k.inner().ResolveMatching(ctx, f, before, n, by) })
}

// desksTable is decision_logs for a desk: the model of store.Store.Lookup.
type desksTable struct{ p *process }

func (t desksTable) Lookup(ctx context.Context, sought []worker.Sought) ([]worker.Found, error) {
	return asked(ctx, t.p, "Lookup", func() (found []worker.Found, err error) {
		for _, r := range t.p.w.db.Rows() {
			for n, s := range sought {
				if identity(s.ID, s.Time) != identity(r.DecisionID, r.Time) {
					continue
				}
				sum := sha256.Sum256(s.Raw)
				found = append(found, worker.Found{N: n, Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
					Equal: string(r.Sum) == string(sum[:]) || verify.SameJSON(bytesOf(&r), s.Raw)})
			}
		}
		return found, nil
	})
}

// decided is one click of an operator.
type decided struct {
	At     time.Duration
	Letter int  // of the movable letters, by id
	Many   int  // this one and this many more
	Twice  bool // clicked twice
	Closed bool // resolved, not retried
}

// deskSettings are those of all desks.
func (w *world) deskSettings() config.Settings { return w.slots[len(w.slots)-1].settings }

// operate plays the operators' acts.
func (w *world) operate() {
	type click struct {
		at time.Duration
		do func()
	}
	var clicks []click
	for _, d := range w.plan.Decided {
		clicks = append(clicks, click{d.At, func() { w.decide(d) }})
	}
	for _, e := range w.plan.Edits {
		clicks = append(clicks, click{e.At, func() { w.edit(e) }})
	}
	for n, o := range w.plan.Orders {
		clicks = append(clicks, click{o.At, func() { w.order(o) }})
		if o.Stop > 0 {
			clicks = append(clicks, click{o.At + o.Stop, func() { w.turn(n, "stops", w.stopJob) }})
		}
		if o.Resume > 0 {
			clicks = append(clicks, click{o.At + o.Stop + o.Resume, func() { w.turn(n, "resumes", w.book.ResumeJob) }})
		}
	}
	for _, r := range w.plan.Rulings {
		clicks = append(clicks, click{r.At, func() { w.rule(r) }})
		if r.Act == ledger.Closed {
			clicks = append(clicks, click{r.At + r.For/2, w.reopen})
		}
	}
	slices.SortStableFunc(clicks, func(a, b click) int { return cmp.Compare(a.at, b.at) })
	for _, c := range clicks {
		w.until(c.at)
		c.do()
	}
}

func (w *world) decide(d decided) {
	free := w.letters(ledger.Pending, ledger.Failed)
	if len(free) == 0 {
		return
	}
	at := d.Letter % len(free)
	ids := free[at:min(len(free), at+1+d.Many)]
	by := ledger.Actor{Name: "operator", Why: "the seed says so"}
	for range 1 + b2i(d.Twice) {
		var outcomes []ledger.Outcome
		var err error
		if d.Closed {
			outcomes, err = w.book.Resolve(context.Background(), ids, by)
		} else {
			outcomes, err = w.book.Retry(context.Background(), ids, w.deskSettings().DeskLease, by)
		}
		for _, o := range outcomes {
			if err == nil && o.Err == nil && !d.Closed {
				w.retriedBy[by.Name]++
			}
		}
		w.history.add("operator decides", "", fmt.Sprintf("%d letters, closed %v: %v %v", len(ids), d.Closed, err, outcomes))
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// proof returns everything in the ledger.
func (w *world) proof() ledger.Proof {
	p, err := w.book.Proof(context.Background(), time.Time{}, 0)
	if err != nil {
		panic(err) // it cannot fail
	}
	return p
}

// letters returns the ids of letters in these states, in order.
func (w *world) letters(states ...ledger.State) (ids []string) {
	for _, e := range w.proof().Letters {
		if slices.Contains(states, e.State) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// deskUnsettled describes the open work of the desk.
func (w *world) deskUnsettled() string {
	if w.plan.Desks == 0 {
		return ""
	}
	for _, topic := range []string{dead, exhausted} {
		done := committed(w.kafka.Cluster, desks, topic)
		for p, end := range ends(w.kafka.Cluster, topic) {
			if done[p] < end {
				return fmt.Sprintf("%s committed %d of %d in %s/%d", desks, done[p], end, topic, p)
			}
		}
	}
	open, err := w.book.Surplus(context.Background(), true, 0, 1000)
	if err != nil {
		panic(err) // it cannot fail
	}
	for i := range open {
		if s := &open[i]; s.State == ledger.SurplusOpen {
			return fmt.Sprintf("%d dead letters from %s/%d/%d on are in Kafka alone", s.Open(), s.Topic, s.Partition, s.Next)
		}
	}
	s, p := w.deskSettings(), w.proof()
	for _, e := range p.Letters {
		if e.State == ledger.Processing {
			return fmt.Sprintf("%.12s is being retried", e.ID)
		}
		if e.State == ledger.Pending && slices.Contains(desk.Kinds(s), e.Cause.Kind) && e.Attempts < s.DeskMaxAttempts {
			return fmt.Sprintf("%.12s is still to be retried on schedule", e.ID)
		}
	}
	for _, s := range p.Sendings {
		if s.Outcome == "" {
			return fmt.Sprintf("retry %d of %.12s has not ended: sent to %s at %d/%d (published: %v), tried %d times, code %q", s.ID, s.LetterID, s.Topic, s.Published.Partition, s.Published.Offset, !s.Published.Stamp.IsZero(), s.Tries, s.Code)
		}
	}
	return w.jobsUnsettled()
}
