package console

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/peers"
	"docket/internal/history/reader"
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
	Known      bool             // Now is
	Fresh      reader.Freshness // to be read out; empty: it is old, or not known
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
		if !s.nowOld() {
			p.Fresh = s.now.Freshness
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
		opaPlace(s, fleet), collectorPlace(s, fleet), topicPlace(s, fleet), consumerPlace(s, fleet, sight), rowPlace(s),
	}
	p.Sides = []place{parkedPlace(s), lettersPlace(s), spoolPlace(s, fleet)}
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
		m.Why = p.Why // also of a ready one, as its numbers are in no sum
		return m
	}
	m.Version = f.Version
	lag, known := 0.0, false
	for _, l := range f.Lags {
		lag, known = lag+l.Records, true
	}
	if known {
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
