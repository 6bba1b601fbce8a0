package tree

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"docket/internal/programs/cli/term"
)

var onTerminal = term.Terminal{In: true, Out: true, Err: true, Width: 80, Height: 5}

// Ctrl-C is for the pager; another signal ends it.
func TestPager_Signals(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(3), terminal: onTerminal, signals: make(chan os.Signal)}
	shown := 0
	w.page = func(ctx context.Context, _ []string, _ []byte) error {
		shown++
		send := func(s os.Signal) { // nobody reads after the end
			select {
			case w.signals <- s:
			case <-ctx.Done():
			}
		}
		send(os.Interrupt)
		send(os.Interrupt)
		if ctx.Err() != nil {
			t.Error("Ctrl-C ends the pager")
		}
		send(syscall.SIGTERM)
		<-ctx.Done()
		return errors.New("killed")
	}
	if r := w.call("why", decisionID); r.code != 0 || r.out != "" || shown != 1 {
		t.Errorf("exit %d, shown %d times, %q", r.code, shown, r.out)
	}
}

func TestPager_PrintsWithout(t *testing.T) {
	t.Parallel()
	w := &world{store: decisions(3), terminal: onTerminal, page: func(context.Context, []string, []byte) error { return errors.New("no less") }}
	if r := w.call("why", decisionID); r.code != 0 || !strings.Contains(r.out, decisionID) {
		t.Errorf("exit %d, %q", r.code, r.out)
	}
}

// A real pager is asked to end, and so can give the terminal back.
func TestPager_EndsByTERM(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	fifo := t.TempDir() + "/ready"
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	gone := t.TempDir() + "/gone"
	script := `trap 'echo bye >` + gone + `; exit 3' TERM; echo >` + fifo + `; while :; do sleep 0.02; done`
	p := pager{environ: os.Environ(), text: &bytes.Buffer{}}
	ended := make(chan error, 1)
	go func() { ended <- p.process(ctx, []string{"sh", "-c", script}, []byte("text\n")) }()
	if _, err := os.ReadFile(fifo); err != nil { // it blocks until the trap is set
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(gone); err != nil || string(text) != "bye\n" {
		t.Errorf("%q, %v", text, err)
	}
}
