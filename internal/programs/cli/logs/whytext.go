package logs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"docket/internal/history/reader"
	"docket/internal/programs/cli/term"
)

// shownReasons is how many reasons, policies and rules people are shown; --json has them all.
const shownReasons = 20

// text prints an explanation.
func (wy *why) text(x reader.Explanation, q reader.Question, now time.Time) {
	wy.Say("%s %s\n", wy.Paint(term.Bold, "Decision"), x.DecisionID)
	wy.Painted("verdict", wy.paintVerdict(string(x.Verdict)))
	wy.Field("based on", x.VerdictFrom)
	wy.Field("decided", x.Timestamp.UTC().Format(instant)+" ("+term.Ago(x.Timestamp, now)+")")
	wy.Field("archived in", x.Archived.String())
	wy.Field("policy", term.Brief(x.Rego))
	wy.Field("query", term.Brief(x.Query))
	wy.Field("response", term.Brief(x.Response))
	if x.Edited != nil {
		wy.Heading("Edited by an operator")
		wy.editedBy(x.Edited)
		wy.changed(x.Edited)
		if x.Edited.Original != nil || x.Edited.Bytes != nil {
			wy.Say("  --full shows what was there before\n")
		}
	}
	wy.because(x)
	wy.versions(x)
	wy.asker(x)
	wy.since(x, now)
	wy.near("Earlier decisions of the same subject and path", x.Before)
	wy.near("Later decisions", x.After)
	if len(x.Notes) > 0 {
		wy.Heading("Note")
		for _, note := range x.Notes {
			wy.Say("%s\n", term.Folded(note, "  ", wy.Width()))
		}
	}
	wy.furtherOn(x, q)
}

// because are the reasons, and the policies and rules that spoke.
func (wy *why) because(x reader.Explanation) {
	wy.Heading("Why")
	for i, r := range x.Reasons {
		if i == shownReasons {
			break
		}
		line := r.Text
		for _, more := range [][2]string{{"policy", r.Policy}, {"rule", r.Rule}, {"code", r.Code}, {"level", r.Level}} {
			if more[1] != "" {
				line += ", " + more[0] + " " + term.Brief(more[1])
			}
		}
		wy.Field("reason", line)
	}
	if n := len(x.Reasons) - shownReasons; n > 0 || x.MoreReasons > 0 {
		wy.Field("and", fmt.Sprintf("%d more reasons", max(n, 0)+x.MoreReasons))
	}
	for i, one := range x.Spoke {
		if i == shownReasons {
			wy.Field("and", fmt.Sprintf("%d more", len(x.Spoke)-shownReasons))
			break
		}
		line := term.Safe(term.Brief(one.Name))
		if one.Outcome != "" {
			line += ": " + wy.Paint(map[string]term.Style{"passed": term.Green, "failed": term.Red}[one.Outcome], one.Outcome)
		}
		if one.Weight != "" {
			line += ", weight " + term.Safe(term.Brief(one.Weight))
		}
		wy.Painted(one.Kind, line)
	}
	if x.Score != nil {
		line := term.Brief(x.Score.Score)
		if x.Score.Max != "" {
			line += " of " + term.Brief(x.Score.Max)
		}
		if x.Score.Threshold != "" {
			line += ", threshold " + term.Brief(x.Score.Threshold)
		}
		wy.Field("score", line)
	}
	if f := x.Failure; f != nil {
		line := strings.TrimPrefix(term.Brief(f.Code)+": "+f.Message, ": ")
		if f.Code == "" && f.Message == "" {
			line = wy.value(f.Value)
		}
		wy.Field("error", line)
	}
	switch there := x.Result.JSON != nil || x.Result.Cut != ""; {
	case len(x.Reasons) > 0 || x.Failure != nil:
	case there:
		wy.Field("result", wy.value(x.Result))
	default:
		wy.Field("result", "none")
	}
	if x.MappedResult != nil {
		wy.Field("mapped result", wy.value(*x.MappedResult))
	}
	if x.NDBuiltins != nil {
		wy.Field("builtin results", wy.value(*x.NDBuiltins))
	}
}

// versions are bundles and OPA.
func (wy *why) versions(x reader.Explanation) {
	wy.Heading("Policies")
	for _, b := range x.Bundles {
		line := term.Brief(b.Name)
		if b.Revision == "" {
			line += " without a revision"
		} else {
			line = strings.TrimPrefix(line+" at revision "+term.Brief(b.Revision), " at ")
		}
		wy.Field("bundle", line)
	}
	if len(x.Bundles) == 0 {
		wy.Field("bundle", "none in the decision")
	}
	wy.Field("OPA", strings.TrimSpace(term.Brief(x.OPA.Version)+" "+term.Brief(x.OPA.ID)))
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(x.OPA.Labels)) {
		labels = append(labels, term.Brief(name+"="+x.OPA.Labels[name]))
	}
	wy.Field("labels", strings.Join(labels, " "))
	wy.Field("uploaded by", or(x.UploadedBy, ""))
	if e := x.Evaluation; e != nil {
		line := ""
		if e.EvalNS > 0 {
			line = term.Grouped(e.EvalNS/1000) + " µs in the query"
		}
		if e.ServerNS > 0 {
			line = strings.TrimPrefix(line+", "+term.Grouped(e.ServerNS/1000)+" µs in the server", ", ")
		}
		wy.Field("took", line)
	}
	wy.Field("trace", strings.TrimSpace(term.Brief(x.TraceID)+" "+term.Brief(x.SpanID)))
}

// asker is who asked, what, and what of it is not in the log.
func (wy *why) asker(x reader.Explanation) {
	wy.Heading("Asked by")
	who := term.Brief(x.Asked.Subject)
	if who == "" {
		who = "unknown"
	}
	wy.Field("subject", who+" (from "+term.Brief(x.Asked.SubjectBy)+")")
	wy.Field("requested by", term.Brief(x.Asked.RequestedBy))
	for _, part := range x.Asked.Input {
		wy.Field("input", term.Brief(part.Pointer)+" "+wy.value(part.Value))
	}
	wy.Field("masked", strings.Join(x.Masked, ", "))
	wy.Field("erased", strings.Join(x.Erased, ", "))
}

func (wy *why) since(x reader.Explanation, now time.Time) {
	if x.Since == nil {
		return
	}
	wy.Heading("Since when")
	w := x.Since
	what := "was " + string(x.Verdict)
	if x.Verdict == reader.Other {
		what = "had this result"
	}
	if w.FirstTime != nil {
		line := w.FirstTime.UTC().Format(instant) + " (" + term.Ago(*w.FirstTime, now) + "), " + wy.idOr(w.FirstID, x.DecisionID)
		if w.Otherwise == nil {
			line += ", or earlier" // it is only the first that was looked at
		}
		wy.Field("since", line)
	}
	if w.FirstID != x.DecisionID {
		wy.Field("in revision", reader.Revision(w.FirstBundles))
	}
	if o := w.Otherwise; o != nil {
		wy.Field("before that", string(o.Verdict)+" at "+o.Timestamp.UTC().Format(instant)+", "+term.Brief(o.DecisionID))
		wy.Field("in revision", reader.Revision(o.Bundles))
	} else {
		wy.Field("before that", "no other verdict found: each decision searched "+what)
	}
	wy.Field("searched", w.Searched)
	if w.Otherwise != nil {
		wy.Say("  changes from that decision to this one:\n")
		n := 0
		for _, d := range []reader.Differences{w.Bundles, w.OPAVersion, w.Input, w.Result} {
			n += len(d.Changes)
			wy.changes(d.Changes, d.More, "    ")
		}
		if n == 0 {
			wy.Say("    none in bundles, OPA version, input or result\n")
		}
	}
	switch o := w.SameInput; {
	case o == nil:
	case w.Otherwise != nil && o.DecisionID == w.Otherwise.DecisionID:
		wy.Field("same input", "yes: the same input had another verdict, so policy, data or time made the difference")
	default:
		wy.Field("same input", string(o.Verdict)+" at "+o.Timestamp.UTC().Format(instant)+", "+term.Brief(o.DecisionID))
		wy.changes(o.Changes, o.More, "    ")
	}
}

// idOr is an id, or that it is the one that is explained.
func (wy *why) idOr(id, explained string) string {
	if id == explained {
		return "this decision"
	}
	return term.Brief(id)
}

// nearChanges is how many changes of a neighbour people are shown.
const nearChanges = 5

func (wy *why) near(title string, all []reader.Neighbour) {
	if len(all) == 0 {
		return
	}
	wy.Heading(title)
	for _, n := range all {
		wy.Say("  %s  %s  %s\n", n.Timestamp.UTC().Format(instant), wy.paintVerdict(string(n.Verdict)), term.Brief(n.DecisionID))
		shown := n.Changes[:min(nearChanges, len(n.Changes))]
		wy.changes(shown, n.More+len(n.Changes)-len(shown), "    ")
		if len(n.Changes) == 0 {
			wy.Say("    no other difference\n")
		}
	}
}

// furtherOn are the commands that lead on.
func (wy *why) furtherOn(x reader.Explanation, q reader.Question) {
	wy.Heading("What you can do now")
	id := []string{x.DecisionID}
	tell := func(what, command string) { wy.Say("  %s\n    %s\n", what, wy.Paint(term.Cyan, command)) }
	if x.Since != nil && x.Since.Otherwise != nil {
		tell("compare with the last one that had another verdict", term.Command("docket diff", []string{x.Since.Otherwise.DecisionID, x.DecisionID}))
	}
	if x.Since != nil && x.Since.SameInput == nil && x.Since.Otherwise != nil && !q.SameInput {
		tell("find when the same input had another verdict", term.Command("docket why", id, "--subject", term.ShellWord(q.Subject.String()), "--same-input"))
	}
	tell("see the whole decision", term.Command("docket logs", id, "--full"))
	if x.Path != "" {
		tell("see the deny rate of this path", "docket stats --path "+term.ShellWord(x.Path))
	}
}
