package complete

import (
	"cmp"
	"slices"
	"time"
)

// place is a partition of a source topic.
type place struct {
	topic     string
	partition int32
}

// seen is what one look has read of a source topic's partition.
type seen struct {
	start, end int64
	committed  int64
	hasCommit  bool
}

// position is the first offset of which it is not known that it has a home.
func (s seen) position() int64 {
	switch {
	case s.hasCommit:
		return s.committed
	case s.start == s.end:
		return s.end // the topic holds nothing of it
	}
	return 0
}

// waiting counts the offsets that wait in the topic.
func (s seen) waiting() int64 { return max(0, s.end-max(s.position(), s.start)) }

// sample has the ends of all partitions that were known at a time.
type sample struct {
	at   time.Time
	ends []int64 // by the number of the partition; partitions that came later are missing
}

// mostSamples limits the samples. Beyond it every second one of the older half is dropped.
const mostSamples = 256

// stalled is how long a partition with waiting records may make no progress before it counts as held.
const stalled = 30 * time.Second

// mostJump is how far the clock may differ from the monotonic one between two looks.
const mostJump = time.Second

// track follows the partitions over several looks. It is not safe for concurrent use.
type track struct {
	margin time.Duration

	number  map[place]int // of a partition, in the order in which they were seen first
	parts   []part
	samples []sample // the oldest first; none is older than the newest covered one
	until   time.Time
	recent  bool // the newest or the last but one sample is covered
	last    time.Time
	pace    pace
	behind  int64
	held    bool
}

// part is the state of one partition.
type part struct {
	seen
	first   int64 // end at which it was seen first
	there   bool  // in the last look
	movedAt time.Time
	// doubted says that its log was cut: its committed offset was for the log before, until it changes.
	doubted bool
	was     int64 // committed offset then
}

func newTrack(margin time.Duration) *track { return &track{margin: margin, number: map[place]int{}} }

// look adds a look that began at a time. before has the committed offsets that were read before the ends.
func (t *track) look(at time.Time, before map[place]int64, found map[place]seen) {
	if !t.last.IsZero() && jumped(t.last, at) {
		t.clockMoved(jump(t.last, at))
	}
	for i := range t.parts {
		t.parts[i].there = false
	}
	for p, s := range found {
		i, known := t.number[p]
		if !known {
			i = len(t.parts)
			t.number[p] = i
			t.parts = append(t.parts, part{seen: s, first: s.end, movedAt: at})
		}
		t.parts[i].update(at, s, before[p], known, func() { t.samples = nil })
	}
	now := sample{at: at, ends: make([]int64, len(t.parts))}
	t.behind, t.held = 0, false
	positions := int64(0)
	for i := range t.parts {
		p := &t.parts[i]
		if !p.there {
			continue
		}
		now.ends[i] = p.end
		n := p.waiting()
		t.behind += n
		positions += max(p.position(), p.start)
		t.held = t.held || n > 0 && at.Sub(p.movedAt) >= stalled
	}
	t.samples = append(t.samples, now)
	t.cover()
	t.pace.add(at, positions)
	t.last = at
}

// waits lists the partitions of the last look.
func (t *track) waits() []Waits {
	all := make([]Waits, 0, len(t.parts))
	for p, i := range t.number {
		if one := &t.parts[i]; one.there {
			all = append(all, Waits{p.topic, p.partition, one.waiting(), one.movedAt})
		}
	}
	slices.SortFunc(all, func(a, b Waits) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return all
}

// jump returns how much more time passed between two times by the wall clock than by the monotonic one.
func jump(from, to time.Time) time.Duration {
	return to.Round(0).Sub(from.Round(0)) - to.Sub(from)
}

// jumped reports whether the wall clock and the monotonic clock disagree about the time between.
func jumped(from, to time.Time) bool {
	by := jump(from, to)
	return by > mostJump || by < -mostJump
}

// clockMoved drops the samples of the clock before it moved. If it was set back, it may have been ahead when it said until when
// all is stored. So that moves back as well.
func (t *track) clockMoved(by time.Duration) {
	t.samples = nil
	if by < 0 && !t.until.IsZero() {
		t.until = t.until.Add(by)
	}
}

// update takes over what a look has read. cut is called if the log was cut.
func (p *part) update(at time.Time, s seen, before int64, known bool, cut func()) {
	if s.end < p.end || before > s.end {
		p.doubted, p.was = true, max(before, p.committed)
		p.first = s.end
		cut()
	}
	if p.doubted && s.hasCommit && s.committed != p.was && s.committed <= s.end {
		p.doubted = false
	}
	if !known || s.position() != p.position() || s.waiting() == 0 {
		p.movedAt = at
	}
	p.seen, p.there = s, true
}

// cover finds the newest sample that is covered, and drops the older ones.
func (t *track) cover() {
	t.recent = false
	for n := len(t.samples) - 1; n >= 0; n-- {
		if !t.covers(t.samples[n]) {
			continue
		}
		if until := t.samples[n].at.Add(-t.margin); until.After(t.until) {
			t.until = until
		}
		t.recent = n >= len(t.samples)-2
		t.samples = t.samples[n:]
		break
	}
	if len(t.samples) > mostSamples {
		t.thin()
	}
}

// covers reports whether all that had reached Kafka before a sample has a home.
func (t *track) covers(s sample) bool {
	for i := range t.parts {
		p := &t.parts[i]
		need := p.first
		if i < len(s.ends) {
			need = s.ends[i]
		}
		if p.there && need > 0 && (p.doubted || p.position() < need) {
			return false
		}
	}
	return true
}

// thin drops every second sample of the older half. Any of them may go: the others stay true.
func (t *track) thin() {
	kept := t.samples[:0]
	for n, s := range t.samples {
		if n >= len(t.samples)/2 || n%2 == 0 {
			kept = append(kept, s)
		}
	}
	t.samples = kept
}
