package archive

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/archive"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
)

// held is a table whose day others hold for a minute.
type held struct{ archive.Table }

var errHeld = errors.New("held")

func (held) Open(context.Context, archive.Day) (archive.OpenDay, error) {
	time.Sleep(time.Minute)
	return nil, errHeld
}

type letters struct{ archive.LettersTable }

// away is a limit that nobody can ask.
type away struct{ closed int }

func (*away) Take(context.Context, int) int { return 0 }
func (*away) Waiting() string               { return "waiting for Redis (limits_away)" }
func (a *away) Close()                      { a.closed++ }

func TestRestore_SaysWhatItsLimitWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seen, limit := &screen{}, &away{}
		sys := &frame.System{
			Days: held{}, Letters: letters{},
			Shelf:        func(string) (archive.Shelf, error) { return archive.Dir(t.TempDir()), nil },
			RestoreLimit: func() (frame.RestoreLimit, error) { return limit, nil },
		}
		call := frame.New(cli.Env{Stdout: seen, Stderr: seen}, frame.Options{Now: time.Now})
		call.Sys = sys
		r := &restore{base: base{Call: call}}
		if err := r.restored(t.Context(), archive.Day{}, "mara"); !errors.Is(err, errHeld) {
			t.Fatal(err)
		}
		if text := strings.Join(seen.lines(), "\n"); !strings.Contains(text, "; waiting for Redis (limits_away) (30s)") || limit.closed != 1 {
			t.Errorf("closed %d times, said %s", limit.closed, text)
		}
	})
}
