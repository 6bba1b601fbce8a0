package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/sony/gobreaker/v2"

	"docket/internal/consumer/limit"
)

//go:embed take.lua
var takeSource string

var take = redis.NewScript(takeSource)

// LimitConfig says what is limited.
type LimitConfig struct {
	Group string     // the consumer group, which names the keys
	Plan  limit.Plan // the limits of all processes
	// Called is told of each call that reached out for Redis; nil: nobody is.
	Called func(took time.Duration, ok bool)
}

// Keys returns the keys of the buckets of a group: that of all lanes and that of the low lanes.
func Keys(group string) []string {
	tag := "{docket:" + group + "}"
	return []string{tag + ":all", tag + ":low"}
}

// Limit grants rows that Redis counts for all processes. It is safe for concurrent use.
type Limit struct {
	client   redis.UniversalClient
	cfg      LimitConfig
	patience time.Duration // with a call
	keys     []string
	fixed    []any // arguments of the script that are the same in each call
	breaker  *gobreaker.CircuitBreaker[answer]
	log      zerolog.Logger
	low      atomic.Int64           // the low limit that was in force at the last call
	failure  atomic.Pointer[string] // code of the last failure
	end      context.CancelFunc     // ends the trials
	ended    chan struct{}          // closed when they ended
}

// answer is what the script returns.
type answer struct {
	granted int
	wait    time.Duration
	low     int   // the low limit in force
	at      int64 // the server's time, in microseconds
}

// NewLimit prepares a limit. It dials nobody. The error has no text of the URL. After it there has to be a Close.
func NewLimit(cfg Config, of LimitConfig, log zerolog.Logger) (*Limit, error) {
	client, err := open(cfg)
	if err != nil {
		return nil, err
	}
	l := &Limit{client: client, cfg: of, patience: cmp.Or(cfg.Patience, Deadline), keys: Keys(of.Group), log: log}
	l.fixed = []any{of.Plan.All, of.Plan.Low, of.Plan.Burst}
	for _, h := range of.Plan.Calendar {
		l.fixed = append(l.fixed, h.From, h.To, h.Low)
	}
	l.low.Store(int64(of.Plan.Low))
	l.breaker = gobreaker.NewCircuitBreaker[answer](gobreaker.Settings{
		MaxRequests: trials, Interval: window, BucketPeriod: window / 10, Timeout: pause,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.Requests >= calls && 2*c.TotalFailures >= c.Requests },
		IsExcluded:    func(err error) bool { return errors.Is(err, errEnded) },
		OnStateChange: l.changed,
	})
	ctx, end := context.WithCancel(context.Background())
	l.end, l.ended = end, make(chan struct{})
	go l.try(ctx)
	return l, nil
}

// try calls for no rows while the breaker is not closed. A program that writes nothing notices so that Redis is back.
func (l *Limit) try(ctx context.Context) {
	defer close(l.ended)
	tick := time.NewTicker(pause / (2 * trials))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if l.State() != Closed {
			_, _, _ = l.Ask(ctx, true, 0, 0) // the breaker counts how it ends
		}
	}
}

// The breaker opens after calls within a window of which half failed, for a pause. Then it tries.
const (
	calls  = 10
	window = 30 * time.Second
	pause  = 30 * time.Second
	trials = 5
)

// errEnded says that the caller gave up. It tells nothing of Redis.
var errEnded = errors.New("the caller ended the call")

// Ask grants from least to n rows, or none. If it grants none, it returns the time until it can grant the least. An
// error says that Redis is away. It comes within [Config.Patience].
func (l *Limit) Ask(ctx context.Context, low bool, n, least int) (granted int, wait time.Duration, err error) {
	a, err := l.breaker.Execute(func() (answer, error) { return l.call(ctx, low, n, least) })
	if err != nil {
		return 0, 0, fmt.Errorf("ask Redis for rows: %w", err)
	}
	l.low.Store(int64(a.low))
	return a.granted, a.wait, nil
}

// call runs the script once.
func (l *Limit) call(ctx context.Context, low bool, n, least int) (answer, error) {
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	a, err := l.run(limited, low, n, least)
	if err != nil && ctx.Err() != nil {
		return answer{}, errEnded
	}
	if l.cfg.Called != nil {
		l.cfg.Called(time.Since(began), err == nil)
	}
	if err != nil {
		code := codeOf(err)
		l.failure.Store(&code)
	}
	return a, err
}

func (l *Limit) run(ctx context.Context, low bool, n, least int) (answer, error) {
	class := 0
	if low {
		class = 1
	}
	got, err := take.Run(ctx, l.client, l.keys, append([]any{n, least, class}, l.fixed...)...).Int64Slice()
	if err != nil {
		return answer{}, err
	}
	if len(got) != 4 || got[0] < 0 || got[0] > int64(n) || got[1] < 0 {
		return answer{}, errors.New("the script answered what it cannot answer")
	}
	return answer{int(got[0]), time.Duration(got[1]) * time.Millisecond, int(got[2]), got[3]}, nil
}

// Rates returns the limits of all processes that were in force at the last call.
func (l *Limit) Rates() limit.Rates {
	return limit.Rates{All: float64(l.cfg.Plan.All), Low: float64(l.low.Load()), Burst: l.cfg.Plan.Burst}
}

// States of the breaker.
const (
	Closed   = "closed"    // calls go through
	HalfOpen = "half_open" // some go through, for a trial
	Open     = "open"      // none goes through
)

var states = map[gobreaker.State]string{gobreaker.StateClosed: Closed, gobreaker.StateHalfOpen: HalfOpen, gobreaker.StateOpen: Open}

// State returns the state of the breaker.
func (l *Limit) State() string { return states[l.breaker.State()] }

// changed tells when Redis was lost and found. Trials that fail meanwhile are not told.
func (l *Limit) changed(_ string, from, to gobreaker.State) {
	switch {
	case from == gobreaker.StateClosed:
		code := ""
		if last := l.failure.Load(); last != nil {
			code = *last
		}
		l.log.Warn().Str("code", code).
			Str("hint", "the default and bulk lanes, replays and restores wait until Redis answers; run docket check").
			Msg("limits away")
	case to == gobreaker.StateClosed:
		l.log.Info().Msg("limits back")
	}
}

// Close ends the trials and all connections.
func (l *Limit) Close() {
	l.end()
	<-l.ended
	_ = l.client.Close() // nothing is left to be said to the server
}
