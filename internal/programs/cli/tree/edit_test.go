package tree

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"docket/internal/desk/ledger"
	"docket/internal/desk/worker"
	"docket/internal/programs/cli"
)

// hand is an editor that changes what it is given, and remembers where it lay.
type hand struct {
	turns []func(text string) string
	seen  []string
	paths []string
	modes []os.FileMode
}

func (h *hand) edit(_ context.Context, argv []string) error {
	path := argv[len(argv)-1]
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for _, p := range []string{path, filepath.Dir(path)} {
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		h.modes = append(h.modes, info.Mode().Perm())
	}
	h.paths, h.seen = append(h.paths, path), append(h.seen, string(content))
	turn := h.turns[0]
	h.turns = h.turns[1:]
	return os.WriteFile(path, []byte(turn(string(content))), 0o600)
}

func replaced(old, with string) func(string) string {
	return func(text string) string { return strings.ReplaceAll(text, old, with) }
}

var editArgs = []string{"dlq", "edit", deadLetters()[0].ID[:8], "--operator", "mara", "--reason", "path was wrong"}

// TestEdit_KeepsFormAndOriginal: compact JSON stays compact, and what is retried is what was edited.
func TestEdit_KeepsFormAndOriginal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hand{turns: []func(string) string{replaced("authz/allow", "authz/deny")}}
		w := &world{book: newBook(deadLetters()...), terminal: person(80), stdin: "y\n", edit: h.edit}
		w.book.ends = always(ledger.SendingStored, "")
		r := w.call(editArgs...)
		if r.code != 0 || !strings.Contains(r.out, `-  "path": "authz/allow",`) || !strings.Contains(r.out, `+  "path": "authz/deny",`) || !strings.Contains(r.out, "RESOLVED") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
		before := deadLetters()[0].Value
		if e := w.book.entries[0]; !bytes.Equal(e.Value, bytes.ReplaceAll(before, []byte("authz/allow"), []byte("authz/deny"))) {
			t.Errorf("%s", e.Value)
		}
		kept := w.book.audits[deadLetters()[0].ID][1]
		if !bytes.Equal(kept.Original, before) || !strings.Contains(kept.Diff, "+  \"path\": \"authz/deny\"") || kept.By != "mara" {
			t.Errorf("%+v", kept)
		}
		if _, err := os.Stat(filepath.Dir(h.paths[0])); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it is still on the disk: %v", err)
		}
		if h.modes[0] != 0o600 || h.modes[1] != 0o700 || !strings.HasPrefix(h.seen[0], "{\n  \"decision_id\"") {
			t.Errorf("%v %s", h.modes, h.seen[0])
		}
	})
}

func TestEdit_NothingToDo(t *testing.T) {
	t.Parallel()
	wrong := replaced(`"d-0000"`, "17")
	for name, c := range map[string]struct {
		turns []func(string) string
		stdin string
		code  int
		says  string
	}{
		"unchanged":             {[]func(string) string{replaced("x", "x")}, "", 0, "unchanged: nothing was changed"},
		"empty":                 {[]func(string) string{func(string) string { return "\n" }}, "", 0, "empty: nothing was changed"},
		"not agreed to":         {[]func(string) string{replaced("allow", "deny")}, "n\n", 1, "nothing was changed"},
		"would die, given up":   {[]func(string) string{wrong}, "n\n", 1, "this payload would fail again: "},
		"would die, and undone": {[]func(string) string{wrong, replaced("17", `"d-0000"`)}, "y\n", 0, "unchanged: nothing was changed"},
		"no JSON":               {[]func(string) string{replaced("{", "[")}, "n\n", 1, "(line "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hand{turns: c.turns}
			w := &world{book: newBook(deadLetters()...), terminal: person(80), stdin: c.stdin, edit: h.edit}
			r := w.call(editArgs...)
			if r.code != c.code || !strings.Contains(r.err, c.says) || w.book.changes() != "" || len(h.turns) > 0 {
				t.Errorf("exit %d, did %q\n%s%s", r.code, w.book.changes(), r.out, r.err)
			}
			for _, p := range h.paths {
				if _, err := os.Stat(filepath.Dir(p)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("it is still on the disk: %v", err)
				}
			}
		})
	}
}

// keeps checks that the typed text is in a file that only its author can read, and removes it.
func keeps(t *testing.T, told, want string) {
	t.Helper()
	_, rest, _ := strings.Cut(told, "your text is saved in ")
	path, _, found := strings.Cut(rest, ". It may hold")
	if !found {
		t.Errorf("it does not say where what was typed is:\n%s", told)
		return
	}
	info, err := os.Stat(path)
	content, readErr := os.ReadFile(path)
	if err != nil || readErr != nil || info.Mode().Perm() != 0o600 || string(content) != want || !strings.Contains(told, "docket dlq edit a0000000 --file "+path) {
		t.Errorf("%v, %v, %v, %q\n%s", err, readErr, info, content, told)
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}

// TestEdit_KeepsTypedText: a ledger that is away at the end, a dry run; and not where it was taken or
// thrown away by its author.
func TestEdit_KeepsTypedText(t *testing.T) {
	t.Parallel()
	const typed = `{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z"}`
	write := func(w *world, fails error) func(context.Context, []string) error {
		return func(_ context.Context, argv []string) error {
			w.book.mu.Lock()
			defer w.book.mu.Unlock()
			w.book.fails = fails
			return os.WriteFile(argv[len(argv)-1], []byte(typed), 0o600)
		}
	}
	w := &world{book: newBook(deadLetters()...), terminal: person(80), stdin: "y\n"}
	w.edit = write(w, errors.New("away"))
	if r := w.call(editArgs...); r.code != 1 || !strings.Contains(r.err, "nothing was changed") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	} else {
		keeps(t, r.err, typed)
	}
	w = &world{book: newBook(deadLetters()...), terminal: person(80), trial: &trial{result: worker.TrialResult{Total: 1, Would: 1}}}
	w.edit = write(w, nil)
	if r := w.call("dlq", "edit", deadLetters()[0].ID[:8], "--dry-run"); r.code != 0 {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	} else {
		keeps(t, r.err, typed)
	}
	for _, answer := range []string{"n\n", "y\n"} {
		w = &world{book: newBook(deadLetters()...), terminal: person(80), stdin: answer}
		w.edit = write(w, nil)
		if r := w.call(append(editArgs, "--no-retry")...); strings.Contains(r.err, "is kept") {
			t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
		}
	}
}

func TestEdit_MeetsAnother(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...), terminal: person(80), stdin: "y\n"}
	w.edit = func(_ context.Context, argv []string) error {
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		w.book.entries[0].Value, w.book.entries[0].ChangedBy = []byte(`{}`), "oleg"
		return os.WriteFile(argv[len(argv)-1], []byte(`{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z"}`), 0o600)
	}
	if r := w.call(editArgs...); r.code != 1 || !strings.Contains(r.err, "nothing was changed: oleg edited the payload") || w.book.changes() != "" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	} else {
		keeps(t, r.err, `{"decision_id":"d","timestamp":"2026-11-21T10:00:00Z"}`)
	}
	moved := newBook(deadLetters()...)
	if r := (&world{book: moved, terminal: person(80)}).call("dlq", "edit", deadLetters()[6].ID, "--operator", "mara", "--reason", "x"); r.code != 1 || !strings.Contains(r.err, "is PROCESSING since") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	w = &world{terminal: person(80), edit: func(context.Context, []string) error { return errors.New("exit status 1") }, environ: []string{"VISUAL=ed\x1b --wait"}}
	if r := w.call(editArgs...); r.code != 1 || !strings.Contains(r.err, "set VISUAL or EDITOR, or give --file") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	} else {
		quiet(t, r.err)
	}
}

// TestEdit_ByFile is how scripts do it; gzip is unpacked, the new payload is plain.
func TestEdit_ByFile(t *testing.T) {
	t.Parallel()
	all := deadLetters()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(all[0].Value)
	_ = z.Close()
	plainValue := all[0].Value
	all[0].Value = zipped.Bytes()
	script := append(editArgs[:len(editArgs):len(editArgs)], "--file", "-", "--yes")
	mended := strings.Replace(string(plainValue), "allow", "deny", 1)

	w := &world{book: newBook(all...), stdin: mended + "\n"}
	r := w.call(append(script, "--no-retry", "--json")...)
	if r.code != 0 || string(w.book.entries[0].Value) != mended || w.book.entries[0].State != ledger.Pending || !json.Valid([]byte(r.out)) {
		t.Errorf("exit %d, %s\n%s%s", r.code, w.book.entries[0].Value, r.out, r.err)
	}
	w = &world{book: newBook(all...), stdin: string(plainValue)}
	if r := w.call(script...); r.code != 0 || !strings.Contains(r.err, "unchanged") || w.book.changes() != "" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	w = &world{book: newBook(all...), stdin: "{}"}
	if r := w.call(script...); r.code != 1 || !strings.Contains(r.err, "this payload would fail again: ") || w.book.changes() != "" {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	w = &world{book: newBook(all...), stdin: mended, trial: &trial{result: worker.TrialResult{Total: 1, Would: 1}}}
	if r := w.call("dlq", "edit", all[0].ID, "--file", "-", "--dry-run"); r.code != 0 || w.book.changes() != "" || len(w.trial.asked) != 1 || w.trial.asked[0] != mended {
		t.Errorf("exit %d, %v\n%s%s", r.code, w.trial.asked, r.out, r.err)
	}
	if r := (&world{book: newBook(all...)}).call(append(editArgs[:len(editArgs):len(editArgs)], "--yes", "--file", filepath.Join(t.TempDir(), "none"))...); r.code != cli.Failed || !strings.Contains(r.err, "read the new payload") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// TestEdit_LimitOfTheDesk: the setting of the caller does not say what a desk takes.
func TestEdit_LimitOfTheDesk(t *testing.T) {
	t.Parallel()
	const small, large = "DOCKET_MAX_RECORD_BYTES=1KiB", "DOCKET_MAX_RECORD_BYTES=1MiB"
	for _, c := range []struct {
		desk, caller string
		code         int
	}{{large, small, 0}, {small, large, 1}} {
		all := deadLetters()
		text := strings.Replace(string(all[0].Value), "{", `{"note":"`+strings.Repeat("x", 2<<10)+`",`, 1)
		w := &world{book: newBook(all...), environ: []string{c.desk}, stdin: text}
		w.overDesk(t, "operator")
		w.environ = []string{c.caller}
		r := w.call("dlq", "edit", all[0].ID, "--reason", "r", "--file", "-", "--yes", "--no-retry")
		if edited := string(w.book.entries[0].Value) == text; r.code != c.code || edited != (c.code == 0) || strings.Contains(r.err, "this payload would fail again") == edited {
			t.Errorf("desk %s, caller %s: exit %d\n%s%s", c.desk, c.caller, r.code, r.out, r.err)
		}
	}
}

// TestEditor_OwnProcess runs a real one, with arguments in its variable.
func TestEditor_OwnProcess(t *testing.T) {
	t.Parallel()
	w := &world{
		book: newBook(deadLetters()...), terminal: person(80), stdin: "y\n",
		environ: []string{"VISUAL=sed -i s/allow/deny/", "EDITOR=false"}, signals: make(chan os.Signal, 1),
	}
	w.signals <- os.Interrupt // of a Ctrl-C in the editor
	r := w.call(append(editArgs[:len(editArgs):len(editArgs)], "--no-retry")...)
	_ = r
	if got := string(w.book.entries[0].Value); r.code != 0 || !strings.Contains(got, "authz/deny") {
		t.Errorf("exit %d, %s\n%s%s", r.code, got, r.out, r.err)
	}
}

// In an image without a directory for temporary files, an edit says what to do.
func TestEdit_NoTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	w := &world{book: newBook(deadLetters()...), terminal: person(80), edit: func(context.Context, []string) error { return nil }}
	if r := w.call(editArgs...); r.code != cli.Failed || !strings.Contains(r.err, "make a temporary directory: ") || !strings.Contains(r.err, "set TMPDIR to a directory that only you can read, or give --file") {
		t.Errorf("exit %d\n%s", r.code, r.err)
	}
}
