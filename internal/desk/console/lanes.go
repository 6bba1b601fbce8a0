package console

import (
	"time"

	"docket/internal/desk/peers"
)

// lanesPage is the content of the page of lanes.
type lanesPage struct {
	On      bool // there is more than one
	Lanes   []laneRow
	Peers   bool
	Unseen  int // programs that were not seen
	Limited bool
	Limits  []limitRow
	Yields  int // consumers whose low lanes yield
}

// laneRow is a lane. Empty texts are not known.
type laneRow struct {
	Name, Topic, Group string
	Waits, ETA         string
	Oldest, Latency    string
	Pace               string
	Held, Turns        string // batches that are written, and that wait for a writer
	Members            string
	Still              int // partitions without progress
}

// limitRow is the limit as one program has it.
type limitRow struct {
	Address, All, Low, Waiting, Breaker, Tone string
}

func (c *Console) lanes(in *request) (page, error) {
	s, err := c.watching.look(in.ctx())
	if err != nil {
		return page{}, err
	}
	return c.lanesOf(s), nil
}

func (c *Console) lanesOf(s *snapshot) page {
	return page{name: "lanes", title: "Lanes", part: "live", at: s.at, body: lanesView(s, c.Sight)}
}

func lanesView(s *snapshot, sight Sight) lanesPage {
	f := fleetOf(s)
	p := lanesPage{On: len(sight.Lanes) > 1, Peers: sight.Peers != nil, Unseen: len(f.unseen)}
	for _, l := range sight.Lanes {
		p.Lanes = append(p.Lanes, laneOf(s, f, l, p.On))
	}
	for _, one := range f.of[consumerName] {
		if one.Facts == nil {
			continue
		}
		if y := one.Facts.Yielding; y != nil && *y > 0 {
			p.Yields++
		}
		if row, limited := limitOf(&one); limited {
			p.Limited, p.Limits = true, append(p.Limits, row)
		}
	}
	return p
}

func laneOf(s *snapshot, f fleet, l Lane, on bool) laneRow {
	row := laneRow{Name: l.Name, Topic: l.Topic, Group: l.Group}
	waiting := int64(0)
	if !s.waitsAt.IsZero() {
		for _, w := range s.waits {
			if w.Topic == l.Topic {
				waiting += w.Records
				if w.Records > 0 && s.waitsAt.Sub(w.MovedAt) >= still {
					row.Still++
				}
			}
		}
		row.Waits = count(waiting)
	}
	if s.members != nil {
		row.Members = count(int64(s.members[l.Group]))
	}
	pace, all := paceOf(f, l.Name, on)
	if on {
		row.fill(lanesNamed(f, l.Name), f.missing(consumerName) == 0)
	} else if oldest := greatest(f.facts(consumerName), func(f *peers.Facts) *float64 { return f.Oldest }); oldest != nil {
		row.Oldest = ageText(seconds(*oldest))
	}
	if pace != nil {
		row.Pace = paceText(*pace)
		if !all {
			row.Pace = least(row.Pace)
		}
		switch {
		case row.Waits == "" || waiting == 0:
		case *pace > 0:
			if row.ETA = ageText(seconds(float64(waiting) / *pace)); !all {
				row.ETA = "at most " + row.ETA
			}
		case all: // an unseen one may work
			row.ETA = "never, at this pace"
		}
	}
	return row
}

// paceOf is how many rows a second come from a lane, of all consumers that have a pace. It reports whether all have one.
func paceOf(f fleet, lane string, on bool) (pace *float64, all bool) {
	all = f.missing(consumerName) == 0
	pace = total(f.facts(consumerName), func(f *peers.Facts) *float64 {
		if !on {
			all = all && f.StoredPace != nil
			return f.StoredPace
		}
		for i := range f.Lanes {
			if f.Lanes[i].Lane == lane {
				all = all && f.Lanes[i].Pace != nil
				return f.Lanes[i].Pace
			}
		}
		return nil
	})
	return pace, all
}

func lanesNamed(f fleet, lane string) (all []peers.LaneFacts) {
	for _, one := range f.facts(consumerName) {
		for _, l := range one.Lanes {
			if l.Lane == lane {
				all = append(all, l)
			}
		}
	}
	return all
}

// fill joins what consumers say of a lane. complete says that all of them are seen.
func (r *laneRow) fill(all []peers.LaneFacts, complete bool) {
	if len(all) == 0 {
		return
	}
	var oldest, latency, held, waiting float64
	for _, l := range all {
		oldest, latency, held, waiting = max(oldest, l.Oldest), max(latency, l.Latency), held+l.Held, waiting+l.Waiting
	}
	r.Oldest, r.Held, r.Turns = ageText(seconds(oldest)), whole(held), whole(waiting)
	switch {
	case oldest == 0 && complete:
		r.Oldest = "none"
	case oldest == 0:
		r.Oldest = "none seen"
	case !complete:
		r.Oldest = least(r.Oldest)
	}
	if latency > 0 {
		r.Latency = time.Duration(latency * float64(time.Second)).String()
	}
}

func limitOf(p *peers.Peer) (limitRow, bool) {
	f := p.Facts
	if f.Limits == nil {
		return limitRow{}, false
	}
	row := limitRow{Address: p.Address, All: whole(f.Limits["all"]), Low: whole(f.Limits["low"]), Breaker: f.Breaker}
	row.Waiting = whole(f.Waiting["low"]) + " low, " + whole(f.Waiting["urgent"]) + " urgent"
	switch f.Breaker {
	case "closed":
		row.Tone = "good"
	case "":
		row.Breaker = "none: the limit is of this process"
	default:
		row.Tone = "bad"
	}
	return row, true
}
