package archive

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/archive"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// screen is what a person sees.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Split(strings.TrimSuffix(s.text.String(), "\n"), "\n")
}

// A wait is not silence: there is a line every 30 s, and on a terminal every 5 s.
func TestPulse_SaysWhereARestoreIs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		terminal term.Terminal
		every    time.Duration
	}{"a file": {term.Terminal{}, 30 * time.Second}, "a terminal": {term.Terminal{Err: true, Width: 80}, 5 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				seen := &screen{}
				b := &base{Call: frame.Call{Screen: &term.Screen{Out: seen, Err: seen, Terminal: c.terminal, Clock: time.Now}}}
				p := b.pulse("2026-08-01", "waiting for the day")
				var reason atomic.Value
				reason.Store("")
				p.waiting = func() string { return reason.Load().(string) }
				p.beat()
				pass := func(want string) {
					t.Helper()
					time.Sleep(c.every)
					synctest.Wait()
					if all := seen.lines(); !strings.Contains(all[len(all)-1], want) {
						t.Errorf("%q, want %q", all[len(all)-1], want)
					}
				}
				time.Sleep(time.Millisecond)
				pass("2026-08-01: waiting for the day (")
				p.reach(archive.StepTaken, nil)
				p.reach(archive.StepVerified, nil)
				pass("waits for a lock on decision_logs")
				p.reach(archive.StepOpened, nil)
				reason.Store("waiting for Redis (limits_away)")
				pass("2026-08-01: storing the first batch of rows; waiting for Redis (limits_away) (")
				reason.Store("")
				p.reach(archive.StepReading, nil)
				p.reach(archive.StepReading, func(archive.Step) { b.Tell("step reading\n") })
				pass("storing rows, 2 batches so far (")
				reason.Store("waiting for the limit")
				pass("storing rows, 2 batches so far; waiting for the limit (")
				reason.Store("")
				p.reach(archive.StepLoaded, nil)
				pass("counting the rows (")
				p.end()
				if n := len(seen.lines()); n != 7 {
					t.Errorf("%d lines", n)
				}
				time.Sleep(time.Hour)
				if n := len(seen.lines()); n != 7 {
					t.Errorf("%d lines after the end", n)
				}
			})
		})
	}
}
