package console

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/desk/peers"
	"docket/internal/desk/worker"
	"docket/internal/history/complete"
)

const (
	// lookEvery is how old a snapshot may be. All who look share it, and without them none is made.
	lookEvery = 2 * time.Second
	// lookWithin limits the making of a snapshot. A store that does not answer by then is not known in it.
	lookWithin = 1500 * time.Millisecond
	// seldom is between two questions whose answers change slowly.
	seldom = 10 * time.Second
	// share bounds the load of a question: after it, this many times its duration passes before the next one.
	share = 200
	// rarest bounds that pause.
	rarest = time.Minute
)

// source is a question whose answer all pages share.
type source[T any] struct {
	every time.Duration
	ask   func(ctx context.Context) (T, error)

	asked  time.Time     // when it was last asked; zero: never
	took   time.Duration // of an answer without an error
	value  T
	at     time.Time // of value; zero: there is none
	failed error     // of the last question
}

// refresh asks again if it is time to. It reports whether it asked.
func (s *source[T]) refresh(ctx context.Context, now time.Time, log zerolog.Logger) bool {
	pause := max(s.every, min(share*s.took, rarest))
	if s.ask == nil || !s.asked.IsZero() && time.Since(s.asked) < pause {
		return false
	}
	s.asked, s.took = time.Now(), 0
	value, err := s.safely(ctx, log)
	if s.failed = err; err != nil {
		return true
	}
	s.value, s.at, s.took = value, now, time.Since(s.asked)
	return true
}

var errPanicked = errors.New("the question panicked")

// safely asks. It runs in a goroutine, where a panic would end the desk. The panic's value may contain a payload, so only
// the place is logged.
func (s *source[T]) safely(ctx context.Context, log zerolog.Logger) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = brokenOff(log, p)
		}
	}()
	return s.ask(ctx)
}

func brokenOff(log zerolog.Logger, p any) error {
	log.Error().Type("panic", p).Strs("at", frames()).Str("hint", "report this bug").Msg("console question panicked")
	return errPanicked
}

// known is the answer, and nil if the last question failed or was never asked.
func (s *source[T]) known() *T {
	if s.failed != nil || s.at.IsZero() {
		return nil
	}
	value := s.value
	return &value
}

// nowLasts is how old an answer about now may be without a word about its age.
const nowLasts = 10 * time.Second

// snapshot is how things are at a time. It does not change. A nil pointer is not known.
type snapshot struct {
	at      time.Time
	now     *api.NowAnswer
	nowAt   time.Time // of now: a costly question is asked less often
	lack    error     // why now is nil
	horizon *[]api.HorizonLine
	peers   *[]peers.Peer // nil: the desk is not told of any
	members map[string]int
	alerts  *[]worker.Told
	waits   []complete.Waits
	waitsAt time.Time // zero: not known
}

// nowOld reports whether the answer about now, which a costly question may have, is older than it looks.
func (s *snapshot) nowOld() bool { return s.now != nil && s.at.Sub(s.nowAt) > nowLasts }

// nowAsOf ends the text of a place that comes from the answer about now. It is empty for a recent one.
func (s *snapshot) nowAsOf() string {
	if !s.nowOld() {
		return ""
	}
	return "; as of " + s.nowAt.UTC().Format(time.TimeOnly)
}

// watching makes the snapshots.
type watching struct {
	sight Sight
	now   func() time.Time
	log   zerolog.Logger

	mu     sync.Mutex
	last   *snapshot
	made   time.Time
	making chan struct{} // closed when the one that is being made is there; nil: none is

	// The fields below belong to the maker.
	books   source[api.NowAnswer]
	horizon source[[]api.HorizonLine]
	peers   source[[]peers.Peer]
	members source[map[string]int]
	alerts  source[[]worker.Told]
}

// reading is the caller of what everybody sees.
var reading = api.Caller{Name: "console", Role: api.Viewer}

func newWatching(ask api.Inside, s Sight, now func() time.Time, log zerolog.Logger) *watching {
	w := &watching{sight: s, now: now, log: log}
	w.books = source[api.NowAnswer]{every: lookEvery, ask: func(ctx context.Context) (api.NowAnswer, error) { return ask.Now(ctx, reading) }}
	w.horizon = source[[]api.HorizonLine]{every: seldom, ask: func(ctx context.Context) ([]api.HorizonLine, error) { return ask.Horizon(ctx, reading) }}
	if s.Peers != nil {
		w.peers = source[[]peers.Peer]{every: lookEvery, ask: func(ctx context.Context) ([]peers.Peer, error) { return s.Peers(ctx), nil }}
	}
	if s.Members != nil {
		w.members = source[map[string]int]{every: seldom, ask: func(ctx context.Context) (map[string]int, error) { return membersOf(ctx, s) }}
	}
	if s.Alerts != nil {
		w.alerts = source[[]worker.Told]{every: seldom, ask: s.Alerts}
	}
	return w
}

// membersOf counts the members of each lane's group.
func membersOf(ctx context.Context, s Sight) (map[string]int, error) {
	all := map[string]int{}
	for _, l := range s.Lanes {
		n, err := s.Members(ctx, l.Group)
		if err != nil {
			return nil, err
		}
		all[l.Group] = n
	}
	return all, nil
}

// look returns a snapshot that is at most lookEvery old. One caller makes it, and the others wait for it. Nobody waits
// longer than lookWithin.
func (w *watching) look(ctx context.Context) (*snapshot, error) {
	for {
		w.mu.Lock()
		if w.last != nil && time.Since(w.made) < lookEvery {
			defer w.mu.Unlock()
			return w.last, nil
		}
		wait := w.making
		if wait == nil {
			w.making = make(chan struct{})
			w.mu.Unlock()
			return w.make(ctx), nil
		}
		w.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// make makes a snapshot for all. Its maker may be gone before it is there.
func (w *watching) make(ctx context.Context) (s *snapshot) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if s != nil {
			w.last, w.made = s, time.Now()
		}
		close(w.making)
		w.making = nil
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookWithin)
	defer cancel()
	s = &snapshot{at: w.now()}
	slow := false
	if w.sight.Waits != nil {
		var known bool
		if s.waits, s.waitsAt, known, slow = w.sight.Waits(); !known {
			s.waits, s.waitsAt = nil, time.Time{}
		}
	}
	w.ask(ctx, s, slow)
	return s
}

// ask fills in what can be asked just now. Where Kafka is slow, it is not asked.
func (w *watching) ask(ctx context.Context, s *snapshot, slow bool) {
	now := s.at
	var all sync.WaitGroup
	all.Go(func() { w.books.refresh(ctx, now, w.log) })
	all.Go(func() { w.peers.refresh(ctx, now, w.log) })
	all.Go(func() { w.alerts.refresh(ctx, now, w.log) })
	if !slow {
		all.Go(func() { w.horizon.refresh(ctx, now, w.log) })
		all.Go(func() { w.members.refresh(ctx, now, w.log) })
	}
	all.Wait()
	s.now, s.nowAt, s.lack, s.peers, s.alerts = w.books.known(), w.books.at, w.books.failed, w.peers.known(), w.alerts.known()
	if slow {
		return
	}
	s.horizon = w.horizon.known()
	if m := w.members.known(); m != nil {
		s.members = *m
	}
}
