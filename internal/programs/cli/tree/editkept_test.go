package tree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// TestEdit_StoppedWhileTheEditorIsOpen: many editors save what they have and end well when the terminal goes away. Nobody has
// agreed to that text, also with --yes. Ctrl-C is for the editor alone.
func TestEdit_StoppedWhileTheEditorIsOpen(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range []struct {
		signal  syscall.Signal
		changes bool
	}{{syscall.SIGHUP, false}, {syscall.SIGTERM, false}, {syscall.SIGINT, true}} {
		w := &world{book: newBook(deadLetters()...), terminal: person(80), signals: make(chan os.Signal)}
		w.edit = func(_ context.Context, argv []string) error {
			w.signals <- c.signal
			return os.WriteFile(argv[len(argv)-1], []byte(`{"decision_id":"half","timestamp":"2026-11-21T10:00:00Z"}`), 0o600)
		}
		r := w.call(append(editArgs[:len(editArgs):len(editArgs)], "--yes", "--no-retry")...)
		if changed := w.book.changes() != ""; changed != c.changes || changed != (r.code == cli.Done) {
			t.Errorf("%v: exit %d, did %q\n%s%s", c.signal, r.code, w.book.changes(), r.out, r.err)
		}
		if !c.changes && (!strings.Contains(r.err, "nothing was changed: ") || !strings.Contains(r.err, "your text is saved in ")) {
			t.Errorf("%v: %s", c.signal, r.err)
		}
	}
}

// TestEdit_OvertakenInTheEnd: somebody saves another payload between the last look and the edit. In the audit, the difference
// would be one of a payload that was not there.
func TestEdit_OvertakenInTheEnd(t *testing.T) {
	t.Parallel()
	const typed = `{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z"}`
	for _, desk := range []bool{false, true} {
		w := &world{book: newBook(deadLetters()...), stdin: typed}
		w.book.overtaken = []byte(`{"saved":"by oleg"}`)
		args := append(editArgs[:len(editArgs):len(editArgs)], "--file", "-", "--yes", "--no-retry")
		if desk {
			w.overDesk(t, "operator")
			args = []string{"dlq", "edit", deadLetters()[0].ID, "--reason", "r", "--file", "-", "--yes", "--no-retry"}
		}
		if r := w.call(args...); r.code != cli.Failed || !strings.Contains(r.err, "somebody edited the payload of dead letter a00000000000 meanwhile") || w.book.changes() != "" {
			t.Errorf("desk %v: exit %d, did %q\n%s%s", desk, r.code, w.book.changes(), r.out, r.err)
		}
	}
}

// TestEdit_KeepsTextThatCannotBeCopied: where no other file can be made, the editor's own is what the author has.
func TestEdit_KeepsTextThatCannotBeCopied(t *testing.T) {
	const typed = `{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z"}`
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	w := &world{book: newBook(deadLetters()...), terminal: person(80), stdin: "y\n"}
	w.edit = func(_ context.Context, argv []string) error {
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		w.book.fails = errors.New("away")
		return errors.Join(os.WriteFile(argv[len(argv)-1], []byte(typed), 0o600), os.Setenv("TMPDIR", filepath.Join(dir, "missing"))) //nolint:usetesting // t.Setenv above sets it back
	}
	r := w.call(editArgs...)
	if r.code != cli.Failed || !strings.Contains(r.err, "cannot copy your text") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	keeps(t, r.err, typed)
}
