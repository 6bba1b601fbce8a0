package deskcli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/record/envelope"
	"docket/internal/service/config"
)

// showFlags say how much of a letter is shown.
type showFlags struct{ payload, history, raw bool }

func (s *session) show() *cobra.Command {
	var o showFlags
	c := &cobra.Command{
		Use: "show ID [flags]", Short: "Explain a dead letter: cause, state, history, and what to do", DisableFlagsInUseLine: true,
		Long: "Explain a dead letter: cause, state, history, and what to do.\n\n" +
			"ID is its id, or the first 6 or more characters. Key, headers and payload may hold personal data and\n" +
			"are shown only with --payload.",
		Example: "  docket dlq show 3f9a0c1e77b2\n  docket dlq show 3f9a0c1e77b2 --payload --history\n  docket dlq show 3f9a0c1e77b2 --raw > value.json",
		Args:    oneID, ValidArgsFunction: s.completeIDs,
	}
	usage(c, []string{"DOCKET_DATABASE_URL"}, "shown", "no dead letter or several have this ID, or the command failed")
	c.Flags().BoolVar(&o.payload, "payload", false, "show key, headers and payload")
	c.Flags().BoolVar(&o.history, "history", false, "show the whole history and all retries; with --payload also what edits changed")
	c.Flags().BoolVar(&o.raw, "raw", false, "print only the bytes of the payload, as they are in Kafka; only to a file or a pipe")
	c.RunE = s.run(func(args []string) (work, error) {
		if o.raw && s.o.Terminal.Out {
			return nil, misuse("--raw can break a terminal: send it to a file or a pipe")
		}
		return func(ctx context.Context) error { return s.showLetter(ctx, args[0], o) }, longEnough(args[0])
	})
	return c
}

func (s *session) showLetter(ctx context.Context, id string, o showFlags) error {
	e, err := s.entry(ctx, id)
	if err != nil {
		return err
	}
	if o.raw {
		_, _ = s.env.Stdout.Write(e.Value)
		return nil
	}
	audits, sendings, err := s.sys.Book.History(ctx, e.ID)
	if err != nil {
		return fmt.Errorf("history of %s: %w", s.id(e.ID), err)
	}
	if s.asJSON {
		s.print(s.shownJSON(e, audits, sendings, o))
		return nil
	}
	s.shown(e, audits, sendings, o)
	return nil
}

func oneID(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return misuse("give the id of a dead letter, as `docket dlq list` prints it")
	case len(args) > 1:
		return misuse("give one id; %s is one too many", quoted(args[1]))
	}
	return nil
}

type jsonShown struct {
	jsonEntry
	Explanation   explanation     `json:"explanation"`
	PayloadBytes  *int            `json:"payload_bytes"` // null: the record has no value
	PayloadGzip   bool            `json:"payload_gzip"`
	Payload       json.RawMessage `json:"payload,omitempty"`
	PayloadBase64 []byte          `json:"payload_base64,omitempty"`
	KeyBase64     []byte          `json:"key_base64,omitempty"`
	Headers       []ledger.Header `json:"headers,omitempty"`
	History       []jsonAudit     `json:"history"`
	Retries       []jsonSending   `json:"retries"`
	Actions       []action        `json:"actions"`
}

func (s *session) shownJSON(e ledger.Entry, audits []ledger.Audit, sendings []ledger.Sending, o showFlags) jsonShown {
	out := jsonShown{
		jsonEntry: entryOf(e), Explanation: explained(e), History: make([]jsonAudit, 0, len(audits)), Retries: make([]jsonSending, 0, len(sendings)),
		Actions: actions(e, s.operatorFlag()),
	}
	if e.Value != nil {
		n := len(e.Value)
		out.PayloadBytes = &n
	}
	if o.payload {
		value, zipped, err := inflated(e.Value, int64(s.settings.MaxRecordBytes))
		if err != nil {
			value, zipped = e.Value, false
		}
		out.PayloadGzip = zipped
		out.Payload, out.PayloadBase64 = embedded(value)
		out.KeyBase64, out.Headers = e.Key, e.Headers
	}
	for _, a := range audits {
		j := jsonAudit{
			At: at(a.At), Act: string(a.Act), From: string(a.From), To: string(a.To), By: a.By, Why: a.Why, Attempts: a.Attempts, Job: a.Job,
			Login: a.Login, Application: a.Application, Client: a.Client, Columns: a.Columns,
		}
		if o.payload {
			j.Diff, j.Was = a.Diff, a.Was
			j.Original, j.OriginalBase64 = embedded(a.Original)
		}
		out.History = append(out.History, j)
	}
	for _, r := range sendings {
		out.Retries = append(out.Retries, sendingOf(r))
	}
	return out
}

// operatorFlag is how a command that is to be pasted names the operator: not at all where the settings do.
func (s *session) operatorFlag() string {
	if config.Lookup(s.env.Program, s.env.Environ, "DOCKET_OPERATOR") != "" {
		return ""
	}
	return "--operator YOU"
}

func (s *session) heading(text string) { s.say("\n%s\n", s.paint(bold, text)) }

// field is a line of a section: what it is called, and it.
func (s *session) field(name, text string) {
	if text == "" {
		return
	}
	const column = 16
	lines := strings.Split(folded(text, strings.Repeat(" ", column+2), s.width()), "\n")
	s.say("  %-*s%s\n", column, name, strings.TrimLeft(lines[0], " "))
	for _, line := range lines[1:] {
		s.say("%s\n", line)
	}
}

func (s *session) shown(e ledger.Entry, audits []ledger.Audit, sendings []ledger.Sending, o showFlags) {
	now := s.now()
	s.say("%s %s\n", s.paint(bold, "Dead letter"), e.ID)
	x := explained(e)

	s.heading("What happened")
	s.field("code", plain(e.Cause.Code)+named(x.Name, e.Cause.Code)+", kind "+string(e.Cause.Kind))
	s.field("message", plainAll(e.Cause.Message))
	s.field("table", plain(e.Cause.Table))
	s.field("column", plain(e.Cause.Column))
	s.field("constraint", plain(e.Cause.Constraint))
	s.field("meaning", strings.TrimSpace(x.Kind+" "+x.Why))
	s.field("at fault", x.Blame+" (class "+x.Class+")")
	s.field("failed in", x.Try)
	s.field("first failed", moment(e.FirstFailedAt, now))
	s.field("last failed", moment(e.FailedAt, now))

	s.heading("Where")
	s.field("first read at", plain(origin(e.Origin)))
	s.field("dead letter at", fmt.Sprintf("%s/%d/%d, since %s", plain(e.Found.Topic), e.Found.Partition, e.Found.Offset, moment(e.Found.Stamp, now)))
	s.field("decision", plain(e.DecisionID))
	if !e.DecisionTime.IsZero() {
		s.field("decided", stamped(e.DecisionTime))
	}
	s.field("path", plain(e.Path))
	if e.Parent != "" {
		s.field("part of", s.id(e.Parent)+", a retried record with several decisions")
	}

	s.heading("State")
	s.field(string(e.State), "since "+moment(e.ChangedAt, now)+", by "+plain(e.ChangedBy)+": "+plainAll(e.Why))
	if e.State == ledger.Processing {
		s.field("retried by", plain(e.Owner)+"; without a result it is PENDING again "+moment(e.LeaseUntil, now))
	}
	s.field("archived in", plain(e.ArchivedIn))
	if e.Job > 0 {
		s.field("job", fmt.Sprint(e.Job))
	}
	s.field("fingerprint", plain(e.Fingerprint))
	if e.Edited {
		s.field("edited", "yes, the payload was changed by hand")
	}

	s.heading("Payload")
	if o.payload {
		s.keys(e)
	}
	s.payload(e.Value, o.payload)

	s.history(audits, sendings, o)

	s.heading("What you can do now")
	for _, a := range actions(e, s.operatorFlag()) {
		s.say("  %s\n    %s\n", a.Text, s.paint(cyan, a.Command))
	}
}

func named(name, code string) string {
	if name == "" || name == code {
		return ""
	}
	return " (" + name + ")"
}

// origin is where a record was first read.
func origin(o envelope.Origin) string {
	text := fmt.Sprintf("%s/%d/%d", o.Topic, o.Partition, o.Offset)
	if o.Partition == envelope.NoPlace {
		text = "a collector, which could not write it to " + o.Topic
	}
	if o.Index != envelope.NoIndex {
		text += fmt.Sprintf(", decision %d in it", o.Index)
	}
	if !o.Timestamp.IsZero() {
		text += ", produced " + stamped(o.Timestamp)
	}
	return text
}

func (s *session) keys(e ledger.Entry) {
	if e.Key != nil {
		s.field("key", plain(string(e.Key)))
	}
	for _, h := range e.Headers {
		s.field("header", plain(h.Key)+": "+plain(string(h.Value)))
	}
}

// briefHistory is how many of the last lines of the audit are shown unasked.
const briefHistory = 5

func (s *session) history(audits []ledger.Audit, sendings []ledger.Sending, o showFlags) {
	s.heading("History")
	shown := audits
	if !o.history && len(shown) > briefHistory {
		shown = shown[len(shown)-briefHistory:]
	}
	columns := []column{
		{title: "when"}, {title: "action"}, {title: "state", paint: s.paintState}, {title: "by", rank: 1, least: 8}, {title: "login", rank: 1, least: 12}, {title: "reason", rank: 2, least: 12},
	}
	known := slices.ContainsFunc(shown, func(a ledger.Audit) bool { return a.Login != "" })
	if !known { // an earlier release did not write it down
		columns = slices.DeleteFunc(columns, func(c column) bool { return c.title == "login" })
	}
	now := s.now()
	var rows [][]cell
	for _, a := range shown {
		to := string(a.To)
		if a.From == a.To {
			to = "unchanged"
		}
		row := []cell{
			{full: moment(a.At, now), brief: stamped(a.At)}, {full: strings.ReplaceAll(string(a.Act), "_", " ")}, {full: to}, {full: plain(a.By)},
		}
		if known {
			row = append(row, cell{full: plain(signedIn(a)), brief: plain(a.Login)})
		}
		why := a.Why
		if len(a.Columns) > 0 {
			why = strings.Join(a.Columns, ", ") + ": " + why
		}
		rows = append(rows, append(row, cell{full: plain(why)}))
	}
	s.table(columns, rows, "  ")
	if n := len(audits) - len(shown); n > 0 {
		s.say("  and %s before; --history shows all\n", counted(int64(n), "line"))
	}
	if !o.history {
		return
	}
	s.retries(sendings)
	for _, a := range audits {
		if a.Was != nil {
			s.columnsBefore(a, o)
		}
		if a.Diff == "" && a.Original == nil {
			continue
		}
		if !o.payload {
			s.say("\n  edited %s by %s; --payload shows the change\n", stamped(a.At), plain(a.By))
			continue
		}
		s.say("\n  edited %s by %s, %s before:\n%s\n", stamped(a.At), plain(a.By), counted(int64(len(a.Original)), "byte"), s.diff(a.Diff))
	}
}

// signedIn is what the server knew of who did it: the login, the application and the address.
func signedIn(a ledger.Audit) string {
	return strings.Join(slices.DeleteFunc([]string{a.Login, a.Application, a.Client}, func(part string) bool { return part == "" }), ", ")
}

// columnsBefore shows what columns had before somebody changed them.
func (s *session) columnsBefore(a ledger.Audit, o showFlags) {
	if !o.payload {
		s.say("\n  changed %s by %s; --payload shows the values before\n", stamped(a.At), plain(a.By))
		return
	}
	s.say("\n  changed %s by %s, before:\n  %s\n", stamped(a.At), plain(a.By), plain(string(a.Was)))
}

func (s *session) retries(sendings []ledger.Sending) {
	if len(sendings) == 0 {
		return
	}
	s.heading("Retries")
	columns := []column{
		{title: "started"}, {title: "by", rank: 3, least: 8}, {title: "record", rank: 1, least: 16}, {title: "result", rank: 2, least: 12}, {title: "ended", rank: 4}, {title: "job", rank: 5, right: true},
	}
	now := s.now()
	var rows [][]cell
	for _, r := range sendings {
		record := "not published"
		if !r.Published.Stamp.IsZero() {
			record = fmt.Sprintf("%s/%d/%d", plain(r.Published.Topic), r.Published.Partition, r.Published.Offset)
		} else if r.Tries > 0 {
			record += ", " + cli.Grouped(int64(r.Tries)) + " tries"
		}
		job := ""
		if r.Job > 0 {
			job = fmt.Sprint(r.Job)
		}
		rows = append(rows, []cell{
			{full: moment(r.CreatedAt, now), brief: stamped(r.CreatedAt)}, {full: plain(r.By)}, {full: record}, {full: ended(r)}, {full: moment(r.EndedAt, now), brief: ago(r.EndedAt, now)}, {full: job},
		})
	}
	s.table(columns, rows, "  ")
}

// ended is how a retry ended, in a few words.
func ended(r ledger.Sending) string {
	text := map[ledger.SendingOutcome]string{
		"": "in progress", ledger.SendingStored: "stored", ledger.SendingDead: "failed again", ledger.SendingRefused: "not published",
		ledger.SendingWithdrawn: "withdrawn: not published in time",
	}[r.Outcome]
	if r.Code != "" && r.Outcome != ledger.SendingStored {
		text += ", " + cli.Named(r.Code)
	}
	return text
}

// diff is a unified diff for a terminal.
func (s *session) diff(text string) string {
	lines := strings.Split(strings.TrimSuffix(plainLines(text), "\n"), "\n")
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "+"):
			lines[i] = s.paint(green, line)
		case strings.HasPrefix(line, "-"):
			lines[i] = s.paint(red, line)
		case strings.HasPrefix(line, "@@"):
			lines[i] = s.paint(cyan, line)
		}
	}
	return strings.Join(lines, "\n")
}
