package tracing

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter sends spans on, and says once a minute at most that it cannot.
type exporter struct {
	sdktrace.SpanExporter
	log  zerolog.Logger
	stop context.Context // done: whatever is under way is given up

	mu      sync.Mutex
	next    time.Time // when a line may be written again
	lost    int       // spans that were lost since the last line
	failing bool
}

const complainEvery = time.Minute

// ExportSpans sends spans. Its error has been told here, so there is none to tell.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stop, cancel)()
	e.note(len(spans), e.SpanExporter.ExportSpans(ctx, spans))
	return nil
}

func (e *exporter) note(spans int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if err == nil {
		if e.failing {
			e.failing = false
			e.log.Warn().Int("spans_lost", e.lost).Msg("trace export recovered")
			e.lost = 0
		}
		return
	}
	e.lost += spans
	if e.failing && now.Before(e.next) {
		return
	}
	e.failing, e.next = true, now.Add(complainEvery)
	e.log.Warn().Str("reason", reason(err)).Int("spans_lost", e.lost).
		Str("hint", "check the OpenTelemetry collector; records are not affected").Msg("traces not exported")
	e.lost = 0
}

// reason is in words of our own: the error's can quote what a collector says, and where it is.
func reason(err error) string {
	var n net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &n) && n.Timeout():
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "stopped"
	case n != nil:
		return "unreachable"
	}
	return "refused"
}
