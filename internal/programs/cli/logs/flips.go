package logs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"docket/internal/errclass"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/sharded"
	"docket/internal/history/state"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/escape"
)

// flips is docket flips.
type flips struct {
	*printer
	since, subject, after string
	paths                 []string
	limit                 int
	follow                bool
	every                 time.Duration
	titles                bool // were printed
}

const (
	defaultFlips      = 50
	defaultFlipsEvery = 2 * time.Second
)

// Flips makes the command that lists changes of verdicts.
func Flips(call frame.Call) *cobra.Command {
	fl := &flips{printer: &printer{Call: call.Asking()}}
	c := &cobra.Command{
		Use: "flips [flags]", Short: "List changes of verdicts, by subject and path", DisableFlagsInUseLine: true,
		Long: "List flips: decisions with another verdict than the subject got on that path before. The newest come first.\n\n" +
			"A desk notes them, in the order of storing, where DOCKET_STATES is true. A decision that is older than the\n" +
			"newest of its subject is marked late: the verdict was another one then, and is not now. With -f new flips are\n" +
			"shown as they are noted.",
		Example: "  docket flips --since 1d\n  docket flips --subject alice --path 'admin/*'\n  docket flips -f --json",
		Args:    frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&fl.since, "since", "", "only decisions since `TIME` (default: all flips that are kept)")
	f.StringVar(&fl.subject, "subject", "", "only the subject with this `VALUE`, whole, as docket state has it")
	f.StringArrayVar(&fl.paths, "path", nil, "only this `PATH`, or all below it: 'authz/*'")
	f.IntVarP(&fl.limit, "limit", "n", defaultFlips, "show at most `N` flips, 1 to 1000; with -f: N past ones first")
	f.StringVar(&fl.after, "after", "", "continue after `CURSOR`, printed as next by the page before")
	f.BoolVarP(&fl.follow, "follow", "f", false, "show the last flips, then new ones as they are noted, until Ctrl-C")
	f.DurationVar(&fl.every, "every", defaultFlipsEvery, "with -f: look for new flips every `DURATION`, 100ms or more")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "shown, also if there is none; with -f: stopped by Ctrl-C", "no desk keeps states, or the command failed")
	frame.Complete(c, map[string]frame.Completion{"since": frame.Fixed(frame.TimeWords), "path": lately(call, true), "subject": frame.Fixed(nil), "every": frame.Fixed(nil)})
	c.RunE = fl.Run(func([]string) (frame.Work, error) {
		q, err := fl.query(c)
		return func(ctx context.Context) error { return fl.list(ctx, q) }, err
	})
	return c
}

func (fl *flips) query(c *cobra.Command) (q state.FlipQuery, err error) {
	switch {
	case fl.limit < 1 || fl.limit > state.MostFlips:
		return q, frame.Misuse("--limit must be 1 to %d", state.MostFlips)
	case fl.follow && c.Flags().Changed("after"):
		return q, frame.Misuse("--follow shows new flips; it cannot be used with --after")
	case !fl.follow && c.Flags().Changed("every"):
		return q, frame.Misuse("--every needs --follow")
	case fl.every < leastEvery:
		return q, frame.Misuse("--every must be %v or more", leastEvery)
	case c.Flags().Changed("subject") && (fl.subject == "" || !utf8.ValidString(fl.subject)):
		return q, frame.Misuse("--subject %s is empty or not UTF-8", term.Quoted(fl.subject))
	}
	if err := legiblePaths(fl.paths); err != nil {
		return q, err
	}
	q = state.FlipQuery{Subject: fl.subject, Paths: fl.paths, Limit: fl.limit, Backward: true}
	if c.Flags().Changed("after") {
		if q.Before, q.Places, err = flipsAfter(fl.after); err != nil {
			return q, err
		}
	}
	q.Since, _, err = frame.Between(fl.since, "", fl.Now())
	return q, err
}

// flipsAfter reads the next of a page: the number of a flip, or the places in shards, as each of these numbers its own.
func flipsAfter(cursor string) (before int64, places state.Places, err error) {
	if before, err = strconv.ParseInt(cursor, 10, 64); err == nil && before > 0 {
		return before, nil, nil
	}
	if places, err = sharded.ParsePlaces(cursor); err != nil {
		return 0, nil, noCursor(cursor)
	}
	return 0, places, nil
}

func noCursor(cursor string) error {
	return frame.Misuse("--after must be the next of the page before, not %s", term.Quoted(cursor))
}

// nextFlips returns the cursor of the page behind flips that q found; empty if there is none.
func nextFlips(q state.FlipQuery, found []state.Flip, m state.Mark) string {
	switch {
	case len(found) < q.Limit:
		return ""
	case m.Places != nil:
		return sharded.PlacesText(m.Places)
	}
	return strconv.FormatInt(q.Next(found, m).Before, 10)
}

func (fl *flips) list(ctx context.Context, q state.FlipQuery) error {
	var begun complete.Begun
	if !fl.follow {
		begun = begin(ctx, fl.Call, complete.Range{Since: q.Since, Paths: q.Paths})
	}
	all, mark, err := fl.Sys.States.Flips(ctx, q)
	if err = fl.parts.Pass(err); err != nil {
		return fl.noStates(err)
	}
	if q.Before > 0 && mark.Places != nil || q.Places != nil && mark.Places == nil {
		return noCursor(fl.after) // it is of a list with shards, or of one without
	}
	said := fl.endedStates(begun, complete.Facts{Found: len(all) > 0, Partly: mark.FullAt != nil}, mark)
	next := nextFlips(q, all, mark)
	switch {
	case fl.follow:
		slices.Reverse(all)
		fl.flow(all)
		fl.tellPartial()
		return fl.followed(ctx, q, all, mark)
	case fl.AsJSON:
		out := jsonFlips{Flips: []jsonFlip{}, Next: next, jsonAsOf: asOf(mark, said, fl.partial())}
		for i := range all {
			out.Flips = append(out.Flips, jsonFlipOf(&all[i]))
		}
		fl.Print(out)
	default:
		fl.flow(all)
	}
	if len(all) == 0 {
		fl.Tell("no flips match\n")
	}
	fl.tellMark(mark)
	if len(mark.Shards) > 0 {
		fl.Tell("each shard notes flips between its own decisions: shards may tell of the same change, and none of a change between their decisions\n")
	}
	tellComplete(fl.Call, said)
	fl.endOfShards()
	if next != "" {
		fl.Tell("there may be more: --after %s\n", next)
	}
	return nil
}

// followed shows new flips until it is stopped. While the database is away it waits.
func (fl *flips) followed(ctx context.Context, q state.FlipQuery, shown []state.Flip, from state.Mark) error {
	q.Backward, q.Limit, q.Places = false, state.MostFlips, from.Newest
	if n := len(shown); n > 0 {
		q.After = shown[n-1].ID
	}
	away := false
	lacking := fl.parts.Err()
	for {
		all, mark, err := fl.Sys.States.Flips(ctx, q)
		if ctx.Err() == nil && (err == nil || reader.AsPartial(err) != nil) {
			lacking, err = fl.lack(lacking, err), nil
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // following ends when it is told to
		case err != nil && !errclass.Classify(err).OfTheMoment():
			return fl.noStates(err)
		case err != nil:
			if !away {
				away = true
				fl.Tell("%s does not answer (%s); waiting\n", fl.Source(), term.Brief(errclass.Classify(err).Code))
			}
		default:
			if away {
				away = false
				fl.Tell("%s answers again\n", fl.Source())
			}
			fl.flow(all)
			q = q.Next(all, mark)
		}
		if fl.Lost() || len(all) < q.Limit && !frame.Sleep(ctx, fl.every) {
			return nil
		}
	}
}

// flow prints flips below those before.
func (fl *flips) flow(all []state.Flip) {
	if fl.AsJSON {
		for i := range all {
			text, err := json.Marshal(jsonFlipOf(&all[i]))
			if err != nil {
				fl.Unwritten(err)
				continue
			}
			fl.Say("%s\n", term.Safe(escape.JSON(text)))
		}
		return
	}
	if len(all) == 0 {
		return
	}
	columns := []term.Column{
		{Title: "time"}, {Title: "subject", Least: 12}, {Title: "path", Rank: 1, Least: 14}, {Title: "was", Paint: fl.paintVerdict}, {Title: "verdict", Paint: fl.paintVerdict},
		{Title: "late", Rank: 4}, {Title: "revision", Rank: 3, Least: 10}, {Title: "decision_id", Rank: 2},
	}
	var rows [][]term.Cell
	for i := range all {
		f := &all[i]
		late := ""
		if f.Late {
			late = "late"
		}
		revision := f.Revision
		if f.WasRevision != f.Revision {
			revision = f.WasRevision + " → " + f.Revision
		}
		rows = append(rows, []term.Cell{
			{Full: f.Time.UTC().Format(instant)}, {Full: term.Brief(f.Subject)}, {Full: term.Brief(f.Path)}, {Full: string(f.Was)}, {Full: string(f.Verdict)}, {Full: late},
			{Full: term.Brief(revision)}, {Full: f.Version.ID},
		})
	}
	fl.TableWith(columns, rows, "", !fl.titles)
	fl.titles = true
}

type jsonFlips struct {
	Flips []jsonFlip `json:"flips"`
	Next  string     `json:"next"`
	jsonAsOf
}

// jsonFlip has the names of the API.
type jsonFlip struct {
	ID          int64      `json:"flip_id"`
	Subject     string     `json:"subject"`
	Path        string     `json:"path"`
	Was         string     `json:"was"`
	Verdict     string     `json:"verdict"`
	WasRevision string     `json:"was_revision"`
	Revision    string     `json:"revision"`
	Timestamp   *time.Time `json:"timestamp"`
	DecisionID  string     `json:"decision_id"`
	WasTime     *time.Time `json:"was_timestamp"`
	WasID       string     `json:"was_decision_id"`
	StoredAt    *time.Time `json:"stored_at"`
	Late        bool       `json:"late"`
	Shard       string     `json:"shard,omitempty"`
}

func jsonFlipOf(f *state.Flip) jsonFlip {
	return jsonFlip{
		ID: f.ID, Subject: f.Subject, Path: f.Path, Was: string(f.Was), Verdict: string(f.Verdict), WasRevision: f.WasRevision, Revision: f.Revision,
		Timestamp: frame.UTC(f.Time), DecisionID: f.Version.ID, WasTime: frame.UTC(f.WasVersion.Time), WasID: f.WasVersion.ID, StoredAt: frame.UTC(f.StoredAt), Late: f.Late, Shard: f.Shard,
	}
}
