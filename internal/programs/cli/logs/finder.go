package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
	"docket/internal/record/escape"
)

// withinFlag declares how long the other homes may be searched.
func withinFlag(c *cobra.Command, within *time.Duration) {
	c.Flags().DurationVar(within, "within", lookup.DefaultLimits.Within, "search Kafka, the spools and the archives for `DURATION` at most")
}

func withinFault(within time.Duration) error {
	if within <= 0 {
		return frame.Misuse("--within must be more than 0")
	}
	return nil
}

// finder finds decisions by their ids, in the table and elsewhere.
type finder struct {
	*printer
	columns bool // payloads are not needed, and not asked of a desk
}

func newFinder(call frame.Call) finder { return finder{printer: &printer{Call: call.Asking()}} }

// elsewhere looks for an id in every home; rows are those of the table.
func (fd finder) elsewhere(ctx context.Context, id string, rows []reader.Decision, within time.Duration) *lookup.Answer {
	if len(rows) > 0 {
		id = rows[0].ID // it may have been given by its first characters
	}
	if fd.Sys.Homes != nil {
		a, err := fd.Sys.Homes(ctx, id, !fd.columns)
		if err = fd.parts.Pass(err); err != nil {
			a = lookup.Answer{ID: id, At: fd.Now(), NotLooked: []lookup.Gap{{Name: "the other homes", Why: err.Error()}}}
		}
		return &a
	}
	look := *fd.Sys.Look
	look.Limits.Within = within
	a := look.Find(ctx, id)
	return &a
}

// sayElsewhere prints the other records with the id of a stored decision, and the places that were not searched completely.
func (fd finder) sayElsewhere(a *lookup.Answer) {
	others, copies := a.Elsewhere(), a.Copies()
	if len(a.Letters)+len(others) > 0 {
		fd.Say("\n%s\n", fd.Paint(term.Bold, "Other decisions with this id"))
		fd.listClaims(fd.Say, a)
		fd.listFound(fd.Say, a, others)
	}
	if len(copies) > 0 {
		fd.Say("\n%s\n", fd.Paint(term.Bold, "Other records of this decision"))
		fd.listFound(fd.Say, a, copies)
	}
	if !a.Complete() {
		fd.Say("\n%s\n", fd.Paint(term.Bold, "Not looked at completely for other decisions with this id"))
		for _, g := range a.NotLooked {
			fd.Say("%s\n", term.Folded(g.String(), "  ", fd.Width()))
		}
	}
}

// absent prints that a decision is not in the table, where it is, and which places were searched.
func (fd finder) absent(a *lookup.Answer) {
	var end string
	switch {
	case !a.Nowhere():
		end = ". It was found elsewhere:"
	case !a.Complete():
		end = ". If it is elsewhere is not known, as not every place was looked at completely"
	case a.Forgets():
		end = ". It was not found, and days that may have had it were forgotten on purpose"
	case len(a.NotLooked) > 0:
		end = ". It was not found in any place that this host can see"
	default:
		end = ". It was not found anywhere"
	}
	fd.Tell("%s: no decision %s is stored%s\n", fd.Program, term.Brief(a.ID), end)
	if n := len(a.Letters) + a.MoreLetters; n > 0 {
		fd.Tell("%s%s with the id %s:\n", atLeast(a), term.Counted(int64(n), "dead letter"), term.Brief(a.ID))
		fd.listClaims(fd.Tell, a)
	}
	fd.listFound(fd.Tell, a, a.Found)
	for _, p := range a.Looked {
		fd.Tell("  looked at: %s\n", p.String())
	}
	for _, g := range a.NotLooked {
		fd.Tell("  not looked at completely: %s\n", g.String())
	}
	fd.tellPartial()
	if a.Nowhere() {
		fd.Tell("  to search for longer, and what was read already: %s\n", term.Command("docket where-is", []string{a.ID}))
		fd.Tell("  if the id is shortened, give its first %d or more characters\n", reader.LeastID)
	}
}

func (fd finder) listFound(say func(string, ...any), a *lookup.Answer, found []lookup.Found) {
	for i := range found {
		f := &found[i]
		say("  %s\n", f.Text(a.At))
		if f.Partition != envelope.NoPlace {
			say("    %s\n", term.Command("docket where-is", []string{f.Place()}))
		}
	}
	if a.More && len(found) > 0 {
		say("  and others\n")
	}
}

// jsonElsewhere is the rest of an answer about an id, beside the decisions that are stored.
type jsonElsewhere struct {
	Others    []jsonClaim          `json:"others,omitempty"`      // dead letters of the ledger that claim the id
	More      int                  `json:"others_more,omitempty"` // such dead letters that are not in others
	Elsewhere []lookup.FoundRecord `json:"elsewhere,omitempty"`   // records that are not in the table and not in the ledger
	Looked    []string             `json:"looked"`
	NotLooked []string             `json:"not_looked"` // completely
}

func elsewhereOf(a *lookup.Answer) jsonElsewhere {
	return jsonElsewhere{jsonClaims(a.Letters), a.MoreLetters, lookup.Views(a.Found, a.At), lookup.SearchedIn(a.Looked), lookup.Gaps(a.NotLooked)}
}

// jsonClaim is a dead letter that claims the id of a decision.
type jsonClaim struct {
	Letter    string         `json:"dead_letter_id"`
	Code      string         `json:"code"`
	State     ledger.State   `json:"state"`
	Timestamp *time.Time     `json:"timestamp,omitempty"`
	Origin    frame.Position `json:"origin"`
}

// atLeast is put before a number of dead letters that may be higher.
func atLeast(a *lookup.Answer) string {
	if a.ManyLetters() {
		return "at least "
	}
	return ""
}

func (fd finder) listClaims(say func(string, ...any), a *lookup.Answer) {
	for i := range a.Letters {
		say("  %s\n    docket dlq show %s\n", claimed(&a.Letters[i]), term.Cut(a.Letters[i].ID, frame.ShortID))
	}
	if a.MoreLetters > 0 {
		say("  and %s%s with this id\n", atLeast(a), term.Counted(int64(a.MoreLetters), "more dead letter"))
	}
}

// claimed is a line about a dead letter.
func claimed(e *ledger.Entry) string {
	line := fmt.Sprintf("dead letter %s, %s", e.Cause.Code, e.State)
	if !e.DecisionTime.IsZero() {
		line += ", decided " + e.DecisionTime.UTC().Format(instant)
	}
	return line + ", " + firstRead(e.Origin)
}

func firstRead(o envelope.Origin) string {
	switch {
	case o.Partition == envelope.NoPlace:
		return "refused by the collector on its way to " + o.Topic
	case o.Index == envelope.NoIndex:
		return fmt.Sprintf("first read at %s/%d/%d", o.Topic, o.Partition, o.Offset)
	}
	return fmt.Sprintf("first read at %s/%d/%d, decision %d of that record", o.Topic, o.Partition, o.Offset, o.Index)
}

func jsonClaims(others []ledger.Entry) []jsonClaim {
	var all []jsonClaim
	for i := range others {
		e := &others[i]
		c := jsonClaim{Letter: e.ID, Code: e.Cause.Code, State: e.State, Origin: frame.Position{Topic: e.Origin.Topic, Partition: e.Origin.Partition, Offset: e.Origin.Offset}}
		if e.Origin.Index != envelope.NoIndex {
			c.Origin.Index = &e.Origin.Index
		}
		c.Timestamp = frame.UTC(e.DecisionTime)
		all = append(all, c)
	}
	return all
}

// named finds the decisions of an id, or of the only stored id that begins with these characters. It lists several. If
// another home has exactly this id, the answer is theirs, else nil.
func (fd finder) named(ctx context.Context, id string, within time.Duration) ([]reader.Decision, *lookup.Answer, error) {
	store := fd.Sys.Decisions
	if barely, ok := store.(interface{ Columns() reader.Store }); ok && fd.columns {
		store = barely.Columns()
	}
	all, err := reader.Named(ctx, store, id)
	err = fd.parts.Pass(err)
	if reader.MayBeWhole(id, all, err) {
		a := fd.elsewhere(ctx, id, nil, within)
		if !a.Nowhere() {
			return nil, a, nil
		}
		if !a.Complete() && len(all) > 0 {
			fd.Tell("%s: this is about %[3]s, the only stored id that begins with %[2]s. Docket does not know whether another place has a decision %[2]s:\n", fd.Program, term.Brief(id), term.Brief(all[0].ID))
			for _, g := range a.NotLooked {
				fd.Tell("  not looked at completely: %s\n", g.String())
			}
		}
	}
	var several *reader.AmbiguousError
	switch {
	case errors.As(err, &several):
		fd.Tell("%s: several decision ids start with %s; give more characters:\n", fd.Program, term.Brief(id))
		for _, d := range several.Some {
			fd.Tell("  %s  %s  %s\n", d.ID, d.Time.UTC().Format(instant), or(d.Path, "-"))
		}
		if several.More {
			fd.Tell("  and others\n")
		}
		return nil, nil, frame.Exit(cli.Misuse)
	case errors.Is(err, reader.ErrWhole):
		return nil, nil, fmt.Errorf("decision %s: %w", term.Brief(id), err)
	}
	return all, nil, err
}

// stored is the decision of an id, and of a time where several have that id. The table is asked first, and the other
// homes if no row has it: then the answer is theirs, else nil. Without begun nothing is said of how complete it is.
func (fd finder) stored(ctx context.Context, id, flag string, at time.Time, within time.Duration, begun *complete.Begun) (d reader.Decision, a *lookup.Answer, err error) {
	all, a, err := fd.named(ctx, id, within)
	if err != nil {
		return d, nil, err
	}
	var same []reader.Decision // several shards can have one with this time
	ofTime := func() bool {
		same = slices.DeleteFunc(slices.Clone(all), func(one reader.Decision) bool { return !one.Time.Equal(at.Truncate(time.Microsecond)) })
		if len(same) > 0 {
			d = same[0]
		}
		return len(same) > 0
	}
	if len(all) == 0 || !at.IsZero() && !ofTime() {
		if a == nil {
			a = fd.elsewhere(ctx, id, all, within)
		}
		if all = a.Stored(); len(all) == 0 {
			var said *reader.Completeness
			if begun != nil {
				said = fd.ended(*begun, complete.Facts{Partly: !a.Complete()})
			}
			if fd.AsJSON {
				fd.jsonOfID(nil, a, "", said)
			}
			fd.absent(a)
			tellComplete(fd.Call, said)
			return d, nil, frame.Exit(1)
		}
	}
	if at.IsZero() && len(all) == 1 {
		return all[0], a, nil
	}
	if !at.IsZero() && ofTime() {
		if len(same) > 1 && d.Shard != "" {
			fd.Tell("%s: %s\n", fd.Program, twins(same))
		}
		return d, a, nil
	}
	have := "have"
	if len(all) == 1 {
		have = "has"
	}
	fd.Tell("%s: %s %s the id %s; select one with %s:\n", fd.Program, term.Counted(int64(len(all)), "decision"), have, term.Brief(all[0].ID), flag)
	for _, d := range all {
		fd.Tell("  %s %s  %s%s\n", flag, escape.Instant(d.Time), d.Verdict, inShard(&d))
	}
	fd.tellOthers(a)
	return reader.Decision{}, nil, frame.Exit(1)
}

// tellOthers tells of other records with the id of stored decisions, and which places may have more. nil: none were asked.
func (fd finder) tellOthers(a *lookup.Answer) {
	if a == nil {
		return
	}
	fd.listClaims(fd.Tell, a)
	fd.listFound(fd.Tell, a, a.Elsewhere())
	if !a.Complete() {
		for _, gap := range lookup.Gaps(a.NotLooked) {
			fd.Tell("  not looked at completely: %s\n", gap)
		}
	}
	fd.tellPartial()
}

// inShard names the shard of a decision, after a comma; empty: there is one database alone.
func inShard(d *reader.Decision) string {
	if d.Shard == "" {
		return ""
	}
	return ", shard " + term.Brief(d.Shard)
}

// twins says that several shards have a decision of one id and time, of which the first is taken.
func twins(all []reader.Decision) string {
	shards := make([]string, len(all))
	for i := range all {
		shards[i] = term.Brief(all[i].Shard)
	}
	return fmt.Sprintf("%d decisions have the id %s and this time, in the shards %s; this is that of %s. DOCKET_SHARD chooses another on the database, and docket logs shows all",
		len(all), term.Brief(all[0].ID), strings.Join(shards, ", "), shards[0])
}

// apart says how several decisions of an id differ, after a comma.
func apart(all []reader.Decision) string {
	times := map[int64]bool{}
	for i := range all {
		times[all[i].Time.UnixMicro()] = true
	}
	switch len(times) {
	case len(all):
		return ", with different timestamps"
	case 1:
		return ", in different shards"
	}
	return ", with different timestamps or in different shards"
}
