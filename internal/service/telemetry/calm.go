package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Of one message no more than burst lines are written in a period: an outage or a flood of bad records does not become a
// flood of lines. The metrics count them all.
const (
	burst  = 10
	period = 10 * time.Second
	// mostMessages bounds the memory; messages are constant, and there are fewer.
	mostMessages = 1000
)

// Calm bounds the lines of a program: of each message at level warn and above so many in a period, and of holds so many of
// each event. The next line of that message says how many were left out before it, and so does the next line at info, for
// all messages: start, stop and assignment have the last word. Lines at info and below are never left out.
func Calm(log zerolog.Logger) zerolog.Logger { return calm(log, time.Now) }

func calm(log zerolog.Logger, now func() time.Time) zerolog.Logger {
	return log.Hook(&limit{now: now, said: map[string]*said{}})
}

// limit leaves lines out.
type limit struct {
	now func() time.Time

	mu   sync.Mutex
	said map[string]*said // by message, and kind where it has one
}

// said is what became of one message since its period began.
type said struct {
	since   time.Time
	lines   int
	leftOut int // since the last line
}

type kindKey struct{}

// apart counts lines of one message by their kind. So a storm of earlier lines does not hide the fault that an operator
// has to repair now.
func apart(e *zerolog.Event, kind string) *zerolog.Event {
	return e.Ctx(context.WithValue(context.Background(), kindKey{}, kind))
}

// Run is called with each line before it is written.
func (l *limit) Run(e *zerolog.Event, level zerolog.Level, message string) {
	if kind, ok := e.GetCtx().Value(kindKey{}).(string); ok {
		message += "\x00" + kind
	}
	leftOut, write := l.admit(level, message)
	if !write {
		e.Discard()
		return
	}
	if leftOut > 0 {
		e.Int(KeyLeftOut, leftOut)
	}
}

func (l *limit) admit(level zerolog.Level, message string) (leftOut int, write bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case level < zerolog.InfoLevel:
		return 0, true
	case level == zerolog.InfoLevel:
		for _, s := range l.said {
			leftOut += s.leftOut
			s.leftOut = 0
		}
		return leftOut, true
	}
	now := l.now()
	s := l.said[message]
	if s == nil {
		if len(l.said) >= mostMessages {
			clear(l.said)
		}
		s = &said{since: now}
		l.said[message] = s
	}
	if now.Sub(s.since) >= period {
		s.since, s.lines = now, 0
	}
	if s.lines >= burst {
		s.leftOut++
		return 0, false
	}
	s.lines++
	leftOut, s.leftOut = s.leftOut, 0
	return leftOut, true
}
