package complete

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/record/commitnote"
)

// Log is the part of Kafka that a watch needs; *kafka.Reader is one.
type Log interface {
	// CommittedNoted are the offsets that a group has committed in a topic, and the text beside each: see package commitnote.
	CommittedNoted(ctx context.Context, group, topic string) (done map[int32]int64, notes map[int32]string, err error)
	// Starts and Ends are the first offsets that a topic holds, and those after its last records, whether these are
	// committed or not.
	Starts(ctx context.Context, topic string) (map[int32]int64, error)
	Ends(ctx context.Context, topic string) (map[int32]int64, error)
	Scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error)
}

// Groups tells whether a group has no members. A [Log] that is one tells at once that nobody reads.
type Groups interface {
	Idle(ctx context.Context, group string) (bool, error)
}

// Source is the topic of a lane and the group that reads it.
type Source struct{ Topic, Group string }

// Config names what is watched. Zero durations mean the defaults.
type Config struct {
	Sources          []Source
	Has              func(partition int32) bool // partitions of the sources that count; nil: all
	Parking          Source
	Dead             []Source // the dead-letter topics, with the group of the desk
	MaxRecordBytes   int64    // inflated; default 16 MiB
	Every            time.Duration
	Within           time.Duration // limit of one look
	Margin           time.Duration // for the clocks of the brokers; below 0: none
	SkipsParkedTimes bool          // parked records are not read: they are counted only if there are none
	Now              func() time.Time
}

// The defaults.
const (
	Every  = 5 * time.Second
	Within = 20 * time.Second
	Margin = 5 * time.Second
	// Lasts is how long a status says what waits. Afterwards that is unknown.
	Lasts = 30 * time.Second
)

func (c Config) withDefaults() Config {
	if c.Every <= 0 {
		c.Every = Every
	}
	if c.Within <= 0 {
		c.Within = Within
	}
	if c.Margin == 0 {
		c.Margin = Margin
	}
	c.Margin = max(c.Margin, 0)
	if c.MaxRecordBytes <= 0 {
		c.MaxRecordBytes = 16 << 20
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// Watch looks at Kafka from time to time. Its status is read at any time, by anyone, without a wait.
type Watch struct {
	cfg    Config
	log    Log
	status atomic.Pointer[Status]
	asking atomic.Int64 // when the present look began, in Unix nanoseconds; 0: there is none

	mu      sync.Mutex // one look at a time
	track   *track
	parking parking
	before  map[place]int64 // committed offsets of the last look
}

// see takes in the notes of a group in a topic.
func see(in *commitnote.Beside, done map[int32]int64, notes map[int32]string, has func(partition int32) bool) {
	for p, offset := range done {
		if has == nil || has(p) {
			in.See(offset, notes[p])
		}
	}
}

// ahead is how far the times of decisions may be ahead of their arrival in Kafka: a wrong time zone, and a clock.
const ahead = 24 * time.Hour

// unspooled reports whether no decision of a range, of all that is committed, is in a spool.
func (s *Status) unspooled(r Range) bool {
	note, known := s.spools.Note()
	return known && !note.Holds() && (note.Before().IsZero() || r.Since.After(note.Before().Add(ahead)))
}

// NewWatch makes a watch. It asks nothing.
func NewWatch(cfg Config, log Log) *Watch {
	cfg = cfg.withDefaults()
	w := &Watch{cfg: cfg, log: log, track: newTrack(cfg.Margin)}
	w.status.Store(&Status{now: cfg.Now})
	return w
}

// Status returns what the last look found. It never waits.
func (w *Watch) Status() Status {
	s := *w.status.Load()
	if began := w.asking.Load(); began > 0 {
		s.took = max(s.took, w.cfg.Now().Sub(time.Unix(0, began)))
	}
	return s
}

// Run looks again and again until ctx ends. It returns nil. After an error of Kafka the status grows
// old.
func (w *Watch) Run(ctx context.Context) error {
	for {
		began := w.cfg.Now()
		_ = w.Look(ctx) // the status says it
		if !pause(ctx, max(0, w.cfg.Every-w.cfg.Now().Sub(began))) {
			return nil
		}
	}
}

// pause waits. It returns false once ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// settlePause is between two looks of [Watch.Settle].
const settlePause = 50 * time.Millisecond

// Settle looks until all that had reached Kafka before the first look has a home, or until ctx ends.
func (w *Watch) Settle(ctx context.Context) Status {
	for {
		err := w.Look(ctx)
		if s := w.Status(); err != nil || !s.until.IsZero() {
			return s
		}
		if !pause(ctx, settlePause) {
			return w.Status()
		}
	}
}

// Look looks once. After an error the status stays as it was.
func (w *Watch) Look(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Within)
	defer cancel()
	l := &look{watch: w, at: w.cfg.Now()}
	w.asking.Store(l.at.UnixNano())
	defer w.asking.Store(0)
	if err := l.read(ctx); err != nil {
		w.failed(l.at)
		return err
	}
	w.track.look(l.at, l.before, l.found)
	w.before = map[place]int64{}
	for p, s := range l.found {
		if s.hasCommit {
			w.before[p] = s.committed
		}
	}
	t := w.track
	w.status.Store(&Status{
		now: w.cfg.Now, at: l.at, until: t.until, recent: t.recent, held: t.held || l.idle, behind: t.behind, eta: t.pace.eta(t.behind), parked: l.parked, unentered: l.unentered, spools: l.spools,
		took: w.cfg.Now().Sub(l.at), waits: t.waits(),
	})
	return nil
}

// failed notes that a look ended without an answer: Kafka counts as slow.
func (w *Watch) failed(began time.Time) {
	s := *w.status.Load()
	s.took = max(slow, w.cfg.Now().Sub(began))
	w.status.Store(&s)
}

// look is one look while it is made.
type look struct {
	watch     *Watch
	at        time.Time
	before    map[place]int64
	found     map[place]seen
	parked    *snapshot
	unentered int64
	idle      bool // a group with waiting records has no members
	spools    commitnote.Beside
}

// read reads everything, in the order in which records move. See the package's text.
func (l *look) read(ctx context.Context) error {
	w := l.watch
	if l.before = w.before; l.before == nil { // the first look has no look before it
		before, err := w.committed(ctx, nil)
		if err != nil {
			return err
		}
		l.before = before
	}
	if err := l.ends(ctx); err != nil {
		return err
	}
	committed, err := w.committed(ctx, &l.spools)
	if err != nil {
		return err
	}
	for p, s := range l.found {
		s.committed, s.hasCommit = committed[p], false
		if _, there := committed[p]; there {
			s.hasCommit = true
		}
		l.found[p] = s
	}
	l.groups(ctx)
	if err := l.parking(ctx); err != nil {
		return err
	}
	return l.dead(ctx)
}

// groups looks whether somebody reads where records wait. If it cannot be seen, only time tells.
func (l *look) groups(ctx context.Context) {
	log, can := l.watch.log.(Groups)
	if !can {
		return
	}
	for _, s := range l.watch.cfg.Sources {
		waits := false
		for p, seen := range l.found {
			waits = waits || p.topic == s.Topic && seen.waiting() > 0
		}
		if waits && !l.idle {
			idle, err := log.Idle(ctx, s.Group)
			l.idle = err == nil && idle
		}
	}
}

// ends reads the starts and ends of the source topics.
func (l *look) ends(ctx context.Context) error {
	sources := l.watch.cfg.Sources
	starts, ends := make([]map[int32]int64, len(sources)), make([]map[int32]int64, len(sources))
	all, ctx := errgroup.WithContext(ctx)
	for i, s := range sources {
		all.Go(func() (err error) { starts[i], err = l.watch.log.Starts(ctx, s.Topic); return err })
		all.Go(func() (err error) { ends[i], err = l.watch.log.Ends(ctx, s.Topic); return err })
	}
	if err := all.Wait(); err != nil {
		return err
	}
	l.found = map[place]seen{}
	for i, s := range sources {
		for p, end := range ends[i] {
			if has := l.watch.cfg.Has; has != nil && !has(p) {
				continue
			}
			l.found[place{s.Topic, p}] = seen{start: min(starts[i][p], end), end: end}
		}
	}
	return nil
}

// committed reads the offsets of the consumers, and what they note of their spools.
func (w *Watch) committed(ctx context.Context, of *commitnote.Beside) (map[place]int64, error) {
	done, notes := make([]map[int32]int64, len(w.cfg.Sources)), make([]map[int32]string, len(w.cfg.Sources))
	all, ctx := errgroup.WithContext(ctx)
	for i, s := range w.cfg.Sources {
		all.Go(func() (err error) { done[i], notes[i], err = w.log.CommittedNoted(ctx, s.Group, s.Topic); return err })
	}
	if err := all.Wait(); err != nil {
		return nil, err
	}
	found := map[place]int64{}
	for i, s := range w.cfg.Sources {
		for p, offset := range done[i] {
			found[place{s.Topic, p}] = offset
		}
		if of != nil {
			see(of, done[i], notes[i], w.cfg.Has)
		}
	}
	return found, nil
}

// parking reads what is parked.
func (l *look) parking(ctx context.Context) error {
	w := l.watch
	done, ends, err := w.left(ctx, w.cfg.Parking, &l.spools) // the replayer has a spool, too
	if err != nil {
		return err
	}
	if !w.cfg.SkipsParkedTimes {
		if err := w.parking.follow(ctx, w.log, w.cfg.Parking.Topic, done, ends, w.cfg.MaxRecordBytes); err != nil {
			return err
		}
		l.parked = w.parking.snapshot()
		return nil
	}
	l.parked = &snapshot{whole: open(done, ends) == 0}
	return nil
}

// dead counts the dead letters that no desk has entered.
func (l *look) dead(ctx context.Context) error {
	for _, s := range l.watch.cfg.Dead {
		done, ends, err := l.watch.left(ctx, s, nil)
		if err != nil {
			return err
		}
		l.unentered += open(done, ends)
	}
	return nil
}

// left reads the offsets of a group, and then the ends of its topic. A record that is put back meanwhile counts.
func (w *Watch) left(ctx context.Context, s Source, of *commitnote.Beside) (done, ends map[int32]int64, err error) {
	done, notes, err := w.log.CommittedNoted(ctx, s.Group, s.Topic)
	if err != nil {
		return nil, nil, err
	}
	if of != nil {
		see(of, done, notes, nil)
	}
	ends, err = w.log.Ends(ctx, s.Topic)
	return done, ends, err
}

// open counts the offsets that a group has not committed. An offset beyond the end is from an earlier topic.
func open(done, ends map[int32]int64) (n int64) {
	for p, end := range ends {
		if at := done[p]; at <= end {
			n += end - at
		} else {
			n += end
		}
	}
	return n
}
