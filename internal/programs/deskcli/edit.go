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

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/record/decision"
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
		Use: "edit ID [flags]", Short: "Edit the payload of a dead letter and retry it", DisableFlagsInUseLine: true,
		Long: "Edit the payload of a dead letter and retry it.\n\n" +
			"The payload opens in $VISUAL, $EDITOR or vi: JSON indented, gzip unpacked. Your version is checked like a\n" +
			"record from Kafka and shown as a diff. If you agree, it is stored with the original in the audit log and\n" +
			"retried. Save it unchanged or empty to cancel. Only PENDING and FAILED dead letters can be edited.\n\n" +
			"A change of decision_id, timestamp, path, result or input, or of a payload that was not readable JSON, is\n" +
			"only proposed: `docket dlq approve` of another person makes it.\n\n" +
			"The temporary file is readable by you only and is removed. After a dry run or a failure, your text is\n" +
			"kept in a file, and its path is printed.",
		Example: "  docket dlq edit 3f9a0c1e77b2 --operator mara --reason 'path had a line break'\n" +
			"  docket dlq show 3f9a0c1e77b2 --raw > value.json\n" +
			"  jq -c '.path |= rtrimstr(\"\\n\")' value.json |\n" +
			"    docket dlq edit 3f9a0c1e77b2 --file - --yes --operator mara --reason 'path had a line break'",
		Args: oneID, ValidArgsFunction: s.completeIDs,
	}
	flags := c.Flags()
	flags.StringVar(&d.file, "file", "", "read the new payload from `FILE` (- for standard input) instead of an editor")
	flags.BoolVar(&d.noRetry, "no-retry", false, "save the new payload without retrying")
	flags.BoolVar(&d.dryRun, "dry-run", false, "test whether the new payload would be stored; change nothing; needs no operator and no reason")
	flags.BoolVar(&d.wait, "wait", false, waitText)
	flags.BoolVar(&d.detach, "detach", false, "do not wait for the result")
	flags.BoolVar(&d.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	flags.StringVar(&d.operator, "operator", "", operatorText)
	flags.StringVar(&d.reason, "reason", "", "why you do this: `TEXT` for the audit log (required)")
	c.MarkFlagsMutuallyExclusive("wait", "detach")
	usage(c, []string{"DOCKET_DATABASE_URL"},
		"stored; or proposed; or not edited; with --no-retry: saved; with --detach, or while no desk runs: saved and will be sent; with --dry-run: it would be stored",
		"it failed again, was refused, or would fail again; you answered no; or the command failed")
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
		return misuse("cannot ask for confirmation without a terminal: give --yes")
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
		s.tell("%v; your text replaces it\n", err)
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
		s.tell("cannot save your text: %v\n", problem)
		return err
	}
	s.tell("your text is saved in %s. It may hold personal data: delete it when done. To continue with it:\n  %s\n",
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
			s.tell("the payload is empty: nothing was changed\n")
			return nil, nil
		case strings.TrimRight(next, "\r\n") == strings.TrimRight(text, "\r\n"), bytes.Equal(value(before, next), before):
			s.tell("the payload is unchanged: nothing was changed\n")
			return nil, nil
		}
		if d.file == "" {
			d.typed = next
		}
		complaint := s.complaint([]byte(next))
		if complaint == "" {
			return &next, nil
		}
		s.tell("this payload would fail again: %s\n", complaint)
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
	diff := difference(before, changed)
	if s.asJSON {
		s.tell("%s\n", plainLines(strings.TrimSuffix(diff, "\n")))
	} else {
		s.say("%s\n", s.diff(diff))
	}
	if d.dryRun {
		if s.sys.Trial == nil {
			return misuse("this build cannot do dry runs")
		}
		result, err := s.sys.Trial.RunValue(ctx, changed)
		if err != nil {
			return fmt.Errorf("dry run: %w", err)
		}
		return s.tried(result)
	}
	members, second, err := s.sys.Book.Touched(ctx, e.ID, changed)
	if err != nil {
		return fmt.Errorf("nothing was changed: dead letter %s: %w", s.id(e.ID), err)
	}
	if second {
		s.tell("this changes %s: a second person has to approve it\n", strings.Join(members, ", "))
	}
	if !d.yes {
		question := "Save and retry?"
		switch {
		case second:
			question = "Propose it?"
		case d.noRetry:
			question = "Save?"
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
		return fmt.Errorf("nothing was changed: %s edited the payload of %s meanwhile; look at it and start again", plain(now.ChangedBy), s.id(e.ID))
	}
	if second {
		err := s.propose(ctx, ledger.Draft{LetterID: e.ID, Before: e.Value, Value: changed, Retry: !d.noRetry}, by)
		d.done = err == nil
		return err
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
		return "", fmt.Errorf("make a temporary directory: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil && err == nil {
			err = fmt.Errorf("remove the temporary file: %w", gone)
		}
	}()
	name := "payload.txt"
	if isJSON([]byte(text)) {
		name = "payload.json"
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(lined(text)), 0o600); err != nil {
		return "", fmt.Errorf("write the temporary file: %w", err)
	}
	editor := s.editor()
	if err := s.runEditor([]string{"/bin/sh", "-c", editor + ` "$@"`, "editor", path}); err != nil {
		return "", fmt.Errorf("nothing was changed: the editor %s: %w; set VISUAL or EDITOR, or give --file", quoted(editor), err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the edited file: %w", err)
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
