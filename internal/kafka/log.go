package kafka

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kzerolog"
)

// At most logBurst lines of one message are written in a logPeriod. A client logs every failed attempt, about one a
// second while the brokers are away.
const (
	logBurst  = 5
	logPeriod = 10 * time.Minute
	// logMessages bounds the memory; a client has far fewer messages.
	logMessages = 1000
)

// clientLog is the logger of the clients of one role, one after another.
type clientLog struct {
	*kzerolog.Logger

	mu   sync.Mutex
	said map[string]*messageCount
}

// messageCount counts a message since a period began.
type messageCount struct {
	since  time.Time
	lines  int
	silent int // left out since the last line
}

// quiet returns the logger for clients: warnings and worse, unless the program logs less, and only a few lines of the
// same message.
func (c Config) quiet(logger zerolog.Logger, room string) *clientLog {
	l := logger.With().Str("client", room).Str("instance", c.InstanceLabel).Logger()
	if l.GetLevel() < zerolog.WarnLevel {
		l = l.Level(zerolog.WarnLevel)
	}
	return &clientLog{Logger: kzerolog.New(&l), said: make(map[string]*messageCount)}
}

// Log writes a line unless there were enough of that message. The next line counts those that were left out.
func (l *clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	left, ok := l.admit(msg, time.Now())
	if !ok {
		return
	}
	if left > 0 {
		keyvals = append(keyvals[:len(keyvals):len(keyvals)], "left_out", left)
	}
	l.Logger.Log(level, msg, own(keyvals)...)
}

// own removes texts of brokers from errors. Only Kafka's name of the error is logged.
func own(keyvals []any) []any {
	copied := false
	for i, v := range keyvals {
		err, ok := v.(error)
		code := (*kerr.Error)(nil)
		if !ok || !errors.As(err, &code) {
			continue
		}
		if !copied {
			keyvals, copied = slices.Clone(keyvals), true
		}
		keyvals[i] = code.Message
	}
	return keyvals
}

func (l *clientLog) admit(msg string, now time.Time) (left int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.said[msg]
	if s == nil {
		if len(l.said) >= logMessages {
			clear(l.said)
		}
		s = &messageCount{since: now}
		l.said[msg] = s
	}
	if now.Sub(s.since) >= logPeriod {
		s.since, s.lines = now, 0
	}
	if s.lines >= logBurst {
		s.silent++
		return 0, false
	}
	left, s.silent = s.silent, 0
	s.lines++
	return left, true
}
