package deskcli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"docket/internal/history/reader"
	"docket/internal/programs/cli"
)

// shownReasons is how many reasons, policies and rules people are shown; --json has them all.
const shownReasons = 20

// explained shows an explanation. All that is in it was written by others and is escaped here.
func (s *session) explained(x reader.Explanation, q reader.Question, now time.Time) {
	s.say("%s %s\n", s.paint(bold, "Decision"), plainAll(x.DecisionID))
	s.field("verdict", s.paintVerdict(string(x.Verdict)))
	s.field("based on", plainAll(x.VerdictFrom))
	s.field("decided", x.Timestamp.Format(instant)+" ("+ago(x.Timestamp, now)+")")
	s.field("policy", plain(x.Rego))
	s.field("query", plain(x.Query))
	s.field("response", plain(x.Response))
	if x.Edited != nil {
		s.heading("Edited by an operator")
		s.editedBy(x.Edited)
		s.changed(x.Edited)
		if x.Edited.Original != nil || x.Edited.Bytes != nil {
			s.say("  --full shows what was there before\n")
		}
	}
	s.because(x)
	s.versions(x)
	s.asker(x)
	s.since(x, now)
	s.neighbours("Earlier decisions of the same subject and path", x.Before)
	s.neighbours("Later decisions", x.After)
	if len(x.Notes) > 0 {
		s.heading("Note")
		for _, note := range x.Notes {
			s.say("%s\n", folded(plainAll(note), "  ", s.width()))
		}
	}
	s.furtherOn(x, q)
}

// because are the reasons, and the policies and rules that spoke.
func (s *session) because(x reader.Explanation) {
	s.heading("Why")
	for i, r := range x.Reasons {
		if i == shownReasons {
			break
		}
		line := plainAll(r.Text)
		for _, more := range [][2]string{{"policy", r.Policy}, {"rule", r.Rule}, {"code", r.Code}, {"level", r.Level}} {
			if more[1] != "" {
				line += ", " + more[0] + " " + plain(more[1])
			}
		}
		s.field("reason", line)
	}
	if n := len(x.Reasons) - shownReasons; n > 0 || x.MoreReasons > 0 {
		s.field("and", fmt.Sprintf("%d more reasons", max(n, 0)+x.MoreReasons))
	}
	for i, one := range x.Spoke {
		if i == shownReasons {
			s.field("and", fmt.Sprintf("%d more", len(x.Spoke)-shownReasons))
			break
		}
		line := plain(one.Name)
		if one.Outcome != "" {
			line += ": " + s.paint(map[string]style{"passed": green, "failed": red}[one.Outcome], one.Outcome)
		}
		if one.Weight != "" {
			line += ", weight " + plain(one.Weight)
		}
		s.field(one.Kind, line)
	}
	if x.Score != nil {
		line := plain(x.Score.Score)
		if x.Score.Max != "" {
			line += " of " + plain(x.Score.Max)
		}
		if x.Score.Threshold != "" {
			line += ", threshold " + plain(x.Score.Threshold)
		}
		s.field("score", line)
	}
	if f := x.Failure; f != nil {
		line := strings.TrimPrefix(plain(f.Code)+": "+plainAll(f.Message), ": ")
		if f.Code == "" && f.Message == "" {
			line = s.value(f.Value)
		}
		s.field("error", line)
	}
	switch there := x.Result.JSON != nil || x.Result.Cut != ""; {
	case len(x.Reasons) > 0 || x.Failure != nil:
	case there:
		s.field("result", s.value(x.Result))
	default:
		s.field("result", "none")
	}
	if x.MappedResult != nil {
		s.field("mapped result", s.value(*x.MappedResult))
	}
	if x.NDBuiltins != nil {
		s.field("builtin results", s.value(*x.NDBuiltins))
	}
}

// versions are bundles and OPA.
func (s *session) versions(x reader.Explanation) {
	s.heading("Policies")
	for _, b := range x.Bundles {
		line := plain(b.Name)
		if b.Revision == "" {
			line += " without a revision"
		} else {
			line = strings.TrimPrefix(line+" at revision "+plain(b.Revision), " at ")
		}
		s.field("bundle", line)
	}
	if len(x.Bundles) == 0 {
		s.field("bundle", "none in the decision")
	}
	s.field("OPA", strings.TrimSpace(plain(x.OPA.Version)+" "+plain(x.OPA.ID)))
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(x.OPA.Labels)) {
		labels = append(labels, plain(name+"="+x.OPA.Labels[name]))
	}
	s.field("labels", strings.Join(labels, " "))
	s.field("uploaded by", or(x.UploadedBy, ""))
	if e := x.Evaluation; e != nil {
		line := ""
		if e.EvalNS > 0 {
			line = cli.Grouped(e.EvalNS/1000) + " µs in the query"
		}
		if e.ServerNS > 0 {
			line = strings.TrimPrefix(line+", "+cli.Grouped(e.ServerNS/1000)+" µs in the server", ", ")
		}
		s.field("took", line)
	}
	s.field("trace", strings.TrimSpace(plain(x.TraceID)+" "+plain(x.SpanID)))
}

// asker is who asked, what, and what of it is not in the log.
func (s *session) asker(x reader.Explanation) {
	s.heading("Asked by")
	who := plain(x.Asked.Subject)
	if who == "" {
		who = "unknown"
	}
	s.field("subject", who+" (from "+plain(x.Asked.SubjectBy)+")")
	s.field("requested by", plain(x.Asked.RequestedBy))
	for _, part := range x.Asked.Input {
		s.field("input", plain(part.Pointer)+" "+s.value(part.Value))
	}
	s.field("masked", plainAll(strings.Join(x.Masked, ", ")))
	s.field("erased", plainAll(strings.Join(x.Erased, ", ")))
}

func (s *session) since(x reader.Explanation, now time.Time) {
	if x.Since == nil {
		return
	}
	s.heading("Since when")
	w := x.Since
	what := "was " + string(x.Verdict)
	if x.Verdict == reader.Other {
		what = "had this result"
	}
	if w.FirstTime != nil {
		line := w.FirstTime.Format(instant) + " (" + ago(*w.FirstTime, now) + "), " + s.idOr(w.FirstID, x.DecisionID)
		if w.Otherwise == nil {
			line += ", or earlier" // it is only the first that was looked at
		}
		s.field("since", line)
	}
	if w.FirstID != x.DecisionID {
		s.field("in revision", plainAll(reader.Revision(w.FirstBundles)))
	}
	if o := w.Otherwise; o != nil {
		s.field("before that", string(o.Verdict)+" at "+o.Timestamp.Format(instant)+", "+plain(o.DecisionID))
		s.field("in revision", plainAll(reader.Revision(o.Bundles)))
	} else {
		s.field("before that", "no other verdict found: each decision searched "+what)
	}
	s.field("searched", plainAll(w.Searched))
	if w.Otherwise != nil {
		s.say("  changes from that decision to this one:\n")
		n := 0
		for _, d := range []reader.Differences{w.Bundles, w.OPAVersion, w.Input, w.Result} {
			n += len(d.Changes)
			s.changes(d.Changes, d.More, "    ")
		}
		if n == 0 {
			s.say("    none in bundles, OPA version, input or result\n")
		}
	}
	switch o := w.SameInput; {
	case o == nil:
	case w.Otherwise != nil && o.DecisionID == w.Otherwise.DecisionID:
		s.field("same input", "yes: the same input had another verdict, so policy, data or time made the difference")
	default:
		s.field("same input", string(o.Verdict)+" at "+o.Timestamp.Format(instant)+", "+plain(o.DecisionID))
		s.changes(o.Changes, o.More, "    ")
	}
}

// idOr is an id, or that it is the one that is explained.
func (s *session) idOr(id, explained string) string {
	if id == explained {
		return "this decision"
	}
	return plain(id)
}

// nearChanges is how many changes of a neighbour people are shown.
const nearChanges = 5

func (s *session) neighbours(title string, all []reader.Neighbour) {
	if len(all) == 0 {
		return
	}
	s.heading(title)
	for _, n := range all {
		s.say("  %s  %s  %s\n", n.Timestamp.Format(instant), s.paintVerdict(string(n.Verdict)), plain(n.DecisionID))
		shown := n.Changes[:min(nearChanges, len(n.Changes))]
		s.changes(shown, n.More+len(n.Changes)-len(shown), "    ")
		if len(n.Changes) == 0 {
			s.say("    no other difference\n")
		}
	}
}

// changes are lines of what was added (+), removed (-) or changed (~).
func (s *session) changes(all []reader.Change, more int, indent string) {
	for _, c := range all {
		sign, paint := "~", yellow
		line := plainAll(c.Pointer)
		old, now := s.short(c.Old, c.OldCut), s.short(c.New, c.NewCut)
		if width := s.width(); width > 0 && !s.wide && c.Kind == reader.Changed {
			// Both are to be seen: neither takes more than half of the room.
			half := max((width-len(indent)-len(line)-8)/2, 8)
			old, now = text.Snip(old, max(half, 2*half-text.StringWidth(now)), "…"), text.Snip(now, max(half, 2*half-text.StringWidth(old)), "…")
		}
		switch c.Kind {
		case reader.Added:
			sign, paint, line = "+", green, line+" "+now
		case reader.Removed:
			sign, paint, line = "-", red, line+" "+old
		default:
			line += " " + old + " -> " + now
		}
		if width := s.width(); width > 0 && !s.wide {
			line = text.Snip(line, max(width-len(indent)-2, 20), "…")
		}
		s.say("%s%s %s\n", indent, s.paint(paint, sign), line)
	}
	if more > 0 {
		s.say("%sand %s more\n", indent, cli.Grouped(int64(more)))
	}
}

// value is a value of a decision on one line.
func (s *session) value(v reader.Value) string { return s.short(v.JSON, v.Cut) }

func (s *session) short(raw json.RawMessage, begun string) string {
	if raw == nil && begun != "" {
		return plain(begun+"…") + " (longer)"
	}
	return plain(string(raw))
}

// furtherOn are the commands that lead on.
func (s *session) furtherOn(x reader.Explanation, q reader.Question) {
	s.heading("What you can do now")
	id := plainAll(shell(x.DecisionID))
	tell := func(what, command string) { s.say("  %s\n    %s\n", what, s.paint(cyan, command)) }
	if x.Since != nil && x.Since.Otherwise != nil {
		tell("compare with the last one that had another verdict", "docket diff "+plainAll(shell(x.Since.Otherwise.DecisionID))+" "+id)
	}
	if x.Since != nil && x.Since.SameInput == nil && x.Since.Otherwise != nil && !q.SameInput {
		tell("find when the same input had another verdict", "docket why "+id+" --subject "+plainAll(shell(q.Subject.String()))+" --same-input")
	}
	tell("see the whole decision", "docket logs "+id+" --full")
	if x.Path != "" {
		tell("see the deny rate of this path", "docket stats --path "+plainAll(shell(x.Path)))
	}
}
