package console

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/peers"
)

// nowPage is the content of the first page.
type nowPage struct {
	Way, Sides []place
	Holds      []hold
	Worst      []worst
	Members    []programRow
	Alerts     []alert
	AlertsSeen bool
	Peers      bool // the desk is told of other programs
	Waits      bool // it is known what waits in Kafka
	Now        api.NowAnswer
	Known      bool // Now is
	NowAt      *time.Time
	Top        []api.ReportLine
	Horizon    []api.HorizonLine
	Horizons   bool // Horizon is known
	Lack       []string
}

// place is a place where decisions are: a number, an age, and what they mean.
type place struct {
	Name, Number, Tone string
	Word               bool // Number is a word
	Age                string
	Text, To           string
}

// hold is a reason for which programs hold, or are slow.
type hold struct {
	Program, Reason, Code, Hint string
	Topic                       string
	Since                       *time.Time
	Where                       []string // programs
	Partitions                  []string
	More                        int
	Stops                       bool // the program is not ready
}

// worst is a partition with many waiting records.
type worst struct {
	Topic     string
	Partition int32
	Records   int64
	MovedAt   time.Time
	Still     bool // for long
}

// programRow is another program.
type programRow struct {
	Address, Program, Version, State, Tone, Why string
	Assigned                                    string
	Lag, Oldest, Commit                         string
}

// alert is one that lasts, with the part of the runbook about it.
type alert struct {
	Text, Runbook string
	At            time.Time
}

const (
	// topGroups is the number of lines of the report on the first page.
	topGroups = 8
	// topWorst is the number of partitions on the first page.
	topWorst = 5
	// still is how long a partition with waiting records may make no progress.
	still = 30 * time.Second
	// notSeen stands for what this desk cannot see. A zero would say more than is known.
	notSeen = "not seen"
)

func (c *Console) now(in *request) (page, error) {
	s, err := c.watching.look(in.ctx())
	if err != nil {
		return page{}, err
	}
	if s.now == nil && !part(in.Request) && s.lack != nil && s.waits == nil && s.peers == nil {
		return page{}, s.lack // nothing at all is known
	}
	return c.nowOf(s), nil
}

func (c *Console) nowOf(s *snapshot) page {
	return page{name: "now", title: "Now", part: "live", at: s.at, body: nowView(s, c.Sight)}
}

func nowView(s *snapshot, sight Sight) nowPage {
	p := nowPage{Peers: sight.Peers != nil, Waits: !s.waitsAt.IsZero(), Worst: worstOf(s), Members: membersView(s), Holds: holdsOf(s)}
	if s.now != nil {
		p.Now, p.Known = *s.now, true
		p.Top, p.Lack = s.now.Lines[:min(topGroups, len(s.now.Lines))], lacking(nil, s.now.Partly)
		if s.at.Sub(s.nowAt) > lookEvery {
			p.NowAt = &s.nowAt
		}
	} else {
		p.Lack = append(p.Lack, "The database does not answer: dead letters, and until when rows are complete, are not known.")
	}
	if s.horizon != nil {
		p.Horizon, p.Horizons = *s.horizon, true
	}
	p.Alerts, p.AlertsSeen = alertsOf(s), s.alerts != nil
	fleet := fleetOf(s)
	p.Way = []place{
		{Name: "OPA", Number: notSeen, Word: true, Text: "An OPA may still hold decisions. Docket knows them once they arrive."},
		collectorPlace(s, fleet), topicPlace(s, fleet), consumerPlace(s, fleet, sight), rowPlace(s),
	}
	p.Sides = []place{parkedPlace(s), lettersPlace(s), spoolPlace(s, fleet)}
	return p
}

// fleet has the seen programs by kind, and how many were not seen.
type fleet struct {
	of     map[string][]peers.Peer
	unseen []peers.Peer
}

// Names of programs, as /readyz has them.
const (
	consumerName, replayerName, collectorName = "consumer", "parking-replayer", "collector"
)

func fleetOf(s *snapshot) fleet {
	f := fleet{of: map[string][]peers.Peer{}}
	if s.peers == nil {
		return f
	}
	for _, p := range *s.peers {
		if !p.Seen() {
			f.unseen = append(f.unseen, p)
			continue
		}
		f.of[p.Program()] = append(f.of[p.Program()], p)
	}
	return f
}

// lack says why none of a program was seen.
func (f fleet) lack(program string) string {
	if len(f.unseen) > 0 {
		return "No " + program + " answers. " + plural(len(f.unseen), "program is", "programs are") + " not seen: " + f.unseen[0].Why + "."
	}
	return "No " + program + " is among those that the desk looks at (DOCKET_DESK_PEERS)."
}

// facts are the numbers of the seen programs of one kind.
func (f fleet) facts(program string) (all []*peers.Facts) {
	for _, p := range f.of[program] {
		if p.Facts != nil {
			all = append(all, p.Facts)
		}
	}
	return all
}

// total adds a number of all programs; nil: none has it.
func total(all []*peers.Facts, of func(*peers.Facts) *float64) (sum *float64) {
	for _, f := range all {
		if v := of(f); v != nil {
			n := *v
			if sum != nil {
				n += *sum
			}
			sum = &n
		}
	}
	return sum
}

func greatest(all []*peers.Facts, of func(*peers.Facts) *float64) (most *float64) {
	for _, f := range all {
		if v := of(f); v != nil && (most == nil || *v > *most) {
			most = v
		}
	}
	return most
}

func collectorPlace(s *snapshot, f fleet) place {
	p := place{Name: "Collector", Number: notSeen, Word: true}
	seen := f.facts(collectorName)
	if len(seen) == 0 {
		if p.Text = f.lack(collectorName); s.peers == nil {
			p.Text = "Set DOCKET_DESK_PEERS, so that the desk sees the collectors."
		}
		return p
	}
	p.Text = plural(len(seen), "collector is", "collectors are") + " seen"
	if n := total(seen, func(f *peers.Facts) *float64 { return f.Uploads }); n != nil {
		p.Text += "; " + whole(*n) + " uploads in flight"
	}
	if pace := total(seen, func(f *peers.Facts) *float64 { return f.TakenPace }); pace != nil {
		p.Number, p.Word, p.Age = paceText(*pace), false, "decisions a second, in the last seconds"
		return p
	}
	p.Number = "no pace yet"
	return p
}

func topicPlace(s *snapshot, f fleet) place {
	p := place{Name: "Topic", Number: "not known", Word: true, Text: "Kafka did not tell what waits."}
	switch {
	case !s.waitsAt.IsZero():
		n := int64(0)
		for _, w := range s.waits {
			n += w.Records
		}
		p.Number, p.Word, p.Text = count(n), false, "records wait in all lanes; looked at "+ageText(s.at.Sub(s.waitsAt))+" ago"
	case s.now != nil && s.now.Behind != nil:
		p.Number, p.Word, p.Text = count(s.now.Behind), false, "records wait in all lanes"
	default:
		return p
	}
	if oldest := greatest(f.facts(consumerName), func(f *peers.Facts) *float64 { return f.Oldest }); oldest != nil {
		p.Age = "none is in hand"
		if *oldest > 0 {
			p.Age = "the oldest in hand since " + ageText(seconds(*oldest))
		}
	}
	return p
}

func consumerPlace(s *snapshot, f fleet, sight Sight) place {
	p := place{Name: "Consumer", Number: notSeen, Word: true, Text: "It is not known whether consumers work."}
	if s.now != nil {
		p.Number, p.Tone, p.Text = string(s.now.Freshness), tone(string(s.now.Freshness)), freshnessText(s.now.Freshness)
		if p.Number == "" {
			p.Number = "not known"
		}
		if s.now.ETA != nil && *s.now.ETA > 0 {
			p.Text += " About " + durationText(s.now.ETA) + " left."
		}
	}
	if s.members != nil {
		n := 0
		for _, l := range sight.Lanes {
			n += s.members[l.Group]
		}
		p.Text += " Kafka knows " + plural(n, "member", "members") + "."
	}
	var last time.Time
	for _, one := range f.facts(consumerName) {
		if one.LastCommit.After(last) {
			last = one.LastCommit
		}
	}
	if !last.IsZero() {
		p.Age = "last commit " + ageText(s.at.Sub(last)) + " ago"
	}
	return p
}

func rowPlace(s *snapshot) place {
	p := place{Name: "Row", Number: "not known", Word: true, Text: "It is not known until when rows are complete."}
	if s.now == nil || s.now.CompleteUntil == nil {
		return p
	}
	until := s.now.CompleteUntil.UTC()
	p.Number, p.Text, p.Age = until.Format("15:04:05"), "complete until then, "+until.Format(time.DateOnly)+" UTC", ageText(s.at.Sub(until))+" ago"
	return p
}

func parkedPlace(s *snapshot) place {
	p := place{Name: "Parked", Number: "not known", Text: "the replayer stores them again"}
	if s.now != nil && s.now.Parked != nil {
		p.Number = count(s.now.Parked)
	}
	if s.horizon == nil {
		return p
	}
	for _, l := range *s.horizon {
		if l.Parked && l.OldestUnread != nil {
			p.Age = "the oldest since " + ageText(s.at.Sub(*l.OldestUnread))
		}
	}
	return p
}

func lettersPlace(s *snapshot) place {
	p := place{Name: "Dead letters", Number: "not known", Text: "not resolved; a person decides", To: "/dead-letters"}
	if s.now == nil {
		return p
	}
	p.Number = count(s.now.Unresolved)
	var oldest time.Time
	for _, l := range s.now.Lines {
		if l.Oldest != nil && (oldest.IsZero() || l.Oldest.Before(oldest)) {
			oldest = *l.Oldest
		}
	}
	if !oldest.IsZero() {
		p.Age = "the oldest since " + ageText(s.at.Sub(oldest))
	}
	return p
}

func spoolPlace(s *snapshot, f fleet) place {
	p := place{Name: "Spooled", Number: notSeen, Text: "files of other hosts, which the desk does not see"}
	seen := append(f.facts(consumerName), f.facts(replayerName)...)
	files := total(seen, func(f *peers.Facts) *float64 { return f.SpoolFiles })
	if s.peers == nil {
		return p
	}
	if files == nil {
		p.Text = f.lack(consumerName)
		return p
	}
	p.Number, p.Text = whole(*files), "files in the spools of "+plural(len(seen), "program", "programs")
	if bytes := total(seen, func(f *peers.Facts) *float64 { return f.SpoolBytes }); bytes != nil && *bytes > 0 {
		p.Text += ", " + sizeText(*bytes)
	}
	if len(f.unseen) > 0 {
		p.Number, p.Text = "at least "+p.Number, p.Text+"; "+plural(len(f.unseen), "program is", "programs are")+" not seen"
	}
	if oldest := greatest(seen, func(f *peers.Facts) *float64 { return f.SpoolOldest }); oldest != nil && *oldest > 0 {
		p.Age = "the oldest since " + ageText(seconds(*oldest))
	}
	if lost := total(seen, func(f *peers.Facts) *float64 { return f.SpoolDropped }); lost != nil && *lost > 0 {
		p.Tone, p.Text = "bad", p.Text+"; "+whole(*lost)+" records are LOST"
	}
	return p
}

// holdsOf joins the reasons of all programs.
func holdsOf(s *snapshot) (all []hold) {
	if s.peers == nil {
		return nil
	}
	for _, p := range *s.peers {
		if p.Ready == nil {
			continue
		}
		for _, r := range p.Ready.Reasons {
			i := slices.IndexFunc(all, func(h hold) bool {
				return h.Program == p.Ready.Program && h.Reason == r.Reason && h.Code == r.Code && h.Topic == r.Topic
			})
			if i < 0 {
				i = len(all)
				all = append(all, hold{Program: p.Ready.Program, Reason: r.Reason, Code: r.Code, Topic: r.Topic, Hint: r.Hint})
			}
			h := &all[i]
			h.Where, h.Stops = append(h.Where, p.Address), h.Stops || !p.Ready.Ready
			if r.Since != nil && (h.Since == nil || r.Since.Before(*h.Since)) {
				h.Since = r.Since
			}
			room := max(0, 8-len(h.Partitions))
			h.Partitions = append(h.Partitions, r.Partitions[:min(room, len(r.Partitions))]...)
			h.More += r.More + max(0, len(r.Partitions)-room)
		}
	}
	return all
}

func worstOf(s *snapshot) (all []worst) {
	for _, w := range s.waits {
		if w.Records > 0 {
			all = append(all, worst{w.Topic, w.Partition, w.Records, w.MovedAt, s.waitsAt.Sub(w.MovedAt) >= still})
		}
	}
	slices.SortStableFunc(all, func(a, b worst) int { return cmp.Compare(b.Records, a.Records) })
	return all[:min(topWorst, len(all))]
}

func membersView(s *snapshot) (all []programRow) {
	if s.peers == nil {
		return nil
	}
	for i := range *s.peers {
		all = append(all, memberOf(&(*s.peers)[i], s.at))
	}
	slices.SortStableFunc(all, func(a, b programRow) int {
		return cmp.Or(cmp.Compare(a.Program, b.Program), cmp.Compare(a.Address, b.Address))
	})
	return all
}

func memberOf(p *peers.Peer, now time.Time) programRow {
	m := programRow{Address: p.Address, Program: p.Program(), State: notSeen, Why: p.Why}
	if r := p.Ready; r != nil {
		m.State, m.Tone, m.Why = "ready", "good", r.Note
		if r.Program != collectorName { // it reads nothing
			m.Assigned = strconv.Itoa(r.Assigned)
		}
		if !r.Ready {
			m.State, m.Tone = "not ready", "bad"
		}
	}
	f := p.Facts
	if f == nil {
		return m
	}
	m.Version = f.Version
	lag, any := 0.0, false
	for _, l := range f.Lags {
		lag, any = lag+l.Records, true
	}
	if any {
		m.Lag = whole(lag)
	}
	if f.Oldest != nil && *f.Oldest > 0 {
		m.Oldest = ageText(seconds(*f.Oldest))
	}
	if !f.LastCommit.IsZero() {
		m.Commit = ageText(now.Sub(f.LastCommit)) + " ago"
	}
	return m
}

func alertsOf(s *snapshot) (all []alert) {
	if s.alerts == nil {
		return nil
	}
	for _, a := range *s.alerts {
		one := alert{At: a.At, Text: count(a.Level) + " dead letters are open", Runbook: "docs/runbook.md#docketdeadletters"}
		if a.Topic != "" {
			one.Text, one.Runbook = "Topic "+a.Topic+": retention can delete records that are still needed", "docs/runbook.md#docketdesklosshorizon"
		}
		all = append(all, one)
	}
	return all
}

// events is the stream of a page that shows how things are.
func (c *Console) events(in *request) (page, error) {
	var of func(*snapshot) page
	switch in.PathValue("page") {
	case "now":
		of = c.nowOf
	case "lanes":
		of = c.lanesOf
	default:
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "There is no such stream.", Hint: "Load the page again."}
	}
	return page{stream: &stream{step: func(ctx context.Context, e *events) (time.Duration, error) {
		s, err := c.watching.look(ctx)
		if err != nil {
			return 0, err
		}
		return lookEvery, e.show(of(s))
	}}}, nil
}

// asOf is the part of a page that always changes.
var asOf = regexp.MustCompile(`<time data-asof="1"[^>]*>[^<]*</time>`)

// show sends the page if it is another than before, and otherwise its time alone.
func (e *events) show(p page) error {
	var out bytes.Buffer
	f := e.c.frame(e.in, p)
	f.Section = ""
	if err := e.c.pages[p.name].ExecuteTemplate(&out, p.part, f); err != nil {
		return fmt.Errorf("render %s: %w", p.name, err)
	}
	text := visible(out.Bytes())
	sum := sha256.Sum256(asOf.ReplaceAll(text, nil))
	id := hex.EncodeToString(sum[:8])
	sent := true
	if id != e.last {
		sent = e.send("page", id, text)
	} else {
		sent = e.send("asof", id, []byte(f.At.Format(time.RFC3339Nano)))
	}
	if e.last = id; !sent {
		return errGone
	}
	return nil
}
