package tree

import (
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/programs/cli"
	"docket/internal/testkit/readertest"
)

// fullDisk takes some bytes, and no more.
type fullDisk struct {
	to   io.Writer
	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	n, err := d.to.Write(p[:min(d.room, len(p))])
	if d.room -= n; err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

// An answer that does not fit on the disk is not an answer: the command fails, and says why.
func TestOutput_FullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"logs", "logs --lines", "logs --json", "logs --full", "logs -o csv", "logs -o id", "logs -o yaml", "logs -o json", "why " + decisionID, "why " + decisionID + " --json", "stats --since 30m", "state alice", "flips", "diff " + decisionID + " " + decisionID,
		"dlq list", "dlq list --json", "dlq groups", "dlq show a0000000", "dlq show a0000000 --raw", "dlq audit --act all", "jobs list", "report --no-horizon", "classify 23514", "classify 23514 --json", "version", "settings", "consume version",
	} {
		w := &world{book: jobbed(), store: decisions(5), states: statesKept()}
		want := w.call(strings.Fields(args)...)
		w.room = new(int)
		if *w.room = 10; len(want.out) <= *w.room || want.code != cli.Done {
			t.Errorf("%s: exit %d, %q", args, want.code, want.out)
		}
		if r := w.call(strings.Fields(args)...); r.code != cli.Failed || r.out != want.out[:10] || strings.Count(r.err, "the answer is not complete, as standard output could not be written: no space left on device\n") != 1 {
			t.Errorf("%s: exit %d, %q\n%s", args, r.code, r.out, r.err)
		}
	}
}

// A file that decisions are followed into has no gap without an error.
func TestFollow_FullDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{store: decisions(0), room: new(int), signals: make(chan os.Signal, 1)}
		*w.room = 100
		done := make(chan result, 1)
		go func() { done <- w.call("logs", "-f", "--lines") }()
		time.Sleep(2 * time.Second)
		w.store.Add(readertest.Decisions(1, now)...)
		time.Sleep(2 * time.Second)
		select {
		case r := <-done:
			if r.code != cli.Failed || len(r.out) != 100 || !strings.Contains(r.err, "no space left on device") {
				t.Errorf("exit %d, %q\n%s", r.code, r.out, r.err)
			}
		default:
			t.Error("it follows although nothing is written")
			w.signals <- syscall.SIGTERM
			<-done
		}
	})
}
