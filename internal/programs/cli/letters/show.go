package letters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
)

// show is docket dlq show.
type show struct {
	frame.Call
	payload, history, raw bool
}

// Show makes the command that explains a dead letter.
func Show(call frame.Call) *cobra.Command {
	sh := &show{Call: call}
	c := &cobra.Command{
		Use: "show ID [flags]", Short: "Explain a dead letter: cause, state, history, and what to do", DisableFlagsInUseLine: true,
		Long: "Explain a dead letter: cause, state, history, and what to do.\n\n" +
			"ID is its id, or the first 6 or more characters. Key, headers and payload may hold personal data and\n" +
			"are shown only with --payload.",
		Example: "  docket dlq show 3f9a0c1e77b2\n  docket dlq show 3f9a0c1e77b2 --payload --history\n  docket dlq show 3f9a0c1e77b2 --raw > value.json",
		Args:    OneID, ValidArgsFunction: CompleteIDs(call),
	}
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "shown", "no dead letter has this ID, or the command failed")
	c.Flags().BoolVar(&sh.payload, "payload", false, "show key, headers and payload")
	c.Flags().BoolVar(&sh.history, "history", false, "show the whole history and all retries; with --payload also what edits changed")
	c.Flags().BoolVar(&sh.raw, "raw", false, "print only the bytes of the payload, as they are in Kafka; only to a file or a pipe")
	c.RunE = sh.Run(func(args []string) (frame.Work, error) {
		if sh.raw && sh.Terminal.Out {
			return nil, frame.Misuse("--raw can break a terminal: send it to a file or a pipe")
		}
		return func(ctx context.Context) error { return sh.one(ctx, args[0]) }, frame.LongEnough(args[0])
	})
	return c
}

func (sh *show) one(ctx context.Context, id string) error {
	e, err := sh.Entry(ctx, id)
	if err != nil {
		return err
	}
	if sh.payload || sh.raw {
		if e, err = sh.WithPayload(ctx, e); err != nil {
			return err
		}
	}
	if sh.raw {
		sh.Screen.Raw(e.Value)
		return nil
	}
	history := sh.Sys.Book.History
	if desk, ok := sh.Sys.Book.(interface {
		Past(ctx context.Context, id string) ([]ledger.Audit, []ledger.Sending, error)
	}); ok && sh.payload {
		history = desk.Past
	}
	audits, sendings, err := history(ctx, e.ID)
	if err != nil {
		return fmt.Errorf("history of %s: %w", sh.ID(e.ID), err)
	}
	// A change of the payload in SQL may leave this unsaid. The audit has it all the same.
	e.Edited = e.Edited || slices.ContainsFunc(audits, func(a ledger.Audit) bool { return a.Act == ledger.Edited })
	if sh.AsJSON {
		sh.Print(sh.json(e, audits, sendings))
		return nil
	}
	sh.text(e, audits, sendings)
	return nil
}

// OneID refuses arguments that are not one id.
func OneID(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return frame.Misuse("give the id of a dead letter, as `docket dlq list` prints it")
	case len(args) > 1:
		return frame.Misuse("give one id; %s is one too many", term.Quoted(args[1]))
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
	Actions       []term.Action   `json:"actions"`
}

func (sh *show) json(e ledger.Entry, audits []ledger.Audit, sendings []ledger.Sending) jsonShown {
	out := jsonShown{
		jsonEntry: entryOf(e), Explanation: explained(e), History: make([]jsonAudit, 0, len(audits)), Retries: make([]jsonSending, 0, len(sendings)),
		Actions: actions(e, sh.OperatorFlag()),
	}
	if out.PayloadBytes = e.Withheld; e.Value != nil {
		n := len(e.Value)
		out.PayloadBytes = &n
	}
	if sh.payload {
		value, zipped, err := Inflate(e.Value, int64(sh.Settings.MaxRecordBytes))
		if err != nil {
			value, zipped = e.Value, false
		}
		out.PayloadGzip = zipped
		out.Payload, out.PayloadBase64 = embedded(value)
		out.KeyBase64, out.Headers = e.Key, e.Headers
	}
	for _, a := range audits {
		j := jsonAudit{
			At: frame.UTC(a.At), Act: string(a.Act), From: string(a.From), To: string(a.To), By: a.By, Why: a.Why, Attempts: a.Attempts, Job: a.Job,
			Login: a.Login, Application: a.Application, Client: a.Client, Columns: a.Columns,
		}
		if sh.payload {
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

func (sh *show) text(e ledger.Entry, audits []ledger.Audit, sendings []ledger.Sending) {
	now := sh.Now()
	sh.Say("%s %s\n", sh.Paint(term.Bold, "Dead letter"), e.ID)
	x := explained(e)

	sh.Heading("What happened")
	sh.Field("code", term.Brief(e.Cause.Code)+named(x.Name, e.Cause.Code)+", kind "+string(e.Cause.Kind))
	sh.Field("message", e.Cause.Message)
	sh.Field("table", term.Brief(e.Cause.Table))
	sh.Field("column", term.Brief(e.Cause.Column))
	sh.Field("constraint", term.Brief(e.Cause.Constraint))
	sh.Field("meaning", strings.TrimSpace(x.Kind+" "+x.Why))
	sh.Field("at fault", x.Blame+" (class "+x.Class+")")
	sh.Field("failed in", x.Try)
	sh.Field("first failed", term.Moment(e.FirstFailedAt, now))
	sh.Field("last failed", term.Moment(e.FailedAt, now))

	sh.Heading("Where")
	sh.Field("first read at", term.Brief(origin(e.Origin)))
	sh.Field("dead letter at", fmt.Sprintf("%s/%d/%d, since %s", term.Brief(e.Found.Topic), e.Found.Partition, e.Found.Offset, term.Moment(e.Found.Stamp, now)))
	sh.Field("decision", term.Brief(e.DecisionID))
	if !e.DecisionTime.IsZero() {
		sh.Field("decided", term.Stamp(e.DecisionTime))
	}
	sh.Field("path", term.Brief(e.Path))
	if e.Parent != "" {
		sh.Field("part of", sh.ID(e.Parent)+", a retried record with several decisions")
	}

	sh.Heading("State")
	sh.Field(string(e.State), "since "+term.Moment(e.ChangedAt, now)+", by "+term.Brief(e.ChangedBy)+": "+e.Why)
	if e.State == ledger.Processing {
		sh.Field("retried by", term.Brief(e.Owner)+"; without a result it is PENDING again "+term.Moment(e.LeaseUntil, now))
	}
	sh.Field("archived in", term.Brief(e.ArchivedIn))
	sh.Field("assigned to", term.Brief(e.Assigned))
	if !e.SnoozedUntil.IsZero() {
		sh.Field("snoozed until", term.Stamp(e.SnoozedUntil))
	}
	if e.Job > 0 {
		sh.Field("job", fmt.Sprint(e.Job))
	}
	sh.Field("fingerprint", term.Brief(e.Fingerprint))
	if e.Edited {
		sh.Field("edited", "yes, the payload was changed by hand")
	}

	sh.Heading("Payload")
	if sh.payload {
		sh.keys(e)
	}
	sh.value(e)

	sh.past(audits, sendings)

	sh.Actions(actions(e, sh.OperatorFlag()))
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
		text += ", produced " + term.Stamp(o.Timestamp)
	}
	return text
}

func (sh *show) keys(e ledger.Entry) {
	if e.Key != nil {
		sh.Field("key", term.Brief(string(e.Key)))
	}
	for _, h := range e.Headers {
		sh.Field("header", term.Brief(h.Key)+": "+term.Brief(string(h.Value)))
	}
}

// briefHistory is how many of the last lines of the audit are shown without --history.
const briefHistory = 5

func (sh *show) past(audits []ledger.Audit, sendings []ledger.Sending) {
	sh.Heading("History")
	shown := audits
	if !sh.history && len(shown) > briefHistory {
		shown = shown[len(shown)-briefHistory:]
	}
	columns := []term.Column{
		{Title: "when"}, {Title: "action"}, {Title: "state", Paint: sh.PaintState}, {Title: "by", Rank: 1, Least: 8}, {Title: "login", Rank: 1, Least: 12}, {Title: "reason", Rank: 2, Least: 12},
	}
	known := slices.ContainsFunc(shown, func(a ledger.Audit) bool { return a.Login != "" })
	if !known { // an earlier release did not store it
		columns = slices.DeleteFunc(columns, func(c term.Column) bool { return c.Title == "login" })
	}
	now := sh.Now()
	var rows [][]term.Cell
	for _, a := range shown {
		to := string(a.To)
		if a.From == a.To {
			to = "unchanged"
		}
		row := []term.Cell{
			{Full: term.Moment(a.At, now), Brief: term.Stamp(a.At)}, {Full: strings.ReplaceAll(string(a.Act), "_", " ")}, {Full: to}, {Full: term.Brief(a.By)},
		}
		if known {
			row = append(row, term.Cell{Full: term.Brief(signedIn(a)), Brief: term.Brief(a.Login)})
		}
		why := a.Why
		if len(a.Columns) > 0 {
			why = strings.Join(a.Columns, ", ") + ": " + why
		}
		rows = append(rows, append(row, term.Cell{Full: term.Brief(why)}))
	}
	sh.Table(columns, rows, "  ")
	if n := len(audits) - len(shown); n > 0 {
		sh.Say("  and %s before; --history shows all\n", term.Counted(int64(n), "line"))
	}
	if !sh.history {
		return
	}
	sh.retries(sendings)
	for _, a := range audits {
		if a.Was != nil {
			sh.columnsBefore(a)
		}
		if a.Diff == "" && a.Original == nil && !a.Withheld {
			continue
		}
		if !sh.payload {
			sh.Say("\n  edited %s by %s; --payload shows the change\n", term.Stamp(a.At), term.Brief(a.By))
			continue
		}
		change := sh.Diff(a.Diff)
		if a.Diff == "" { // it was changed in SQL
			change = sh.original(a.Original)
		}
		sh.Say("\n  edited %s by %s, %s before:\n%s\n", term.Stamp(a.At), term.Brief(a.By), term.Counted(int64(len(a.Original)), "byte"), change)
	}
}

// original is a payload before a change that has no difference by lines.
func (sh *show) original(value []byte) term.Safe {
	text, _, err := Inflate(value, int64(sh.Settings.MaxRecordBytes))
	if err != nil {
		text = value
	}
	return term.Lines(term.Pretty(text))
}

// signedIn is the connection that the server saw: the login, the application and the address.
func signedIn(a ledger.Audit) string {
	return strings.Join(slices.DeleteFunc([]string{a.Login, a.Application, a.Client}, func(part string) bool { return part == "" }), ", ")
}

// columnsBefore prints the values of columns before a person changed them by hand.
func (sh *show) columnsBefore(a ledger.Audit) {
	if !sh.payload {
		sh.Say("\n  changed %s by %s; --payload shows the values before\n", term.Stamp(a.At), term.Brief(a.By))
		return
	}
	sh.Say("\n  changed %s by %s, before:\n  %s\n", term.Stamp(a.At), term.Brief(a.By), term.Brief(string(a.Was)))
}

func (sh *show) retries(sendings []ledger.Sending) {
	if len(sendings) == 0 {
		return
	}
	sh.Heading("Retries")
	columns := []term.Column{
		{Title: "started"}, {Title: "by", Rank: 3, Least: 8}, {Title: "record", Rank: 1, Least: 16}, {Title: "result", Rank: 2, Least: 12}, {Title: "ended", Rank: 4}, {Title: "job", Rank: 5, Right: true},
	}
	now := sh.Now()
	var rows [][]term.Cell
	for _, r := range sendings {
		record := "not published"
		if !r.Published.Stamp.IsZero() {
			record = fmt.Sprintf("%s/%d/%d", term.Brief(r.Published.Topic), r.Published.Partition, r.Published.Offset)
		} else if r.Tries > 0 {
			record += ", " + term.Grouped(int64(r.Tries)) + " tries"
		}
		job := ""
		if r.Job > 0 {
			job = fmt.Sprint(r.Job)
		}
		rows = append(rows, []term.Cell{
			{Full: term.Moment(r.CreatedAt, now), Brief: term.Stamp(r.CreatedAt)}, {Full: term.Brief(r.By)}, {Full: record}, {Full: ended(r)}, {Full: term.Moment(r.EndedAt, now), Brief: term.Ago(r.EndedAt, now)}, {Full: job},
		})
	}
	sh.Table(columns, rows, "  ")
}

// ended is the result of a retry, in a few words.
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

// CompleteIDs suggests ids of dead letters.
func CompleteIDs(call frame.Call) frame.Completion {
	return func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		var filter ledger.Filter
		if c.Name() != "show" { // the other commands move dead letters
			filter.States = []ledger.State{ledger.Pending, ledger.Failed}
		}
		return call.Suggest(func(ctx context.Context, begun string) ([]string, error) {
			list, err := call.Sys.Book.List(ctx, filter, ledger.Page{Limit: frame.Suggested})
			if err != nil {
				return nil, err
			}
			entries := list.Entries
			if !slices.ContainsFunc(entries, func(e ledger.Entry) bool { return strings.HasPrefix(e.ID, begun) }) && len(begun) >= frame.LeastID {
				if e, err := call.Sys.Book.Show(ctx, begun); err == nil {
					entries = append(entries, e)
				}
			}
			var out []string
			for _, e := range entries {
				word := term.Cut(e.ID, max(frame.ShortID, len(begun)))
				out = append(out, word+"\t"+term.Brief(strings.Join([]string{string(e.State), e.Cause.Code, e.Path}, " ")))
			}
			return out, nil
		})(c, args, begun)
	}
}
