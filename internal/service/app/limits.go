package app

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/consumer/limit"
	"docket/internal/consumer/limit/gate"
	"docket/internal/consumer/limit/local"
	"docket/internal/redis"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// Limits bound the rows that a program writes in a second.
type Limits struct {
	gate   *gate.Gate
	shared *redis.Limit // nil without Redis
	alone  *local.Limit // without Redis: the limit
	told   *telemetry.Limits
}

// openLimits makes the limits of a program: a consumer with this share of the partitions, or a replayer. It dials
// nobody. nil: the settings have no limit.
func openLimits(program config.Program, s config.Settings, share func() limit.Share, log zerolog.Logger, reg prometheus.Registerer) (*Limits, error) {
	if !s.Limited() {
		return nil, nil
	}
	plan := s.Limits()
	if program == config.Replayer {
		return newLimits(s, func(now time.Time) limit.Rates { return plan.Tenth(now, share()) }, nil, log, reg)
	}
	return newLimits(s,
		func(now time.Time) limit.Rates { return plan.Consumer(now, share()) },
		func(now time.Time) limit.Rates { return plan.CutOff(now, share()) }, log, reg)
}

// OpenRestoreLimits makes the limits of a restore, which counts as low: it waits while Redis is away, and takes a tenth
// of the low limit without Redis. nil: the settings have no limit. After it there has to be a Close.
func OpenRestoreLimits(s config.Settings, log zerolog.Logger) (*Limits, error) {
	if !s.Limited() {
		return nil, nil
	}
	plan := s.Limits()
	return newLimits(s, func(now time.Time) limit.Rates { return plan.Tenth(now, limit.Share{Mine: 1, All: 1}) }, nil, log, nil)
}

// newLimits joins the parts. rates are those of the process without Redis, and cutOff those of the urgent lane while
// Redis is away; nil: the program has no urgent lane. Without a registerer nothing is counted.
func newLimits(s config.Settings, rates, cutOff func(now time.Time) limit.Rates, log zerolog.Logger, reg prometheus.Registerer) (*Limits, error) {
	plan := s.Limits()
	l := &Limits{}
	var breaker []string
	if s.RedisURL != "" {
		breaker = []string{redis.Closed, redis.HalfOpen, redis.Open}
	}
	if reg != nil {
		l.told = telemetry.NewLimits(l.state, breaker, reg)
	}
	cfg := gate.Config{Burst: plan.Burst}
	if l.told != nil {
		cfg.Observer = l.told
	}
	if s.RedisURL == "" {
		l.alone = local.New(rates)
		cfg.Limit = l.alone
		l.gate = gate.New(cfg)
		return l, nil
	}
	of := redis.LimitConfig{Group: s.KafkaGroup, Plan: plan}
	if l.told != nil {
		of.Called = l.told.Called
	}
	shared, err := redis.NewLimit(Redis(s), of, log)
	if err != nil {
		return nil, err
	}
	l.shared, cfg.Limit = shared, shared
	if cutOff != nil {
		l.alone = local.New(cutOff)
		cfg.Alone = l.alone
	}
	l.gate = gate.New(cfg)
	return l, nil
}

// Redis says how programs reach Redis. The user and the password of a file are read again for each connection.
func Redis(s config.Settings) redis.Config {
	return redis.Config{URL: s.RedisURL.Reveal(), Fresh: func() (string, error) {
		url, err := s.Fresh("DOCKET_REDIS_URL", s.RedisURL)
		return url.Reveal(), err
	}}
}

// Take returns how many of n rows a low write may have now, at least 1, or 0 if ctx ended first.
func (l *Limits) Take(ctx context.Context, n int) (granted int) {
	return l.gate.Take(ctx, ctx, true, n, func() {}, func() {})
}

// Close ends the connections to Redis.
func (l *Limits) Close() {
	if l != nil && l.shared != nil {
		l.shared.Close()
	}
}

// state is the state for metrics.
func (l *Limits) state() (now telemetry.LimitState) {
	if l.gate == nil {
		return now // not assembled yet
	}
	var rates limit.Rates
	if l.shared != nil {
		rates, now.Breaker = l.shared.Rates(), l.shared.State()
	} else {
		rates = l.alone.Rates()
	}
	waits := l.gate.Waits()
	now.All, now.Low, now.WaitingLow, now.WaitingUrgent = rates.All, rates.Low, waits.Low, waits.Urgent
	return now
}

// Reasons in /readyz that are no holds: the program is ready.
const (
	ReasonLimited    = "limited"     // each write waits for rows of the limit
	ReasonLimitsAway = "limits_away" // low lanes wait because Redis is away
)

// longWait is how long each write has to wait before /readyz tells of it. Single waits are the ordinary effect of a limit.
const longWait = 5 * time.Second

// reasons are those why writes wait.
func (l *Limits) reasons(now time.Time) []Reason {
	if l == nil {
		return nil
	}
	since := func(t time.Time) *time.Time { t = t.UTC(); return &t }
	switch waits := l.gate.Waits(); {
	case !waits.Away.IsZero():
		return []Reason{{Reason: ReasonLimitsAway, Since: since(waits.Away), Hint: "Redis is away: the default and bulk lanes, replays and restores wait for it; run docket check"}}
	case !waits.Since.IsZero() && now.Sub(waits.Since) > longWait:
		return []Reason{{Reason: ReasonLimited, Since: since(waits.Since), Hint: "writes wait for DOCKET_LIMIT_ROWS or DOCKET_LIMIT_LOW_ROWS; this is their purpose"}}
	}
	return nil
}

// Waiting says what low rows wait for now, empty for nothing. The reasons are those of /readyz.
func (l *Limits) Waiting() string {
	for _, r := range l.reasons(time.Now()) {
		switch r.Reason {
		case ReasonLimitsAway:
			return "waiting for Redis (" + ReasonLimitsAway + ")"
		case ReasonLimited:
			return "waiting for the limit"
		}
	}
	return ""
}

// share is the part of the partitions that this process has, over all its topics.
func (p *Program) share() limit.Share {
	return limit.Share{Mine: p.source.Assigned(), All: p.source.Partitions()}
}
