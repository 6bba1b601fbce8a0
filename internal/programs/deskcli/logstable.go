package deskcli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"docket/internal/history/reader"
)

// instant is when a decision was made, as tables have it: several are made within a second.
const instant = "2006-01-02 15:04:05.000Z"

func (s *session) paintVerdict(text string) string {
	return s.paint(map[string]style{
		string(reader.Allowed): green, string(reader.Denied): red, string(reader.Undefined): yellow, string(reader.Error): red, string(reader.Other): cyan,
	}[strings.TrimSuffix(strings.TrimSpace(text), editedMark)], text)
}

// or is a column that may be NULL.
func or(text *string, none string) string {
	if text == nil {
		return none
	}
	return plain(*text)
}

func (s *session) decisionTable(decisions []reader.Decision, titles bool) {
	columns := []column{
		{title: "time", rank: 3},
		{title: "verdict", paint: s.paintVerdict},
		{title: "path", rank: 1, least: 14},
		{title: "requested by", rank: 5, least: 15},
		{title: "service", rank: 4, least: 8},
		{title: "decision_id"},
	}
	now := s.now()
	var rows [][]cell
	for _, d := range decisions {
		rows = append(rows, []cell{
			{full: d.Time.UTC().Format(instant), brief: ago(d.Time, now)}, {full: plain(verdictOf(d))}, {full: or(d.Path, "-")}, {full: or(d.RequestedBy, "-")},
			{full: or(d.Service, "-")}, {full: plainAll(d.ID)},
		})
	}
	s.tableWith(columns, rows, "", titles)
}

// decisionTexts shows decisions whole: a line of what they are, and what they hold.
func (s *session) decisionTexts(decisions []reader.Decision) {
	for _, d := range decisions {
		s.say("%s  %s  %s  %s\n", d.Time.UTC().Format(instant), s.paintVerdict(verdictOf(d)), or(d.Path, "-"), plainAll(d.ID))
		if d.Edit != nil {
			s.say("edited %s\n", editLine(d.Edit))
			if d.Edit.Approved != nil {
				s.say("approved %s\n", approvalLine(d.Edit.Approved))
			}
		}
		if d.Ahead() > 0 {
			s.say("dated %s\n", ahead(d))
		}
		if places := unfaithful(d.Unfaithful); places != "" {
			s.say("altered at %s\n", places)
		}
		if d.Unreadable {
			s.say("%s\n", unreadable)
			continue
		}
		s.say("%s\n", plainLines(pretty(d.Raw)))
	}
}

const unreadable = "payload unreadable: its numbers take far more text than bytes; docket archive writes it with such numbers as strings"

// oneDecision shows all decisions of an id: OPA's ids are unique, those of other producers need not be.
func (s *session) oneDecision(ctx context.Context, id string, o logsFlags) error {
	all, err := s.named(ctx, id)
	if err != nil {
		return err
	}
	a := s.elsewhere(ctx, id, all, o.within)
	if len(all) == 0 {
		all = a.Rows // it was stored meanwhile
	}
	if len(all) == 0 {
		if s.asJSON && !o.lines {
			s.decisionsOfID(nil, a, "")
		}
		s.absent(a)
		return endError(1)
	}
	if !o.full {
		for i := range all {
			all[i].Raw = nil
		}
	}
	edits := s.edits(ctx, all, o.full)
	switch {
	case o.lines:
		s.decisionLines(all)
		s.listClaims(s.tell, a.Letters)
		s.listFound(s.tell, a, a.Elsewhere())
	case s.asJSON:
		s.decisionsOfID(all, a, edits)
	default:
		if len(all) > 1 {
			s.say("%s have this id, with different timestamps; oldest first.\n\n", counted(int64(len(all)), "decision"))
		}
		for i, d := range all {
			if i > 0 {
				s.say("\n")
			}
			s.decision(d)
		}
		s.tellEdits(edits)
		s.sayElsewhere(a)
		s.say("\nTo explain it: docket why %s\n", plainAll(shell(all[0].ID)))
	}
	return nil
}

func (s *session) decision(d reader.Decision) {
	s.say("%s\n", s.paint(bold, "Decision "+plainAll(d.ID)))
	s.field("verdict", s.paintVerdict(string(d.Verdict)))
	s.field("decided", d.Time.UTC().Format("2006-01-02 15:04:05.000000Z")+" ("+ago(d.Time, s.now())+")")
	s.field("path", or(d.Path, ""))
	s.field("service", or(d.Service, ""))
	s.field("requested by", or(d.RequestedBy, ""))
	if d.ReqID != nil {
		s.field("req_id", fmt.Sprint(*d.ReqID))
	}
	s.field("OPA", strings.TrimSpace(or(d.OPAID, "")+" "+or(d.OPAVersion, "")))
	s.field("labels", members(d.Labels, func(raw json.RawMessage) string { return word(raw) }))
	s.field("bundles", members(d.Bundles, func(raw json.RawMessage) string {
		var b struct {
			Revision json.RawMessage `json:"revision"`
		}
		if json.Unmarshal(raw, &b) != nil || b.Revision == nil {
			return ""
		}
		return word(b.Revision)
	}))
	s.field("first read", plainAll(fmt.Sprintf("%s/%d/%d, decision %d of that record", d.Topic, d.Partition, d.Offset, d.Index)))
	s.field("uploaded by", or(d.UploadedBy, ""))
	s.editedBy(d.Edit)
	s.field("stored", moment(d.StoredAt.Truncate(time.Second), s.now()))
	s.field("dated", ahead(d))
	s.field("altered at", unfaithful(d.Unfaithful))
	s.changed(d.Edit)
	if d.Unreadable {
		s.say("  %s\n", unreadable)
		s.before(d.Edit)
		return
	}
	if d.Raw == nil {
		s.say("  payload hidden because it may hold personal data; --full shows it\n")
		return
	}
	s.say("%s\n", plainLines(pretty(d.Raw)))
	s.before(d.Edit)
}

// ahead says that a decision is dated later than it was stored.
func ahead(d reader.Decision) string {
	by := d.Ahead()
	if by == 0 {
		return ""
	}
	return long(by) + " after it was stored: a clock was wrong, or the timestamp was made up"
}

// unfaithful says where a payload is not what came.
func unfaithful(places []string) string {
	if len(places) == 0 {
		return ""
	}
	const shown = 5
	named := make([]string, 0, shown)
	for _, p := range places[:min(shown, len(places))] {
		if p == "" {
			p = "more places"
		}
		named = append(named, plainAll(p))
	}
	text := strings.Join(named, ", ")
	if more := len(places) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ", as jsonb cannot hold what came; the exact bytes are in the column raw_bytes"
}

// members are the members of a JSON object as NAME=VALUE, sorted.
func members(raw json.RawMessage, value func(json.RawMessage) string) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil {
		return plain(string(raw))
	}
	var all []string
	for name, member := range object {
		all = append(all, plain(name+"="+value(member)))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// word is a JSON string without its quotes, and anything else as it is.
func word(raw json.RawMessage) string {
	var t string
	if json.Unmarshal(raw, &t) == nil {
		return t
	}
	return string(raw)
}
