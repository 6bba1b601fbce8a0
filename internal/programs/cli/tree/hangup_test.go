package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"docket/internal/programs/cli"
)

// TestEdit_HangupRemovesPayload: a dropped connection ends the editor and signals the program.
func TestEdit_HangupRemovesPayload(t *testing.T) {
	t.Parallel()
	var path string
	w := &world{book: newBook(deadLetters()...), terminal: person(80), signals: make(chan os.Signal, 2)}
	w.edit = func(_ context.Context, argv []string) error {
		path = argv[len(argv)-1]
		w.signals <- syscall.SIGHUP
		return errors.New("signal: hangup")
	}
	if r := w.call(editArgs...); r.code != cli.Failed || w.book.changes() != "" {
		t.Errorf("exit %d, did %q\n%s%s", r.code, w.book.changes(), r.out, r.err)
	}
	if _, err := os.Stat(filepath.Dir(path)); path == "" || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still on the disk: %v", err)
	}
}
