package deskcli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/record/subject"
)

// whyFlags say what is asked of a decision beside why.
type whyFlags struct {
	at, subject string
	neighbours  int
	same, full  bool
	within      time.Duration
}

const defaultNeighbours = 3

func (s *session) why() *cobra.Command {
	var o whyFlags
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
	f.StringVar(&o.at, "at", "", "if several decisions have this ID: its `TIMESTAMP`, like 2026-11-21T20:15:00.5Z")
	f.StringVar(&o.subject, "subject", "", "compare with decisions of the same `SUBJECT` (default: DOCKET_READER_SUBJECT, or requested_by:host)")
	f.IntVar(&o.neighbours, "neighbours", defaultNeighbours, "show `N` decisions before and N after it, 0 to 50")
	f.BoolVar(&o.same, "same-input", false, "also find when the same input last had another verdict; can take long")
	f.BoolVar(&o.full, "full", false, "also show the whole decision; may show personal data")
	withinFlag(c, &o.within)
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_KAFKA_BROKERS", "DOCKET_ARCHIVE_TO"}, "explained", "no stored decision or several have this ID (also if it was found elsewhere), or the command failed")
	s.complete(c, map[string]completion{"subject": fixed([]string{"requested_by", "requested_by:host", "label:", "input:/"}), "neighbours": fixed(nil), "at": fixed(nil), "within": fixed(nil)})
	c.RunE = s.run(func(args []string) (work, error) {
		q, err := s.question(o)
		if err != nil {
			return nil, err
		}
		at, err := instantOf("--at", o.at)
		err = cmp.Or(err, withinFault(o.within))
		return func(ctx context.Context) error { return s.tellWhy(ctx, args[0], at, q, o) }, err
	})
	return c
}

func (s *session) tellWhy(ctx context.Context, id string, at time.Time, q reader.Question, o whyFlags) error {
	if err := s.configured(&q, o); err != nil {
		return err
	}
	d, err := s.stored(ctx, id, "--at", at, o.within)
	if err != nil {
		return err
	}
	one := []reader.Decision{d}
	edits := s.edits(ctx, one, true)
	d = one[0]
	looked := make(chan *lookup.Answer, 1)
	go func() { looked <- s.elsewhere(ctx, id, one, o.within) }()
	x, err := reader.Why(ctx, s.sys.Decisions, d, q)
	a := <-looked
	if err != nil {
		return fmt.Errorf("explain %s: %w", plain(d.ID), err)
	}
	if s.asJSON {
		out := jsonWhy{Explanation: x, Edits: edits, jsonElsewhere: elsewhereOf(a)}
		if o.full {
			out.Raw = d.Raw
		}
		s.print(out)
		return nil
	}
	s.explained(x, q, s.now())
	s.tellEdits(edits)
	s.sayElsewhere(a)
	if o.full {
		s.heading("The decision")
		if d.Unreadable {
			s.say("%s\n", unreadable)
		} else {
			s.say("%s\n", plainLines(pretty(d.Raw)))
		}
		s.before(x.Edited)
	}
	return nil
}

type jsonWhy struct {
	reader.Explanation
	Raw   json.RawMessage `json:"raw,omitempty"`
	Edits string          `json:"edits_unknown,omitempty"` // why it may not be known that it was edited
	jsonElsewhere
}

func oneDecisionID(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return misuse("give a decision_id, as `docket logs` prints it")
	case len(args) > 1:
		return misuse("give one id; %s is one too many", quoted(args[1]))
	}
	return idFault(args[0])
}

// idFault is what no decision_id can be.
func idFault(id string) error {
	switch {
	case id == "":
		return misuse("the decision_id is empty")
	case !utf8.ValidString(id):
		return misuse("the decision_id %s is not UTF-8", quoted(id))
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
		return t, misuse("%s %s is not an RFC 3339 time like 2026-11-21T20:15:00.5Z", flag, quoted(text))
	}
	return t, nil
}

// question is what flags ask.
func (s *session) question(o whyFlags) (q reader.Question, err error) {
	if o.neighbours < 0 || o.neighbours > reader.MaxNeighbours {
		return q, misuse("--neighbours must be 0 to %d", reader.MaxNeighbours)
	}
	q.Neighbours, q.SameInput = o.neighbours, o.same
	if o.subject != "" {
		q.Subject, err = subjectOf("--subject", o.subject)
	}
	return q, err
}

// configured adds to a question what the settings say.
func (s *session) configured(q *reader.Question, o whyFlags) (err error) {
	if o.subject == "" {
		if q.Subject, err = subjectOf("DOCKET_READER_SUBJECT", s.settings.ReaderSubject); err != nil {
			return err
		}
	}
	if q.Extractors, err = reader.ParseExtractors(s.settings.ReaderExtractors); err != nil {
		return misuse("DOCKET_READER_EXTRACTORS: %v", err)
	}
	return nil
}

func subjectOf(from, text string) (subject.Spec, error) {
	spec, err := subject.Parse(text)
	if err != nil {
		return spec, misuse("%s %s is not a subject: %s", from, quoted(text), plainAll(subject.ErrForm.Error()))
	}
	return spec, nil
}

// named finds the decisions of an id, or of the only one that begins like that. Of several it tells.
func (s *session) named(ctx context.Context, id string) ([]reader.Decision, error) {
	all, err := reader.Named(ctx, s.sys.Decisions, id)
	var several *reader.AmbiguousError
	switch {
	case errors.As(err, &several):
		s.tell("%s: several decision ids start with %s; give more characters:\n", s.env.Program, plain(id))
		for _, d := range several.Some {
			s.tell("  %s  %s  %s\n", plainAll(d.ID), d.Time.UTC().Format(instant), or(d.Path, "-"))
		}
		if several.More {
			s.tell("  and others\n")
		}
		return nil, endError(1)
	case errors.Is(err, reader.ErrWhole):
		return nil, fmt.Errorf("decision %s: %w", plain(id), err)
	}
	return all, err
}

// stored is the decision of an id, and of a time where several have that id.
func (s *session) stored(ctx context.Context, id, flag string, at time.Time, within time.Duration) (reader.Decision, error) {
	all, err := s.named(ctx, id)
	if err != nil {
		return reader.Decision{}, err
	}
	if len(all) == 0 {
		a := s.elsewhere(ctx, id, nil, within)
		if all = a.Rows; len(all) == 0 {
			if s.asJSON {
				s.decisionsOfID(nil, a, "")
			}
			s.absent(a)
			return reader.Decision{}, endError(1)
		}
	}
	if at.IsZero() && len(all) == 1 {
		return all[0], nil
	}
	for _, d := range all {
		if !at.IsZero() && d.Time.Equal(at.Truncate(time.Microsecond)) {
			return d, nil
		}
	}
	s.tell("%s: %s have the id %s; select one with %s:\n", s.env.Program, counted(int64(len(all)), "decision"), plain(all[0].ID), flag)
	for _, d := range all {
		s.tell("  %s %s  %s\n", flag, d.Time.UTC().Format(time.RFC3339Nano), d.Verdict)
	}
	return reader.Decision{}, endError(1)
}

func (s *session) compare() *cobra.Command {
	var all bool
	var atA, atB string
	c := &cobra.Command{
		Use: "diff A B [flags]", Short: "Compare two decisions", DisableFlagsInUseLine: true,
		Long: "Compare two decisions: what must change in A to get B.\n\n" +
			"A and B are decision_ids, or their first 6 or more characters. Fields that always differ are left out:\n" +
			"decision_id, timestamp, req_id, metrics, trace_id, span_id, and the port of requested_by. Numbers are\n" +
			"compared as JSON numbers. Payloads are shown, which may be personal data.",
		Example: "  docket diff 502d43b4 cf0d08a7",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 || args[0] == "" || args[1] == "" {
				return misuse("give two decision_ids")
			}
			return cmp.Or(idFault(args[0]), idFault(args[1]))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&all, "all", false, "compare all fields, also those that always differ")
	usage(c, []string{"DOCKET_DATABASE_URL"}, "compared, also if they differ", "no decision or several have the ID A or B, or the command failed")
	c.Flags().StringVar(&atA, "at-a", "", "if several decisions have the ID A: its `TIMESTAMP`, like 2026-11-21T20:15:00.5Z")
	c.Flags().StringVar(&atB, "at-b", "", "the same for B: its `TIMESTAMP`")
	s.complete(c, map[string]completion{"at-a": fixed(nil), "at-b": fixed(nil)})
	c.RunE = s.run(func(args []string) (work, error) {
		whenA, errA := instantOf("--at-a", atA)
		whenB, errB := instantOf("--at-b", atB)
		return func(ctx context.Context) error {
			a, err := s.stored(ctx, args[0], "--at-a", whenA, lookup.DefaultLimits.Within)
			if err != nil {
				return err
			}
			b, err := s.stored(ctx, args[1], "--at-b", whenB, lookup.DefaultLimits.Within)
			if err != nil {
				return err
			}
			return s.compared(a, b, all)
		}, cmp.Or(errA, errB)
	})
	return c
}

func (s *session) compared(a, b reader.Decision, all bool) error {
	found, err := reader.Diff(a.Raw, b.Raw, reader.DiffOptions{All: all})
	if errors.Is(err, reader.ErrNotJSON) {
		return fmt.Errorf("compare the decisions: %w", err)
	}
	if s.asJSON {
		s.print(jsonDiff{A: endOf(a), B: endOf(b), Differences: found})
		return nil
	}
	for _, end := range []struct {
		name string
		d    reader.Decision
	}{{"A", a}, {"B", b}} {
		s.say("%s  %s  %s  %s  %s\n", s.paint(bold, end.name), plain(end.d.ID), end.d.Time.UTC().Format(instant), s.paintVerdict(string(end.d.Verdict)), or(end.d.Path, "-"))
	}
	s.say("\n")
	if len(found.Changes) == 0 {
		s.say("no difference, apart from fields that always differ (--all shows them)\n")
	}
	s.changes(found.Changes, found.More, "")
	return nil
}

type jsonDiff struct {
	A jsonEnd `json:"a"`
	B jsonEnd `json:"b"`
	reader.Differences
}

type jsonEnd struct {
	DecisionID string         `json:"decision_id"`
	Timestamp  *time.Time     `json:"timestamp"`
	Path       *string        `json:"path"`
	Verdict    reader.Verdict `json:"verdict"`
}

func endOf(d reader.Decision) jsonEnd {
	return jsonEnd{DecisionID: d.ID, Timestamp: at(d.Time), Path: d.Path, Verdict: d.Verdict}
}
