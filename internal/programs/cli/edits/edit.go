package edits

import (
	"bytes"
	"cmp"
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
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/letters"
	"docket/internal/programs/cli/term"
	"docket/internal/record/decision"
)

// edit is docket dlq edit.
type edit struct {
	frame.Call
	frame.Signature
	letters.Waiting
	file    string
	noRetry bool
	dryRun  bool
	yes     bool

	typed string // the text of the editor that would be a new payload
	// stopped says that a signal other than Ctrl-C came while the editor was open. Nobody has agreed to its text.
	stopped bool
	saved   string // the file that the editor saved last, in a directory of its own
	done    bool   // the text is the payload now
}

// Edit makes the command that edits a payload.
func Edit(call frame.Call) *cobra.Command {
	ed := &edit{Call: call}
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
		Args: letters.OneID, ValidArgsFunction: letters.CompleteIDs(call),
	}
	flags := c.Flags()
	flags.StringVar(&ed.file, "file", "", "read the new payload from `FILE` (- for standard input) instead of an editor")
	flags.BoolVar(&ed.noRetry, "no-retry", false, "save the new payload without retrying")
	flags.BoolVar(&ed.dryRun, "dry-run", false, "test whether the new payload would be stored; change nothing; needs no operator and no reason")
	ed.Waiting.Declare(c)
	flags.BoolVar(&ed.yes, "yes", false, "do not ask for confirmation; required without a terminal")
	ed.Signature.Declare(flags, frame.ReasonText)
	c.MarkFlagsMutuallyExclusive("wait", "detach")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"},
		"stored; or proposed; or not edited; with --no-retry: saved; with --detach, or while no desk runs: saved and will be sent; with --dry-run: it would be stored",
		"it failed again, was refused, or would fail again; you answered no; or the command failed")
	c.RunE = ed.Direct(func(args []string) error { return ed.one(args[0]) })
	return c
}

// phase does a part of a command until a signal. An editor runs between two phases, and gets Ctrl-C itself.
func (ed *edit) phase(do func(ctx context.Context) error) error {
	ctx, end := cli.UntilSignal(ed.Env)
	defer end()
	return do(ctx)
}

func (ed *edit) one(id string) error {
	var by ledger.Actor
	if !ed.dryRun {
		var err error
		if by, err = ed.Actor(ed.Signature, ""); err != nil {
			return err
		}
	}
	switch {
	case ed.file == "" && !(ed.Asks() && ed.Terminal.Out):
		return frame.Misuse("an editor needs a terminal; in a script give --file FILE")
	case !ed.yes && !ed.dryRun && (!ed.Asks() || ed.file == "-"):
		return frame.Misuse("cannot ask for confirmation without a terminal: give --yes")
	}
	if err := frame.LongEnough(id); err != nil {
		return err
	}
	if err := ed.Open(); err != nil {
		return err
	}
	var e ledger.Entry
	err := ed.phase(func(ctx context.Context) (err error) {
		if err := ed.DeskLimit(ctx); err != nil {
			return err
		}
		if e, err = ed.Entry(ctx, id); err == nil {
			e, err = ed.WithPayload(ctx, e)
		}
		return err
	})
	if err != nil {
		return err
	}
	if e.State != ledger.Pending && e.State != ledger.Failed && !ed.dryRun {
		return fmt.Errorf("nothing was changed: %w%s", &ledger.RefusedError{ID: e.ID, State: e.State, Act: ledger.Edited, By: term.Brief(e.ChangedBy), At: e.ChangedAt}, letters.Meanwhile(e.State))
	}
	before, _, err := letters.Inflate(e.Value, int64(ed.Settings.MaxRecordBytes))
	if err != nil {
		before = nil // it can still be replaced
		ed.Tell("%v; your text replaces it\n", err)
	}
	after, err := ed.written(before)
	if err != nil || after == nil {
		return ed.keeping(err, id)
	}
	return ed.keeping(ed.phase(func(ctx context.Context) error { return ed.offer(ctx, e, before, *after, by) }), id)
}

// keeping removes the editor's file. Where the command failed or was a dry run, it saves the typed text first, and prints the path.
func (ed *edit) keeping(err error, id string) error {
	var ended frame.Exit
	lost := err != nil && (!errors.As(err, &ended) || errors.Is(err, context.Canceled))
	if ed.typed == "" || ed.done || !lost && !ed.dryRun {
		return cmp.Or(err, ed.removed())
	}
	path, problem := kept(ed.typed)
	if problem != nil {
		path = ed.saved
		ed.Tell("cannot copy your text, so the editor's file stays: %v\n", problem)
	} else {
		err = cmp.Or(err, ed.removed())
	}
	ed.Tell("your text is saved in %s. It may hold personal data: delete it when done. To continue with it:\n  %s\n",
		path, term.Join("docket dlq edit", term.Brief(id), "--file", term.ShellWord(path), ed.OperatorFlag(), "--reason '...'"))
	return err
}

// removed removes the editor's file.
func (ed *edit) removed() error {
	if ed.saved == "" {
		return nil
	}
	if err := os.RemoveAll(filepath.Dir(ed.saved)); err != nil {
		return fmt.Errorf("remove the temporary file: %w", err)
	}
	ed.saved = ""
	return nil
}

// kept writes a payload to a file that no other user can read.
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

// written is the new payload, from an editor or a file, once it reads as a decision log. nil: nothing is to be done.
func (ed *edit) written(before []byte) (*string, error) {
	text := term.Pretty(before)
	for shown := text; ; {
		next, err := ed.read(shown)
		if err != nil {
			return nil, err
		}
		switch {
		case strings.TrimSpace(next) == "":
			ed.Tell("the payload is empty: nothing was changed\n")
			return nil, nil
		case strings.TrimRight(next, "\r\n") == strings.TrimRight(text, "\r\n"), bytes.Equal(value(before, next), before):
			ed.Tell("the payload is unchanged: nothing was changed\n")
			return nil, nil
		}
		if ed.file == "" {
			ed.typed = next
		}
		if ed.stopped {
			return nil, errors.New("nothing was changed: this command was told to stop while the editor was open")
		}
		complaint := ed.complaint([]byte(next))
		if complaint == "" {
			return &next, nil
		}
		ed.Tell("this payload would fail again: %s\n", complaint)
		again := false
		if ed.file == "" {
			if err := ed.phase(func(ctx context.Context) (err error) { again, err = ed.Confirm(ctx, "Edit again?", true); return err }); err != nil {
				return nil, err
			}
		}
		if !again {
			ed.Tell("nothing was changed\n")
			return nil, frame.Exit(cli.Failed)
		}
		shown = next
	}
}

// read takes the new payload from where it is written.
func (ed *edit) read(text string) (string, error) {
	var content []byte
	var err error
	switch ed.file {
	case "":
		return ed.inEditor(text)
	case "-":
		content, err = io.ReadAll(ed.In)
	default:
		content, err = os.ReadFile(ed.file)
	}
	if err != nil {
		return "", fmt.Errorf("read the new payload: %w", err)
	}
	return string(content), nil
}

// complaint is the reason why the decoder refuses a payload; empty: it takes it.
func (ed *edit) complaint(value []byte) string {
	record, refusal := decision.Decode(value, int64(ed.Settings.MaxRecordBytes))
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
	return term.Brief(text)
}

// value is the text in the form that the payload had: compact where that was.
func value(before []byte, after string) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, before) == nil && bytes.Equal(compact.Bytes(), before) {
		compact.Reset()
		if term.IsJSON([]byte(after)) && json.Compact(&compact, []byte(after)) == nil {
			return compact.Bytes()
		}
	}
	if !bytes.HasSuffix(before, []byte("\n")) {
		after = strings.TrimRight(after, "\r\n")
	}
	return []byte(after)
}

// offer prints the change, asks, and saves it.
func (ed *edit) offer(ctx context.Context, e ledger.Entry, before []byte, after string, by ledger.Actor) error {
	changed := value(before, after)
	diff := difference(before, changed)
	if ed.AsJSON {
		ed.Tell("%s\n", term.Lines(strings.TrimSuffix(diff, "\n")))
	} else {
		ed.Say("%s\n", ed.Diff(diff))
	}
	if ed.dryRun {
		if ed.Sys.Trial == nil {
			return frame.Misuse("this build cannot do dry runs")
		}
		result, err := ed.Sys.Trial.RunValue(ctx, changed)
		if err != nil {
			return fmt.Errorf("dry run: %w", err)
		}
		return letters.Results{Call: ed.Call}.Tried(result)
	}
	members, second, err := ed.Sys.Book.Touched(ctx, e.ID, changed)
	if err != nil {
		return fmt.Errorf("nothing was changed: dead letter %s: %w", ed.ID(e.ID), err)
	}
	if second {
		ed.Tell("this changes %s: a second person has to approve it\n", strings.Join(members, ", "))
	}
	if !ed.yes {
		question := "Save and retry?"
		switch {
		case second:
			question = "Propose it?"
		case ed.noRetry:
			question = "Save?"
		}
		if ok, err := ed.Confirm(ctx, question, false); err != nil || !ok {
			ed.Tell("nothing was changed\n")
			return errors.Join(err, frame.Exit(cli.Failed))
		}
	}
	now, err := ed.Sys.Book.Show(ctx, e.ID)
	if err == nil {
		now, err = ed.WithPayload(ctx, now)
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: dead letter %s: %w", ed.ID(e.ID), err)
	}
	if !bytes.Equal(now.Value, e.Value) || (now.Value == nil) != (e.Value == nil) {
		return fmt.Errorf("nothing was changed: %s edited the payload of %s meanwhile; look at it and start again", term.Brief(now.ChangedBy), ed.ID(e.ID))
	}
	if second {
		err := view{ed.Call}.propose(ctx, ledger.Draft{LetterID: e.ID, Before: e.Value, Value: changed, Retry: !ed.noRetry}, by)
		ed.done = err == nil
		return err
	}
	lease := ed.Settings.DeskLease
	if ed.noRetry {
		lease = 0
	}
	if err := ed.Sys.Book.Edit(ctx, e.ID, ledger.VersionOf(e.Value), changed, diff, lease, by); err != nil {
		return frame.Unchanged(err)
	}
	ed.done = true
	if ed.noRetry {
		return letters.Results{Call: ed.Call}.Show([]letters.Fate{{ID: e.ID, Result: "edited", State: string(now.State), Ended: true}})
	}
	return letters.Results{Call: ed.Call}.Follow(ctx, []letters.Fate{{ID: e.ID, Result: "retried", State: string(ledger.Processing)}}, ed.Waiting)
}

// lined ends a text with a line feed, as editors add one and the diff should not show it.
func lined(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// inEditor lets a person change a text, in a file that no other user can read. The file of the turn before is removed.
func (ed *edit) inEditor(text string) (_ string, err error) {
	dir, err := os.MkdirTemp("", "docket-edit-")
	if err != nil {
		return "", fmt.Errorf("make a temporary directory: %w; set TMPDIR to a directory that only you can read, or give --file", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(dir) // the first error says more
		}
	}()
	name := "payload.txt"
	if term.IsJSON([]byte(text)) {
		name = "payload.json"
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(lined(text)), 0o600); err != nil {
		return "", fmt.Errorf("write the temporary file: %w", err)
	}
	editor := ed.editor()
	if err := ed.runEditor([]string{"/bin/sh", "-c", editor + ` "$@"`, "editor", path}); err != nil {
		return "", fmt.Errorf("nothing was changed: the editor %s: %w; set VISUAL or EDITOR, or give --file", term.Quoted(editor), err)
	}
	after, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the edited file: %w", err)
	}
	if err := ed.removed(); err != nil {
		return "", err
	}
	ed.saved = path
	return string(after), nil
}

// editor is the command of the editor. It may have arguments.
func (ed *edit) editor() string {
	values := term.Environment(ed.Env.Environ)
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if values[name] != "" {
			return values[name]
		}
	}
	return "vi"
}
