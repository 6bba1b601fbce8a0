package console

import (
	"slices"
	"time"

	"docket/internal/desk/peers"
	"docket/internal/history/reader"
)

// fleet has the seen programs by kind, and those whose numbers were not seen. A program can be in both.
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
		if p.Facts == nil {
			f.unseen = append(f.unseen, p)
		}
		if p.Seen() {
			f.of[p.Program()] = append(f.of[p.Program()], p)
		}
	}
	return f
}

// missing counts the unseen programs that are of one of these kinds, as far as is known.
func (f fleet) missing(programs ...string) (n int) {
	for _, p := range f.unseen {
		if kind := p.Program(); kind == "" || slices.Contains(programs, kind) {
			n++
		}
	}
	return n
}

// unseenText says that a sum lacks the numbers of n programs.
func unseenText(n int) string {
	return "; " + plural(n, "program is", "programs are") + " not seen"
}

// least is the number that a sum without the unseen ones shows.
func least(number string) string { return "at least " + number }

// lack says why none of a program was seen.
func (f fleet) lack(program string) string {
	if len(f.unseen) > 0 {
		return "No " + program + " tells its numbers. " + plural(len(f.unseen), "program is", "programs are") + " not seen: " + f.unseen[0].Why + "."
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

// opaPlace tells how many decisions came from OPAs, and what those say that report their status.
func opaPlace(s *snapshot, f fleet) place {
	p := place{Name: "OPA", Number: notSeen, Word: true, Text: "An OPA may still hold decisions. Docket knows them once they arrive."}
	seen := f.facts(collectorName)
	n := total(seen, func(f *peers.Facts) *float64 { return f.Received })
	switch {
	case s.peers == nil:
		p.Text += " Set DOCKET_DESK_PEERS, so that the desk sees how many came."
		return p
	case n == nil:
		p.Text += " " + f.lack(collectorName)
		return p
	}
	p.Number, p.Word, p.Age = whole(*n), false, "decisions received since the collectors started"
	p.reports(seen, f.missing(collectorName) > 0)
	if f.missing(collectorName) > 0 {
		p.Number = least(p.Number)
	}
	if refused := total(seen, func(f *peers.Facts) *float64 { return f.Refused }); refused != nil && *refused > 0 {
		uploads := whole(*refused) + " uploads were"
		if *refused == 1 {
			uploads = "1 upload was"
		}
		p.Text = uploads + " refused since then: OPA keeps such and sends them again. " + p.Text
	}
	return p
}

// reports tells what OPAs say by their status. Behind a load balancer one reports to several collectors. Then nothing can be
// added, and the greatest number is the least that is true. A collector may have heard of one long ago.
func (p *place) reports(seen []*peers.Facts, unseen bool) {
	alone := len(seen) == 1 && !unseen
	most := func(of func(*peers.Facts) *float64) float64 {
		if n := greatest(seen, of); n != nil {
			return *n
		}
		return 0
	}
	number := func(n float64, one, many string) string {
		text := whole(n) + " " + many
		if n == 1 {
			text = "1 " + one
		}
		if !alone {
			return least(text)
		}
		return text
	}
	if opas := most(func(f *peers.Facts) *float64 { return f.OPAs }); opas > 0 {
		p.Text = number(opas, "OPA reports", "OPAs report") + " to the collectors"
		if alone {
			p.Text += ", the oldest report since " + ageText(seconds(most(func(f *peers.Facts) *float64 { return f.OPASilent })))
		}
		p.Text = sentence(p.Text)
	}
	if alone {
		waiting, bytes := most(func(f *peers.Facts) *float64 { return f.OPAWaiting }), most(func(f *peers.Facts) *float64 { return f.OPAWaitingBytes })
		switch {
		case waiting > 0:
			p.Text += " They hold " + number(waiting, "decision", "decisions") + "."
		case bytes > 0:
			p.Text += " They hold decisions of " + sizeText(int64(min(bytes, 1e15))) + "."
		}
		if failing := most(func(f *peers.Facts) *float64 { return f.OPAFailing }); failing > 0 {
			p.Tone, p.Text = "warn", p.Text+" The newest upload of "+number(failing, "OPA", "OPAs")+" failed."
		}
	}
	if lost := most(func(f *peers.Facts) *float64 { return f.OPADropped }); lost > 0 {
		p.Tone, p.Text = "bad", sentence(number(lost, "decision is", "decisions are")+" LOST: OPA dropped them before a collector had them")+" "+p.Text
	}
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
	} else {
		p.Number = "no pace yet"
	}
	if n := f.missing(collectorName); n > 0 {
		p.Text += unseenText(n)
		if !p.Word {
			p.Number = least(p.Number)
		}
	}
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
		p.Number, p.Word, p.Text = count(s.now.Behind), false, "records wait in all lanes"+s.nowAsOf()
	default:
		return p
	}
	if oldest := greatest(f.facts(consumerName), func(f *peers.Facts) *float64 { return f.Oldest }); oldest != nil {
		p.Age = "none is in hand"
		if *oldest > 0 {
			p.Age = "the oldest in hand since " + ageText(seconds(*oldest))
		}
		if n := f.missing(consumerName); n > 0 {
			p.Text += unseenText(n)
			if p.Age = "no consumer that is seen has one in hand"; *oldest > 0 {
				p.Age = "the oldest in hand since " + least(ageText(seconds(*oldest)))
			}
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
		if s.nowOld() {
			p.Text = "As of " + s.nowAt.UTC().Format(time.TimeOnly) + ": " + p.Text
			if s.now.Freshness == reader.Fresh { // it may have ended meanwhile
				p.Number, p.Tone, p.Text = "not known just now", "", "It was "+string(reader.Fresh)+s.nowAsOf()+"."
			}
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
		if f.missing(consumerName) > 0 {
			p.Age = "last commit that is seen " + ageText(s.at.Sub(last)) + " ago"
		}
	}
	return p
}

func rowPlace(s *snapshot) place {
	p := place{Name: "Row", Number: "not known", Word: true, Text: "It is not known until when rows are complete."}
	if s.now == nil || s.now.CompleteUntil == nil {
		return p
	}
	until := s.now.CompleteUntil.UTC()
	p.Number, p.Text, p.Age = until.Format("15:04:05"), "complete until then, "+until.Format(time.DateOnly)+" UTC"+s.nowAsOf(), ageText(s.at.Sub(until))+" ago"
	return p
}

func parkedPlace(s *snapshot) place {
	p := place{Name: "Parked", Number: "not known", Text: "the replayer stores them again"}
	if s.now != nil && s.now.Parked != nil {
		p.Number, p.Text = count(s.now.Parked), p.Text+s.nowAsOf()
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
	p.Number, p.Text = count(s.now.Unresolved), p.Text+s.nowAsOf()
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
	if files == nil {
		if s.peers != nil {
			p.Text = f.lack(consumerName)
		}
		if s.now != nil && s.now.Spooled != nil { // each consumer and replayer notes it beside its offsets
			p.Number, p.Text = count(s.now.Spooled), "records in the spools of consumers and replayers"+s.nowAsOf()
		}
		return p
	}
	p.Number, p.Text = whole(*files), "files in the spools of "+plural(len(seen), "program", "programs")
	if bytes := total(seen, func(f *peers.Facts) *float64 { return f.SpoolBytes }); bytes != nil && *bytes > 0 {
		p.Text += ", " + sizeText(int64(*bytes))
	}
	if n := f.missing(consumerName, replayerName); n > 0 {
		p.Number, p.Text = least(p.Number), p.Text+unseenText(n)
	}
	if oldest := greatest(seen, func(f *peers.Facts) *float64 { return f.SpoolOldest }); oldest != nil && *oldest > 0 {
		p.Age = "the oldest since " + ageText(seconds(*oldest))
	}
	if lost := total(seen, func(f *peers.Facts) *float64 { return f.SpoolDropped }); lost != nil && *lost > 0 {
		p.Tone, p.Text = "bad", p.Text+"; "+whole(*lost)+" records are LOST"
	}
	return p
}
