package logs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/subject"
)

// why is docket why.
type why struct {
	finder
	at, subject string
	neighbours  int
	same, full  bool
	within      time.Duration
}

const defaultNeighbours = 3

// Why makes the command that explains a decision.
func Why(call frame.Call) *cobra.Command {
	wy := &why{finder: newFinder(call)}
	c := &cobra.Command{
		Use: "why ID [flags]", Short: "Explain a decision: verdict, reasons, policy, and since when", DisableFlagsInUseLine: true,
		Long: "Explain a decision: verdict, reasons, policies, bundle revisions, and who asked. Also: since when the same\n" +
			"subject gets this verdict on this path, what changed then, and the decisions before and after it.\n\n" +
			"ID is a decision_id, or its first 6 or more characters. Reasons and parts of the input are shown, which\n" +
			"may be personal data.",
		Example: "  docket why 502d43b4\n" +
			"  docket why 502d43b4 --subject input:/user --same-input\n" +
			"  docket why 502d43b4 --json | jq -r '.reasons[].text'",
		Args: oneDecisionID, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&wy.at, "at", "", "if several decisions have this ID: its `TIMESTAMP`, like 2026-11-21T20:15:00.5Z")
	f.StringVar(&wy.subject, "subject", "", "compare with decisions of the same `SUBJECT` (default: DOCKET_READER_SUBJECT, or requested_by:host)")
	f.IntVar(&wy.neighbours, "neighbours", defaultNeighbours, "show `N` decisions before and N after it, 0 to 50")
	f.BoolVar(&wy.same, "same-input", false, "also find when the same input last had another verdict; can take long")
	f.BoolVar(&wy.full, "full", false, "also show the whole decision; may show personal data")
	withinFlag(c, &wy.within)
	frame.Usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS", "DOCKET_ARCHIVE_TO"}, "explained", "no stored decision or several have this ID (also if it was found elsewhere), or the command failed")
	frame.Complete(c, map[string]frame.Completion{"subject": frame.Fixed([]string{"requested_by", "requested_by:host", "label:", "input:/"}), "neighbours": frame.Fixed(nil), "at": frame.Fixed(nil), "within": frame.Fixed(nil)})
	c.RunE = wy.Run(func(args []string) (frame.Work, error) {
		q, err := wy.question()
		if err != nil {
			return nil, err
		}
		at, err := instantOf("--at", wy.at)
		err = cmp.Or(err, withinFault(wy.within))
		return func(ctx context.Context) error { return wy.explain(ctx, args[0], at, q) }, err
	})
	return c
}

func (wy *why) explain(ctx context.Context, id string, at time.Time, q reader.Question) error {
	if err := wy.configured(&q); err != nil {
		return err
	}
	begun := begin(ctx, wy.Call, complete.Range{})
	d, a, err := wy.stored(ctx, id, "--at", at, wy.within, &begun)
	if err != nil {
		return err
	}
	one := []reader.Decision{d}
	edits := wy.edits(ctx, one, true)
	d = one[0]
	looked := make(chan *lookup.Answer, 1)
	go func() {
		if a == nil {
			a = wy.elsewhere(ctx, id, one, wy.within)
		}
		looked <- a
	}()
	q.ArchiveBy = time.Now().Add(wy.within)
	explain := wy.Sys.Why
	if explain == nil {
		explain = func(ctx context.Context, d reader.Decision, q reader.Question, _ string) (reader.Explanation, error) {
			return reader.Why(ctx, wy.Sys.Decisions, d, q)
		}
	}
	x, err := explain(ctx, d, q, wy.subject)
	a = <-looked
	a.Shown(d)
	if err = wy.parts.Pass(err); err != nil {
		return fmt.Errorf("explain %s: %w", term.Brief(d.ID), err)
	}
	x.NoteOthers(d, a.Rows)
	said := wy.ended(begun, complete.FactsOf(one, x.Incomplete || !a.Complete()))
	if wy.AsJSON {
		out := jsonWhy{Explanation: x, Edits: edits, jsonElsewhere: elsewhereOf(a), Completeness: said, jsonPartial: wy.partial()}
		if wy.full {
			out.Raw = d.Raw
		}
		wy.Print(out)
		return nil
	}
	wy.text(x, q, wy.Now())
	wy.tellEdits(edits)
	wy.sayElsewhere(a)
	defer wy.tellPartial()
	if wy.full {
		wy.Heading("The decision")
		if d.Unreadable {
			wy.Say("%s\n", unreadable)
		} else {
			wy.Say("%s\n", term.Lines(term.Pretty(d.Raw)))
		}
		wy.before(x.Edited)
	}
	tellComplete(wy.Call, said)
	return nil
}

type jsonWhy struct {
	reader.Explanation
	Raw   json.RawMessage `json:"raw,omitempty"`
	Edits string          `json:"edits_unknown,omitempty"` // why it may not be known that it was edited
	jsonElsewhere
	*reader.Completeness
	jsonPartial
}

func oneDecisionID(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return frame.Misuse("give a decision_id, as `docket logs` prints it")
	case len(args) > 1:
		return frame.Misuse("give one id; %s is one too many", term.Quoted(args[1]))
	}
	return idFault(args[0])
}

// idFault is what no decision_id can be.
func idFault(id string) error {
	switch {
	case id == "":
		return frame.Misuse("the decision_id is empty")
	case !utf8.ValidString(id):
		return frame.Misuse("the decision_id %s is not UTF-8", term.Quoted(id))
	}
	return nil
}

// instantOf is the time that a flag names, zero where it names none.
func instantOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, frame.Misuse("%s %s is not an RFC 3339 time like 2026-11-21T20:15:00.5Z", flag, term.Quoted(text))
	}
	return t, nil
}

// question is what flags ask.
func (wy *why) question() (q reader.Question, err error) {
	if wy.neighbours < 0 || wy.neighbours > reader.MaxNeighbours {
		return q, frame.Misuse("--neighbours must be 0 to %d", reader.MaxNeighbours)
	}
	q.Neighbours, q.SameInput = wy.neighbours, wy.same
	if wy.subject != "" {
		q.Subject, err = subjectOf("--subject", wy.subject)
	}
	return q, err
}

// configured adds to a question what the settings say.
func (wy *why) configured(q *reader.Question) (err error) {
	if wy.subject == "" {
		if q.Subject, err = subjectOf("DOCKET_READER_SUBJECT", wy.Settings.ReaderSubject); err != nil {
			return err
		}
	}
	if q.Extractors, err = reader.ParseExtractors(wy.Settings.ReaderExtractors); err != nil {
		return frame.Misuse("DOCKET_READER_EXTRACTORS: %v", err)
	}
	return nil
}

func subjectOf(from, text string) (subject.Spec, error) {
	spec, err := subject.Parse(text)
	if err != nil {
		return spec, frame.Misuse("%s %s is not a subject: %s", from, term.Quoted(text), subject.ErrForm.Error())
	}
	return spec, nil
}
