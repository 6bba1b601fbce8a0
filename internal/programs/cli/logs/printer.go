package logs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// instant is when a decision was made, as tables have it: several are made within a second.
const instant = "2006-01-02 15:04:05.000Z"

// printer prints decisions.
type printer struct {
	frame.Call
	toldEdits bool         // that edits may be incomplete
	parts     reader.Parts // shards that were not asked
	flowing   string       // the day that was printed last, where lines have none
}

// view says how much of a decision is printed, and how.
type view struct{ full, lines bool }

func (p *printer) paintVerdict(text string) term.Safe {
	return p.Paint(map[string]term.Style{
		string(reader.Allowed): term.Green, string(reader.Denied): term.Red, string(reader.Undefined): term.Yellow, string(reader.Error): term.Red, string(reader.Other): term.Cyan,
	}[strings.TrimSuffix(strings.TrimSpace(text), editedMark)], text)
}

// or is a column that may be NULL.
func or(text *string, none string) string {
	if text == nil {
		return none
	}
	return term.Brief(*text)
}

func (p *printer) rows(decisions []reader.Decision, titles bool) {
	columns := []term.Column{
		{Title: "time", Rank: 3},
		{Title: "verdict", Paint: p.paintVerdict},
		{Title: "path", Rank: 1, Least: 14},
		{Title: "requested by", Rank: 5, Least: 15},
		{Title: "service", Rank: 4, Least: 8},
		{Title: "decision_id"},
	}
	now := p.Now()
	var rows [][]term.Cell
	for _, d := range decisions {
		rows = append(rows, []term.Cell{
			{Full: d.Time.UTC().Format(instant), Brief: term.Ago(d.Time, now)}, {Full: term.Brief(verdictOf(d))}, {Full: or(d.Path, "-")}, {Full: or(d.RequestedBy, "-")},
			{Full: or(d.Service, "-")}, {Full: d.ID},
		})
	}
	p.TableWith(columns, rows, "", titles)
}

// texts prints whole decisions: a line with the main columns, and the payload.
func (p *printer) texts(decisions []reader.Decision) {
	for _, d := range decisions {
		p.Say("%s  %s  %s  %s\n", d.Time.UTC().Format(instant), p.paintVerdict(verdictOf(d)), or(d.Path, "-"), d.ID)
		if d.Edit != nil {
			p.Say("edited %s\n", editLine(d.Edit))
			if d.Edit.Approved != nil {
				p.Say("approved %s\n", approvalLine(d.Edit.Approved))
			}
		}
		if d.Archived != nil {
			p.Say("in %s\n", d.Archived)
		}
		if d.Ahead() > 0 {
			p.Say("dated %s\n", ahead(d))
		}
		if places := unfaithful(d.Unfaithful); places != "" {
			p.Say("altered at %s\n", places)
		}
		if d.Unreadable {
			p.Say("%s\n", unreadable)
			continue
		}
		p.Say("%s\n", term.Lines(term.Pretty(d.Raw)))
	}
}

const unreadable = "payload unreadable: its numbers take far more text than bytes; docket archive writes it with such numbers as strings"

func (p *printer) decision(d reader.Decision) {
	p.Say("%s\n", p.Paint(term.Bold, "Decision "+d.ID))
	p.Painted("verdict", p.paintVerdict(string(d.Verdict)))
	p.Field("decided", d.Time.UTC().Format("2006-01-02 15:04:05.000000Z")+" ("+term.Ago(d.Time, p.Now())+")")
	p.Field("path", or(d.Path, ""))
	p.Field("service", or(d.Service, ""))
	p.Field("requested by", or(d.RequestedBy, ""))
	if d.ReqID != nil {
		p.Field("req_id", fmt.Sprint(*d.ReqID))
	}
	p.Field("OPA", strings.TrimSpace(or(d.OPAID, "")+" "+or(d.OPAVersion, "")))
	p.Field("labels", members(d.Labels, func(raw json.RawMessage) string { return word(raw) }))
	p.Field("bundles", members(d.Bundles, func(raw json.RawMessage) string {
		var b struct {
			Revision json.RawMessage `json:"revision"`
		}
		if json.Unmarshal(raw, &b) != nil || b.Revision == nil {
			return ""
		}
		return word(b.Revision)
	}))
	p.Field("first read", fmt.Sprintf("%s/%d/%d, decision %d of that record", d.Topic, d.Partition, d.Offset, d.Index))
	p.Field("uploaded by", or(d.UploadedBy, ""))
	p.editedBy(d.Edit)
	p.Field("shard", d.Shard)
	p.Field("archived in", d.Archived.String())
	p.Field("stored", term.Moment(d.StoredAt.Truncate(time.Second), p.Now()))
	p.Field("dated", ahead(d))
	p.Field("altered at", unfaithful(d.Unfaithful))
	p.changed(d.Edit)
	if d.Unreadable {
		p.Say("  %s\n", unreadable)
		p.before(d.Edit)
		return
	}
	if d.Raw == nil {
		p.Say("  payload hidden because it may hold personal data; --full shows it\n")
		return
	}
	p.Say("%s\n", term.Lines(term.Pretty(d.Raw)))
	p.before(d.Edit)
}

// ahead says that a decision is dated later than it was stored.
func ahead(d reader.Decision) string {
	by := d.Ahead()
	if by == 0 {
		return ""
	}
	return term.Span(by) + " after it was stored: a clock was wrong, or the timestamp was made up"
}

// unfaithful says where a payload differs from the record.
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
		named = append(named, p)
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
		return term.Brief(string(raw))
	}
	var all []string
	for name, member := range object {
		all = append(all, term.Brief(name+"="+value(member)))
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

// flow shows decisions one by one: the widths of a table would change with each look.
func (p *printer) flow(decisions []reader.Decision, v view) {
	switch {
	case p.AsJSON || v.lines:
		p.jsonLines(decisions)
		return
	case v.full:
		p.texts(decisions)
		return
	}
	width := p.Width()
	if p.Wide {
		width = 0
	}
	for _, d := range decisions {
		when := d.Time.UTC().Format(instant)
		if width > 0 && width < 120 {
			when = d.Time.UTC().Format("15:04:05Z")
			p.day(d.Time)
		}
		head := fmt.Sprintf("%s  %-9s  %s", when, term.Brief(verdictOf(d)), term.Line(d.ID))
		rest := strings.Join([]string{or(d.Path, "-"), or(d.RequestedBy, "-"), or(d.Service, "-")}, "  ")
		if room := width - text.StringWidth(head) - term.Gap; width > 0 {
			rest = text.Snip(rest, max(room, 1), "…")
		}
		p.Say("%s  %s  %s  %s\n", when, p.paintVerdict(fmt.Sprintf("%-9s", term.Brief(verdictOf(d)))), d.ID, rest)
	}
}

// day prints the day of a decision where it differs from the day before. The order is that of storing, so a day can come again.
func (p *printer) day(of time.Time) {
	if day := of.UTC().Format(time.DateOnly); day != p.flowing {
		p.flowing = day
		p.Say("%s\n", p.Paint(term.Bold, day))
	}
}

// changes are lines of what was added (+), removed (-) or changed (~).
func (p *printer) changes(all []reader.Change, more int, indent string) {
	for _, c := range all {
		sign, paint := "~", term.Yellow
		line := term.Line(c.Pointer)
		old, now := p.short(c.Old, c.OldCut), p.short(c.New, c.NewCut)
		if width := p.Width(); width > 0 && !p.Wide && c.Kind == reader.Changed {
			// Both are to be seen: neither takes more than half of the room.
			half := max((width-len(indent)-len(line)-8)/2, 8)
			old, now = text.Snip(old, max(half, 2*half-text.StringWidth(now)), "…"), text.Snip(now, max(half, 2*half-text.StringWidth(old)), "…")
		}
		switch c.Kind {
		case reader.Added:
			sign, paint, line = "+", term.Green, line+" "+now
		case reader.Removed:
			sign, paint, line = "-", term.Red, line+" "+old
		default:
			line += " " + old + " -> " + now
		}
		if width := p.Width(); width > 0 && !p.Wide {
			line = text.Snip(line, max(width-len(indent)-2, 20), "…")
		}
		p.Say("%s%s %s\n", indent, p.Paint(paint, sign), line)
	}
	if more > 0 {
		p.Say("%sand %s more\n", indent, term.Grouped(int64(more)))
	}
}

// value is a value of a decision on one line.
func (p *printer) value(v reader.Value) string { return p.short(v.JSON, v.Cut) }

func (p *printer) short(raw json.RawMessage, begun string) string {
	if raw == nil && begun != "" {
		return term.Brief(begun+"…") + " (longer)"
	}
	return term.Brief(string(raw))
}
