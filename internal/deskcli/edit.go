package deskcli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"docket/internal/cli"
	"docket/internal/decision"
	"docket/internal/ledger"
)

// editing are the flags of edit.
type editing struct {
	deciding
	file    string
	noRetry bool

	typed string // what the editor left that would be a new payload, or was to be one
	done  bool   // it is the payload now
}

func (s *session) edit() *cobra.Command {
	var d editing
	c := &cobra.Command{
		Use: "edit ID [flags]", Short: "Mend a dead letter's payload in your editor and retry the mended one", DisableFlagsInUseLine: true,
		Long: "Open the payload of a PENDING or FAILED dead letter in $VISUAL or $EDITOR, JSON indented, gzip unpacked. What is saved\n" +
			"is read as the consumer would read it, shown as a diff, and kept with the original in the audit. Saved unchanged or\n" +
			"empty, nothing is done. The file lies in a directory for you alone and is removed; what you wrote is kept, and you are\n" +
			"told where, after a dry run and where it could not be written to the ledger.",
		Example: "  docket dlq edit 3f9a0c1e77b2 --operator mara --reason 'path had a line break'\n" +
			"  jq -c '.path |= rtrimstr(\"\\n\")' value.json | docket dlq edit 3f9a0c1e77b2 --file - --yes --operator mara --reason 'path had a line break'",
		Args: oneID, ValidArgsFunction: s.completeIDs,
	}
	flags := c.Flags()
	flags.StringVar(&d.file, "file", "", "take the payload from a `file` and open no editor; - is standard input")
	flags.BoolVar(&d.noRetry, "no-retry", false, "keep it as it is, PENDING or FAILED, with the new payload")
	flags.BoolVar(&d.dryRun, "dry-run", false, "say what would become of the new payload; changes nothing and needs no operator")
	flags.BoolVar(&d.wait, "wait", false, "wait for the end of the retry also while no desk is running")
	flags.BoolVar(&d.detach, "detach", false, "do not wait for the end of the retry")
	flags.BoolVar(&d.yes, "yes", false, "ask nothing")
	flags.StringVar(&d.operator, "operator", "", "`name` of who decides this; without it DOCKET_OPERATOR")
	flags.StringVar(&d.reason, "reason", "", "`why`, for the audit; required")
	c.MarkFlagsMutuallyExclusive("wait", "detach")
	c.RunE = s.direct(func(args []string) error { return s.edited(args[0], &d) })
	return c
}

// phase does a part of a command until a signal. An editor runs between two of them: the Ctrl-C that it is given is its own.
func (s *session) phase(do func(ctx context.Context) error) error {
	ctx, end := cli.UntilSignal(s.env)
	defer end()
	return do(ctx)
}

func (s *session) edited(id string, d *editing) error {
	var by ledger.Actor
	if !d.dryRun {
		var err error
		if by, err = s.actor(&d.deciding, ""); err != nil {
			return err
		}
	}
	switch {
	case d.file == "" && !(s.asks() && s.o.Terminal.Out):
		return misuse("an editor needs a terminal; in a script give --file FILE")
	case !d.yes && !d.dryRun && (!s.asks() || d.file == "-"):
		return misuse("nobody is at a terminal to be asked: say --yes")
	}
	if err := longEnough(id); err != nil {
		return err
	}
	if err := s.open(); err != nil {
		return err
	}
	var e ledger.Entry
	err := s.phase(func(ctx context.Context) (err error) {
		e, err = s.entry(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	if e.State != ledger.Pending && e.State != ledger.Failed && !d.dryRun {
		return fmt.Errorf("nothing was changed: %w%s", &ledger.RefusedError{ID: e.ID, State: e.State, Act: ledger.Edited, By: plain(e.ChangedBy), At: e.ChangedAt}, meanwhile(e.State))
	}
	before, _, err := inflated(e.Value, int64(s.settings.MaxRecordBytes))
	if err != nil {
		before = nil // it can be replaced all the same
		s.tell("%v; what you write takes its place\n", err)
	}
	after, err := s.written(before, d)
	if err != nil || after == nil {
		return s.keeping(err, id, d)
	}
	return s.keeping(s.phase(func(ctx context.Context) error { return s.offer(ctx, e, before, *after, by, d) }), id, d)
}

// keeping keeps what a person typed where it came to nothing by no decision of theirs, or was only tried, and says where.
func (s *session) keeping(err error, id string, d *editing) error {
	var ended endError
	lost := err != nil && (!errors.As(err, &ended) || errors.Is(err, context.Canceled))
	if d.typed == "" || d.done || !lost && !d.dryRun {
		return err
	}
	path, problem := kept(d.typed)
	if problem != nil {
		s.tell("what you wrote could not be kept: %v\n", problem)
		return err
	}
	s.tell("what you wrote is kept in %s; remove it when it is done with, as it may hold personal data. Go on with it:\n  %s\n",
		path, join("docket dlq edit", plain(id), "--file", shell(path), s.operatorFlag(), "--reason '...'"))
	return err
}

// kept writes a payload to a file of this user's alone.
func kept(text string) (string, error) {
	f, err := os.CreateTemp("", "docket-edit-*.json") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// written is what a person, or a file, has in the place of a payload, and which reads as a decision log. nil: nothing is to be
// done.
func (s *session) written(before []byte, d *editing) (*string, error) {
	text := pretty(before)
	for shown := text; ; {
		next, err := s.read(shown, d)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.TrimSpace(next) == "":
			s.tell("the payload is empty: nothing was done\n")
			return nil, nil
		case strings.TrimRight(next, "\r\n") == strings.TrimRight(text, "\r\n"), bytes.Equal(value(before, next), before):
			s.tell("the payload is unchanged: nothing was done\n")
			return nil, nil
		}
		if d.file == "" {
			d.typed = next
		}
		complaint := s.complaint([]byte(next))
		if complaint == "" {
			return &next, nil
		}
		s.tell("it would be dead again: %s\n", complaint)
		again := false
		if d.file == "" {
			if err := s.phase(func(ctx context.Context) (err error) { again, err = s.yes(ctx, "Edit again?", true); return err }); err != nil {
				return nil, err
			}
		}
		if !again {
			s.tell("nothing was changed\n")
			return nil, endError(cli.Failed)
		}
		shown = next
	}
}

// read takes the new payload from where it is written.
func (s *session) read(text string, d *editing) (string, error) {
	var content []byte
	var err error
	switch d.file {
	case "":
		return s.inEditor(text)
	case "-":
		content, err = io.ReadAll(s.o.Stdin)
	default:
		content, err = os.ReadFile(d.file)
	}
	if err != nil {
		return "", fmt.Errorf("read the new payload: %w", err)
	}
	return string(content), nil
}

// complaint is what the decoder has against a payload; empty: nothing.
func (s *session) complaint(value []byte) string {
	record, refusal := decision.Decode(value, int64(s.settings.MaxRecordBytes))
	if refusal != nil {
		return refused(refusal, value)
	}
	for _, part := range record.Parts {
		if part.Err != nil {
			return refused(part.Err, part.Value)
		}
	}
	return ""
}

func refused(r *decision.Refusal, value []byte) string {
	text := r.Error()
	if r.Offset > 0 && r.Offset <= len(value) {
		text += fmt.Sprintf(" (line %d)", 1+bytes.Count(value[:r.Offset], []byte("\n")))
	}
	return plain(text)
}

// value is the text in the form that the payload had: compact where that was.
func value(before []byte, after string) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, before) == nil && bytes.Equal(compact.Bytes(), before) {
		compact.Reset()
		if isJSON([]byte(after)) && json.Compact(&compact, []byte(after)) == nil {
			return compact.Bytes()
		}
	}
	if !bytes.HasSuffix(before, []byte("\n")) {
		after = strings.TrimRight(after, "\r\n")
	}
	return []byte(after)
}

// offer shows what was changed and, where that is agreed to, has it.
func (s *session) offer(ctx context.Context, e ledger.Entry, before []byte, after string, by ledger.Actor, d *editing) error {
	changed := value(before, after)
	diff := udiff.Unified("before", "after", lined(pretty(before)), lined(pretty(changed)))
	if s.asJSON {
		s.tell("%s\n", plainLines(strings.TrimSuffix(diff, "\n")))
	} else {
		s.say("%s\n", s.diff(diff))
	}
	if d.dryRun {
		if s.sys.Trial == nil {
			return misuse("this build has no dry run")
		}
		result, err := s.sys.Trial.RunValue(ctx, changed)
		if err != nil {
			return fmt.Errorf("dry run: %w", err)
		}
		return s.tried(result)
	}
	if !d.yes {
		question := "Keep this and retry it?"
		if d.noRetry {
			question = "Keep this?"
		}
		if ok, err := s.yes(ctx, question, false); err != nil || !ok {
			s.tell("nothing was changed\n")
			return errors.Join(err, endError(cli.Failed))
		}
	}
	now, err := s.sys.Book.Show(ctx, e.ID)
	if err != nil {
		return fmt.Errorf("nothing was changed: dead letter %s: %w", s.id(e.ID), err)
	}
	if !bytes.Equal(now.Value, e.Value) || (now.Value == nil) != (e.Value == nil) {
		return fmt.Errorf("nothing was changed: %s changed the payload of %s in the meantime; look at it and begin again", plain(now.ChangedBy), s.id(e.ID))
	}
	lease := s.settings.DeskLease
	if d.noRetry {
		lease = 0
	}
	if err := s.sys.Book.Edit(ctx, e.ID, changed, diff, lease, by); err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	d.done = true
	if d.noRetry {
		return s.tellFates([]fate{{ID: e.ID, Result: "edited", State: string(now.State), ended: true}})
	}
	return s.follow(ctx, []fate{{ID: e.ID, Result: "retried", State: string(ledger.Processing)}}, d.wait, d.detach)
}

// lined ends a text with a line feed, so that a diff does not tell of the one that editors add.
func lined(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// inEditor has a person change a text. It lies in a file of theirs alone, and is gone afterwards.
func (s *session) inEditor(text string) (_ string, err error) {
	dir, err := os.MkdirTemp("", "docket-edit-")
	if err != nil {
		return "", fmt.Errorf("make a place for the payload: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil && err == nil {
			err = fmt.Errorf("remove the payload from this disk: %w", gone)
		}
	}()
	name := "payload.txt"
	if isJSON([]byte(text)) {
		name = "payload.json"
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(lined(text)), 0o600); err != nil {
		return "", fmt.Errorf("write the payload for the editor: %w", err)
	}
	editor := s.editor()
	if err := s.runEditor([]string{"/bin/sh", "-c", editor + ` "$@"`, "editor", path}); err != nil {
		return "", fmt.Errorf("nothing was changed: the editor %s: %w; set VISUAL or EDITOR, or give --file", quoted(editor), err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read what the editor wrote: %w", err)
	}
	return string(after), nil
}

// editor is the command that a person edits with; like any EDITOR it may have arguments.
func (s *session) editor() string {
	values := environment(s.env.Environ)
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if values[name] != "" {
			return values[name]
		}
	}
	return "vi"
}
