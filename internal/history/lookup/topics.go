package lookup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// part is a range of a topic to be read, and its progress.
type part struct {
	name, topic string
	where       Where
	group       string // it begins at this group's committed offset; empty: at the start of the topic
	// from and upTo limit a range that a desk left behind.
	from, upTo map[int32]int64

	found   []hit
	ends    map[int32]int64
	want    int64
	read    int64
	bounded bool
	at      time.Time // time of the request for its end
	err     error
}

// hit is a record with one of the ids.
type hit struct {
	id   string
	f    Found
	body []byte
}

var errBound = errors.New("enough")

// parts returns the topics, in the order in which records move. The dead-letter topics are read from the desk's
// offset, because the ledger has the records before it; without a ledger from their start.
func (s *search) parts(ledger bool) []*part {
	set := s.look.Settings
	desk := set.DeskGroup
	if !ledger {
		desk = ""
	}
	var parts []*part
	for _, l := range set.Lanes() {
		parts = append(parts, &part{name: "records of " + l.Topic + " that are not read yet", topic: l.Topic, where: Unread, group: l.Group})
	}
	letters := len(parts) + 1 // those of the dead-letter topics begin here
	parts = append(parts, []*part{
		{name: "parked records in " + set.KafkaParkingTopic, topic: set.KafkaParkingTopic, where: Parked, group: set.ParkingGroup},
		{name: deadName(set.KafkaDLQTopic, ledger), topic: set.KafkaDLQTopic, where: Dead, group: desk},
		{name: deadName(set.KafkaParkingDLQTopic, ledger), topic: set.KafkaParkingDLQTopic, where: Exhausted, group: desk},
	}...)
	if !ledger {
		return parts
	}
	for _, all := range parts[letters:] {
		if p := s.leftIn(all.topic, all.where); p != nil {
			parts = append(parts, p)
		}
	}
	return parts
}

// leftIn returns the part of a topic with the letters that desks left: in each partition from the first range to the
// last; nil if there is none. The ledger has the records in between, and answers for them.
func (s *search) leftIn(topic string, where Where) *part {
	p := &part{name: "dead letters in " + topic + " that a desk has read and not entered", topic: topic, where: where, from: map[int32]int64{}, upTo: map[int32]int64{}}
	for i := range s.ranges {
		r := &s.ranges[i]
		if r.Topic != topic || r.Open() == 0 {
			continue
		}
		if at, there := p.from[r.Partition]; !there || r.Next < at {
			p.from[r.Partition] = r.Next
		}
		p.upTo[r.Partition] = max(p.upTo[r.Partition], r.Last+1)
	}
	if len(p.from) == 0 {
		return nil
	}
	return p
}

// left reports whether a desk left a record in Kafka.
func (s *search) left(r *kgo.Record) bool {
	for i := range s.ranges {
		if s.ranges[i].Has(r.Topic, r.Partition, r.Offset, "", true) {
			return true
		}
	}
	return false
}

func deadName(topic string, ledger bool) string {
	if ledger {
		return "dead letters in " + topic + " that are not in the ledger yet"
	}
	return "dead letters in " + topic
}

// open opens Kafka; nil if it cannot.
func (s *search) open() (topics Topics, let func()) {
	let = func() {}
	if s.look.Topics == nil {
		return nil, let
	}
	topics, let, err := s.look.Topics()
	if err != nil {
		s.failed("Kafka", err)
		return nil, func() {}
	}
	return topics, let
}

// begin notes the offsets of the groups, and reads the spools after those of the lanes and of the replayer. So a record that
// a program spools meanwhile is found there. The offsets of desks may be read at any time before the ends of their topics.
func (s *search) begin(ctx context.Context, topics Topics, limits Limits) {
	set := s.look.Settings
	var later sync.WaitGroup
	for _, topic := range []string{set.KafkaDLQTopic, set.KafkaParkingDLQTopic} {
		later.Go(func() { s.position(ctx, topics, set.DeskGroup, topic) })
	}
	var lanes sync.WaitGroup
	lanes.Go(func() { s.position(ctx, topics, set.ParkingGroup, set.KafkaParkingTopic) })
	for _, l := range set.Lanes() {
		lanes.Go(func() { s.position(ctx, topics, l.Group, l.Topic) })
	}
	lanes.Wait()
	s.readSpools(ctx, limits)
	later.Wait()
	s.tellSpools(s.noted())
}

// position notes the committed offsets of a group.
func (s *search) position(ctx context.Context, topics Topics, group, topic string) {
	if topics == nil {
		return
	}
	next, notes, err := topics.CommittedNoted(ctx, group, topic)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.positions[topic] = position{next, err}
	if group == s.look.Settings.DeskGroup { // a desk has no spool
		return
	}
	for p, offset := range next {
		s.beside.See(offset, notes[p])
	}
}

// quiet says of each topic what is known of it without a question. Letters that a desk left in it were not searched.
func (s *search) quiet(ledger bool, known Quiet) {
	for _, p := range s.parts(ledger) {
		if known.Nothing && p.from == nil {
			s.looked(p.name, "0 up to "+known.Until.UTC().Format(time.RFC3339))
			continue
		}
		s.missed(p.name, "Kafka answers too slowly just now: use `docket where-is`")
	}
}

// scan reads all topics at once.
func (s *search) scan(ctx context.Context, topics Topics, ledger bool, limits Limits) {
	parts := s.parts(ledger)
	if topics == nil {
		if s.look.Topics == nil {
			for _, p := range parts {
				s.missed(p.name, "this program does not read Kafka")
			}
		}
		return
	}
	s.look.seen.scanned(scanned{}) // this scan forgets what it finds moved on
	var all sync.WaitGroup
	for _, p := range parts {
		all.Go(func() { s.readPart(ctx, topics, p, limits) })
	}
	all.Wait()
	whole := ledger && s.noSpools()
	last := scanned{at: s.began, spools: s.noted()}
	for _, p := range parts {
		s.tell(p, limits)
		whole = whole && p.err == nil && !p.bounded && p.upTo == nil
		last.topics, last.places = append(last.topics, p.topic), append(last.places, Searched{p.name, p.note()})
	}
	if whole {
		s.look.seen.scanned(last)
	}
}

func (s *search) readPart(ctx context.Context, topics Topics, p *part, limits Limits) {
	from := p.from
	if p.group != "" {
		now := s.positions[p.topic]
		if p.err = now.err; p.err != nil {
			return
		}
		from = now.next
	}
	// A range that a desk left is short, and its topic is searched from another place as well.
	remembers := s.look.seen != nil && p.upTo == nil
	var identity string
	if remembers {
		// Before the ends: if the topic is made again in between, the next look sees another identity and begins again.
		if identity, p.err = topics.Identity(ctx, p.topic); p.err != nil {
			return
		}
	}
	if p.ends, p.err = topics.Ends(ctx, p.topic); p.err != nil {
		return
	}
	for partition, end := range p.ends {
		if upTo, there := p.upTo[partition]; there {
			p.ends[partition] = min(end, upTo)
		} else if p.upTo != nil {
			delete(p.ends, partition)
		}
	}
	p.at = s.look.now()
	begin := make(map[int32]int64, len(p.ends))
	for partition, end := range p.ends {
		// An offset beyond the end is from an earlier topic of this name.
		if at := from[partition]; at <= end {
			begin[partition] = at
		}
		p.want += end - begin[partition]
	}
	if p.want == 0 {
		return
	}
	if remembers {
		s.readOn(ctx, topics, p, identity, begin, limits)
		return
	}
	_, p.err = topics.Scan(ctx, p.topic, begin, p.ends, s.reading(p, limits, func(*kgo.Record, string) bool { return true }))
}

// readOn is a scan that begins where the last one ended. The records that the last one met are read again if they may have one
// of the ids.
func (s *search) readOn(ctx context.Context, topics Topics, p *part, identity string, begin map[int32]int64, limits Limits) {
	t := s.look.seen.topic(p.topic)
	defer t.mu.Unlock()
	on := t.next(identity, begin, p.ends)
	before, at := t.records(), t.with(s.order, p.ends)
	for round := 0; p.err == nil && !p.bounded; round++ {
		from, to := map[int32]int64{}, map[int32]int64{}
		for partition, offsets := range at {
			if round < len(offsets) {
				from[partition], to[partition] = offsets[round], offsets[round]+1
			}
		}
		if len(to) == 0 {
			break
		}
		_, p.err = topics.Scan(ctx, p.topic, from, to, s.reading(p, limits, func(*kgo.Record, string) bool { return true }))
	}
	p.read = before
	if p.err != nil || p.bounded {
		return
	}
	left := maps.Clone(p.ends)
	maps.DeleteFunc(left, func(partition int32, end int64) bool { return on[partition] >= end })
	if len(left) == 0 {
		return
	}
	limits.Records += int(before)
	_, p.err = topics.Scan(ctx, p.topic, on, left, s.reading(p, limits, func(r *kgo.Record, id string) bool {
		t.met(r.Partition, r.Offset, id)
		return t.kept < mostSeen
	}))
	if p.err == nil { // markers of transactions may follow the last record
		for partition, end := range left {
			t.spans[partition].to = end
		}
	}
}

// reading returns the step of a scan, which notes the records of a part that have one of the ids. It calls met with the id of
// each decision, and at least once for each record. The scan ends if met returns false.
func (s *search) reading(p *part, limits Limits, met func(r *kgo.Record, id string) bool) func(r *kgo.Record) error {
	var bytes int64
	return func(r *kgo.Record) error {
		if bytes += int64(len(r.Value)); p.read == int64(limits.Records) || bytes > limits.Bytes {
			p.bounded = true
			return errBound
		}
		p.read++
		s.read.Add(1)
		more := true
		claims := s.claims(p.where, r)
		for _, c := range claims {
			more = met(r, c.id) && more
			if s.answers[c.id] != nil {
				c.id = strings.Clone(c.id)
				p.found = append(p.found, hit{c.id, s.record(p.where, r, c), c.body})
			}
		}
		if len(claims) == 0 {
			more = met(r, "")
		}
		if !more || len(p.found) > mostFound*len(s.order) {
			p.bounded = true
			return errBound
		}
		return nil
	}
}

// tell reports the results of a part, and whether it was read completely.
func (s *search) tell(p *part, limits Limits) {
	for _, h := range p.found {
		s.found(h.id, h.f, h.body)
	}
	switch {
	case p.bounded:
		s.missed(p.name, fmt.Sprintf("only the first %d of up to %d records were read", p.read, p.want))
	case p.err != nil && p.read > 0 && errors.Is(p.err, context.DeadlineExceeded):
		s.missed(p.name, fmt.Sprintf("it timed out after %v: %d of up to %d records were read", limits.Within, p.read, p.want))
	case errors.Is(p.err, context.DeadlineExceeded):
		s.missed(p.name, fmt.Sprintf("Kafka did not answer within %v", limits.Within))
	case p.err != nil:
		s.failed(p.name, p.err)
	case p.upTo != nil && s.more: // the gap of the other ranges names this place
	default:
		s.looked(p.name, p.note())
	}
}

// note says how many records were read, and when.
func (p *part) note() string {
	return fmt.Sprintf("%d up to %s", p.read, p.at.UTC().Format(time.RFC3339))
}

// claim is one decision of a record.
type claim struct {
	id    string
	index int // inside the record; [envelope.NoIndex] if it has only one
	time  time.Time
	code  string // why the decoder refuses it; empty: it does not
	body  []byte

	shared bool // it shares a dead letter, so index and code are its own
}

// claims returns the decisions of a record. Refused ones are included as far as they are readable. No value may end a lookup,
// so a panic of the decoder counts as an unreadable value. The ids may be parts of the record.
func (s *search) claims(where Where, r *kgo.Record) (all []claim) {
	defer func() {
		if recover() != nil {
			all = nil
		}
	}()
	parts, shared := s.rest(where, r)
	sole := false
	if !shared {
		read, refused := decision.Decode(r.Value, s.mostRecord())
		if refused != nil {
			return s.claimsOfRefused(r, string(refused.Reason))
		}
		parts, sole = read.Parts, read.Sole
	}
	for _, part := range parts {
		if sole {
			part.Index = envelope.NoIndex
		}
		if part.Err != nil {
			c := decision.ClaimOf(part.Value)
			all = append(all, claim{id: c.ID, index: part.Index, time: c.Time, code: string(part.Err.Reason), shared: shared})
			continue
		}
		all = append(all, claim{id: part.Log.ID, index: part.Index, time: part.Log.Time, body: part.Log.Came(), shared: shared})
	}
	return all
}

// claimsOfRefused returns what a record claims that the decoder refuses as a whole: at least one claim, maybe without an
// id. An array claims what its elements do.
func (s *search) claimsOfRefused(r *kgo.Record, code string) (all []claim) {
	for place, c := range decision.ClaimsOf(r.Value, s.mostRecord()) {
		all = append(all, claim{id: c.ID, index: place, time: c.Time, code: code})
	}
	if len(all) == 0 {
		c := decision.ClaimOf(r.Value)
		all = append(all, claim{id: c.ID, index: envelope.NoIndex, time: c.Time, code: code})
	}
	return all
}

// rest returns the decisions that share a dead letter, each with its place in their upload; false for other records.
func (s *search) rest(where Where, r *kgo.Record) (parts []decision.Part, shared bool) {
	if where != Dead && where != Exhausted || !slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == envelope.Refused }) {
		return nil, false
	}
	n := s.look.Settings.HeaderKeys().OpenDead(r).Refused
	if n == 0 {
		return nil, false
	}
	parts, shared = new(decision.Decoder).Rest(r.Value, s.mostRecord())
	return parts, shared && len(parts) == n
}

func (s *search) mostRecord() int64 {
	if n := int64(s.look.Settings.MaxRecordBytes); n > 0 {
		return n
	}
	return 16 << 20
}

// farthest limits a not-before. Only the replayer's settings have the limit.
func (s *search) farthest() time.Duration {
	if most := s.look.Settings.ParkingMaxBackoff; most > 0 {
		return most
	}
	return 365 * 24 * time.Hour
}

// record describes a record with this claim.
func (s *search) record(where Where, r *kgo.Record, c claim) Found {
	keys := s.look.Settings.HeaderKeys()
	f := Found{Where: where, Name: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: c.time, Code: c.code, FailedAt: r.Timestamp}
	switch where {
	case Parked:
		f.Origin = envelope.Open(r).Origin
		if f.Unproven = !keys.Prove(r); !f.Unproven {
			e := envelope.OpenParked(r, s.farthest())
			f.Origin, f.Attempt, f.NotBefore, f.Code = e.Origin, e.Attempt, e.NotBefore, e.Code
		}
	case Dead, Exhausted:
		d := keys.OpenDead(r)
		f.Origin, f.Kind, f.Code, f.FailedAt, f.Letter = d.Origin, d.Cause.Kind, d.Cause.Code, d.FailedAt, d.ID
		f.Unproven, f.Left = d.Cause.Kind == envelope.Foreign, s.left(r)
		if c.shared && c.code != "" {
			f.Code = c.code
		}
	default:
		f.Origin = envelope.Open(r).Origin
	}
	if c.index != envelope.NoIndex && f.Origin.Index == envelope.NoIndex {
		f.Origin.Index = c.index
	}
	return f
}
