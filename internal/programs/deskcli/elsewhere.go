package deskcli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
)

// withinFlag declares how long the places beside the table may be searched.
func withinFlag(c *cobra.Command, within *time.Duration) {
	c.Flags().DurationVar(within, "within", lookup.DefaultLimits.Within, "search Kafka, the spools and the archives for `DURATION` at most")
}

func withinFault(within time.Duration) error {
	if within <= 0 {
		return misuse("--within must be more than 0")
	}
	return nil
}

// elsewhere looks for an id in every home; rows are what the table has of it.
func (s *session) elsewhere(ctx context.Context, id string, rows []reader.Decision, within time.Duration) *lookup.Answer {
	if len(rows) > 0 {
		id = rows[0].ID // it may have been given by its first characters
	}
	look := *s.sys.Look
	look.Limits.Within = within
	a := look.Find(ctx, id)
	return &a
}

// sayElsewhere tells what else has the id of a decision that is stored, and where was not looked.
func (s *session) sayElsewhere(a *lookup.Answer) {
	others, copies := a.Elsewhere(), a.Copies()
	if len(a.Letters)+len(others) > 0 {
		s.say("\n%s\n", s.paint(bold, "Other decisions with this id"))
		s.listClaims(s.say, a.Letters)
		s.listFound(s.say, a, others)
	}
	if len(copies) > 0 {
		s.say("\n%s\n", s.paint(bold, "Other records of this decision"))
		s.listFound(s.say, a, copies)
	}
	if !a.Complete() {
		s.say("\n%s\n", s.paint(bold, "Not looked at completely for other decisions with this id"))
		for _, g := range a.NotLooked {
			s.say("%s\n", folded(plainAll(g.String()), "  ", s.width()))
		}
	}
}

// absent says that a decision is not in the table, where it is, where it was looked for, and where not.
func (s *session) absent(a *lookup.Answer) {
	var end string
	switch {
	case !a.Nowhere():
		end = ". It was found elsewhere:\n"
	case !a.Complete():
		end = ". If it is elsewhere is not known, as not every place was looked at completely\n"
	default:
		end = ". It was not found anywhere\n"
	}
	s.tell("%s: no decision %s is stored%s", s.env.Program, plain(a.ID), end)
	if n := len(a.Letters); n > 0 {
		s.tell("%s with the id %s:\n", counted(int64(n), "dead letter"), plain(a.ID))
		s.listClaims(s.tell, a.Letters)
	}
	s.listFound(s.tell, a, a.Found)
	for _, p := range a.Looked {
		s.tell("  looked at: %s\n", plainAll(p.String()))
	}
	for _, g := range a.NotLooked {
		s.tell("  not looked at completely: %s\n", plainAll(g.String()))
	}
	if a.Nowhere() {
		s.tell("  to search for longer, and what was read already: docket where-is %s\n", plainAll(shell(a.ID)))
		s.tell("  if the id is shortened, give its first %d or more characters\n", reader.LeastID)
	}
}

func (s *session) listFound(say func(string, ...any), a *lookup.Answer, found []lookup.Found) {
	for i := range found {
		f := &found[i]
		say("  %s\n", plainAll(f.Text(a.At)))
		if f.Partition != envelope.NoPlace {
			say("    docket where-is %s\n", plainAll(shell(f.Place())))
		}
	}
	if a.More && len(found) > 0 {
		say("  and others\n")
	}
}

// jsonElsewhere is the rest of an answer about an id, beside the decisions that are stored.
type jsonElsewhere struct {
	Others    []jsonClaim          `json:"others,omitempty"`    // dead letters of the ledger that claim the id
	Elsewhere []lookup.FoundRecord `json:"elsewhere,omitempty"` // records that are not in the table and not in the ledger
	Looked    []string             `json:"looked"`
	NotLooked []string             `json:"not_looked"` // completely
}

func elsewhereOf(a *lookup.Answer) jsonElsewhere {
	return jsonElsewhere{jsonClaims(a.Letters), lookup.Views(a.Found, a.At), lookup.Places(a.Looked), lookup.Gaps(a.NotLooked)}
}

// jsonClaim is a dead letter that claims the id of a decision.
type jsonClaim struct {
	Letter    string       `json:"dead_letter_id"`
	Code      string       `json:"code"`
	State     ledger.State `json:"state"`
	Timestamp *time.Time   `json:"timestamp,omitempty"`
	Origin    jsonPlace    `json:"origin"`
}

func (s *session) listClaims(say func(string, ...any), others []ledger.Entry) {
	for i := range others {
		say("  %s\n    docket dlq show %s\n", plainAll(claimed(&others[i])), short(others[i].ID, shortID))
	}
}

// claimed is a line about a letter.
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
		c := jsonClaim{Letter: e.ID, Code: e.Cause.Code, State: e.State, Origin: jsonPlace{Topic: e.Origin.Topic, Partition: e.Origin.Partition, Offset: e.Origin.Offset}}
		if e.Origin.Index != envelope.NoIndex {
			c.Origin.Index = &e.Origin.Index
		}
		c.Timestamp = at(e.DecisionTime)
		all = append(all, c)
	}
	return all
}
