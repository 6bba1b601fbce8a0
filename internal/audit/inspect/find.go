package inspect

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/history/lookup"
	"docket/internal/kafka"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// Query is a place to look for, or a decision id if Topic is empty.
type Query struct {
	verify.Place // Index is envelope.NoIndex for any
	ID           string
	Text         string // as it was given
}

// ParseQuery reads TOPIC/PARTITION/OFFSET, TOPIC/PARTITION/OFFSET/INDEX, or else a decision id.
func ParseQuery(text string) Query {
	parts := strings.Split(text, "/")
	if len(parts) != 3 && len(parts) != 4 {
		return Query{ID: text, Text: text}
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || partition < 0 {
		return Query{ID: text, Text: text}
	}
	offset, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || offset < 0 {
		return Query{ID: text, Text: text}
	}
	q := Query{Place: verify.Place{Topic: parts[0], Partition: int32(partition), Offset: offset, Index: envelope.NoIndex}, Text: text}
	if len(parts) == 4 {
		index, err := strconv.ParseInt(parts[3], 10, 32)
		if err != nil || index < 0 {
			return Query{ID: text, Text: text}
		}
		q.Index = int(index)
	}
	return q
}

// Whereabouts are the places of a record or a decision.
type Whereabouts struct {
	At      time.Time
	Records []Record
	// Refused are dead letters with the id that have no record in the source topic: those of the collector, and
	// foreign ones.
	Refused []ledger.Entry
	// Found are records with the id that no Record covers, such as those without proof that Docket wrote them.
	Found []lookup.Found
	// Looked are the places and ranges that were searched. Unlooked are the others, with reasons. Forgotten are those
	// that were given up on purpose, with names.
	Looked, Unlooked, Forgotten []string
	// Whole are places that would need the whole id, if the one of the query is shortened. Where anything has the id, maybe in
	// another shard, it is whole.
	Whole []string

	// Standby says that the database is a standby, which may lack what the primary has.
	Standby bool

	by *lookup.Answer // about the id of the query; nil: it has none
}

// Record is one Kafka record of the source, or its traces elsewhere.
type Record struct {
	verify.Place // Index is 0
	Produced     time.Time
	Gone         bool  // the source no longer has it
	Ahead        bool  // the source does not have it yet
	Start, End   int64 // of the partition
	Committed    int64 // of the partition; -1: none
	Readers      int   // members of the consumer's group; -1: not known
	Replayers    int   // members of the replayer's group; -1: not known
	Decisions    []Decision
}

// Decision is one decision of a record and all of its homes.
type Decision struct {
	verify.Place
	ID        string
	Time      time.Time
	Refused   string // the decoder's refusal; empty: it accepts it
	Rows      []Row
	Forwarded []Forwarded
	// Elsewhere are an archive or a spool that has it. Without rows and forwarded records they are its home.
	Elsewhere []lookup.Found
	// Unsought says that it has no other home, and was not searched by its id.
	Unsought bool

	body []byte
}

// Row is a row with the decision's identity.
type Row struct {
	verify.Row
	Equal bool // it has the decision's payload
}

// Forwarded is a forwarded record and the number of records before it.
type Forwarded struct {
	verify.Forwarded
	Before int64 // uncommitted parked records of its partition before it
	// Letter is the dead letter in the ledger; nil: it is not there, or there is none to be read.
	Letter *Letter
	// Left is the range of a dead letter that a desk read and left in Kafka; nil: none.
	Left *ledger.Surplus
	// Unasked says that there is neither, and that not all of the ledger was read.
	Unasked bool
}

// Letter describes a dead letter in the ledger.
type Letter struct {
	State ledger.State
	By    string // author of the last move
	Why   string
}

// Find looks for a record or a decision in every home. since limits how far back the topics are read if nothing else
// does: for a decision without a row, and for a record that the source no longer has.
func (s *System) Find(ctx context.Context, q Query, since time.Time) (*Whereabouts, error) {
	w := &Whereabouts{At: time.Now()}
	ctx = s.watched(ctx)
	var places []verify.Place
	var rows []verify.Row
	var err error
	if q.ID != "" || s.ours(q.Topic) {
		places, rows, err = s.places(ctx, w, q, since)
	} else {
		q, places, rows, err = s.reading(ctx, w, q)
	}
	if err != nil {
		return nil, err
	}
	for _, at := range places {
		r, err := s.find(ctx, w, at, since)
		if err != nil {
			return nil, err
		}
		r.only(q)
		r.remember(rows)
		w.Records = append(w.Records, r)
	}
	if len(w.Records) > 0 {
		w.letters(ctx, ledgerdb.New(s.db.DB))
	}
	if err := s.archived(ctx, w, q); err != nil {
		return nil, err
	}
	if w.Standby = s.standby(); w.Standby && !slices.ContainsFunc(w.Unlooked, func(of string) bool { return strings.HasSuffix(of, lookup.StandbyBehind) }) {
		w.Unlooked = append(w.Unlooked, behind)
	}
	w.settle()
	return w, nil
}

// mostSought limits the decisions of one record that are searched by their ids.
const mostSought = 10

// archived adds the archives, spools and letters of the ledger that have a committed decision without another home. After a
// search by id they are known. For a record they are searched by the ids of such decisions.
func (s *System) archived(ctx context.Context, w *Whereabouts, q Query) error {
	sought := 0
	for i := range w.Records {
		r := &w.Records[i]
		for j := range r.Decisions {
			d := &r.Decisions[j]
			if d.ID == "" || d.housed() || r.Ahead || r.Offset >= r.Committed {
				continue
			}
			a := w.by
			if q.ID == "" {
				if sought++; sought > mostSought {
					d.Unsought = true
					continue
				}
				found, err := s.elsewhere(ctx, d.ID)
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if err != nil {
					d.Unsought = true
					w.Unlooked = append(w.Unlooked, fmt.Sprintf("other places, by decision_id: %v", err))
					continue
				}
				a = &found
				w.looked(a)
			}
			if a != nil {
				d.add(a)
			}
		}
	}
	return nil
}

// looked adds the places that were searched for an id, and those that were not, each once.
func (w *Whereabouts) looked(a *lookup.Answer) {
	add := func(to *[]string, text string) {
		if !slices.Contains(*to, text) {
			*to = append(*to, text)
		}
	}
	for _, p := range lookup.SearchedIn(a.Looked) {
		add(&w.Looked, p)
	}
	for _, g := range a.NotLooked {
		switch {
		case g.Forgotten:
			add(&w.Forgotten, g.String())
		case g.Shortened:
			add(&w.Whole, g.String())
		default:
			add(&w.Unlooked, g.String())
		}
	}
}

// Lacks are the places that were not searched completely, with reasons.
func (w *Whereabouts) Lacks() []string { return append(slices.Clip(w.Unlooked), w.Whole...) }

// Has reports whether anything with the id was found.
func (w *Whereabouts) Has() bool { return len(w.Records)+len(w.Refused)+len(w.Found) > 0 }

// add takes over what an answer about its id has of the decision: an archived row, a letter, or a record in a spool.
func (d *Decision) add(a *lookup.Answer) {
	at := func(o envelope.Origin) bool {
		return o.Topic == d.Topic && o.Partition == d.Partition && o.Offset == d.Offset && max(0, o.Index) == d.Index
	}
	for _, row := range a.Archived {
		first := at(envelope.Origin{Topic: row.Topic, Partition: row.Partition, Offset: row.Offset, Index: row.Index})
		switch same := row.Time.Equal(d.Time); {
		case first, same && (row.Unreadable || verify.SameJSON(row.Raw, d.body)):
			d.Elsewhere = append(d.Elsewhere, lookup.InArchiveOf(row))
		case same:
			d.Rows = append(d.Rows, Row{verify.Row{Place: verify.Place{Topic: row.Topic, Partition: row.Partition, Offset: row.Offset, Index: row.Index}, ID: row.ID, Time: row.Time, StoredAt: row.StoredAt}, false})
		}
	}
	for i := range a.Letters {
		e := &a.Letters[i]
		if !at(e.Origin) || e.Cause.Kind == envelope.Foreign {
			continue
		}
		d.Forwarded = append(d.Forwarded, Forwarded{
			Forwarded: verify.Forwarded{
				Place: d.Place, Home: home.DeadLetter, Found: e.Found.Topic, At: verify.Position{Partition: e.Found.Partition, Offset: e.Found.Offset}, Kind: string(e.Cause.Kind), Code: e.Cause.Code,
				ID: e.ID, Entry: e.ID, FailedAt: e.FailedAt,
			},
			Letter: &Letter{State: e.State, By: e.ChangedBy, Why: e.Why},
		})
	}
	for _, f := range a.Found {
		if (f.Where == lookup.Archived || f.Where == lookup.Spooled) && !f.Unproven && at(f.Origin) {
			d.Elsewhere = append(d.Elsewhere, f)
		}
	}
}

// housed reports whether a row or a forwarded record is a home of the decision.
func (d *Decision) housed() bool {
	return slices.ContainsFunc(d.Rows, func(r Row) bool { return r.Equal }) ||
		slices.ContainsFunc(d.Forwarded, func(f Forwarded) bool { return f.Home != home.Parked || !f.Settled })
}

// places returns the source records of a query, and the rows that led there.
func (s *System) places(ctx context.Context, w *Whereabouts, q Query, since time.Time) ([]verify.Place, []verify.Row, error) {
	if q.ID != "" {
		return s.byID(ctx, w, q.ID, since)
	}
	at := q.Place
	at.Index = 0
	for _, t := range s.topics() {
		if at.Topic == t.name {
			places, err := s.behind(ctx, w, t, at)
			return places, nil, err
		}
	}
	return []verify.Place{at}, nil, nil
}

// reading takes a place of another topic than those of the settings for an id, as an id may look like a place. It is an
// error if nothing has that id.
func (s *System) reading(ctx context.Context, w *Whereabouts, q Query) (as Query, places []verify.Place, rows []verify.Row, err error) {
	places, rows, err = s.everywhere(ctx, w, q.Text)
	if err == nil && len(places)+len(w.Refused)+len(w.Found) == 0 {
		err = fmt.Errorf("%s is not a topic of the settings, and %s is not a decision_id that was found; if it is the topic of a lane, name the lane in DOCKET_LANES", q.Topic, q.Text)
	}
	return Query{ID: q.Text, Text: q.Text}, places, rows, err
}

// ours reports whether a topic is one of the settings.
func (s *System) ours(name string) bool {
	_, source := s.settings.Source(name)
	return source || slices.ContainsFunc(s.topics(), func(t topic) bool { return t.name == name })
}

// remember adds the rows that led to a record which the source no longer has.
func (r *Record) remember(rows []verify.Row) {
	for _, row := range rows {
		at := row.Place
		at.Index = 0
		if r.Gone && at == r.Place {
			r.Decisions = append(r.Decisions, Decision{Place: row.Place, ID: row.ID, Time: row.Time, Rows: []Row{{row, true}}})
		}
	}
}

// behind follows a forwarded record to the place where it was first read.
func (s *System) behind(ctx context.Context, w *Whereabouts, t topic, at verify.Place) ([]verify.Place, error) {
	r, start, end, err := s.record(ctx, at)
	if err != nil {
		return nil, err
	}
	if r == nil {
		w.Looked = append(w.Looked, fmt.Sprintf("%s/%d, which holds %d to %d", at.Topic, at.Partition, start, end-1))
		return nil, nil
	}
	f := verify.ForwardedBy(s.settings.HeaderKeys(), r, t.home, t.name)
	if f.Unplaced {
		return nil, fmt.Errorf("%s/%d/%d was refused before it came to Kafka (%s): it has no other place; docket dlq show %s shows its state",
			at.Topic, at.Partition, at.Offset, f.Code, f.Entry)
	}
	if f.Unproven {
		return nil, fmt.Errorf("%s/%d/%d: it is not proven that Docket wrote it, so its origin is not used", at.Topic, at.Partition, at.Offset)
	}
	if f.NoOrigin {
		return nil, fmt.Errorf("%s/%d/%d does not say where it was first read", at.Topic, at.Partition, at.Offset)
	}
	f.Index = 0
	return []verify.Place{f.Place}, nil
}

// record reads one record; nil if the partition does not have it.
func (s *System) record(ctx context.Context, at verify.Place) (r *kgo.Record, start, end int64, err error) {
	starts, err := s.kafka.Starts(ctx, at.Topic)
	if err != nil {
		return nil, 0, 0, err
	}
	ends, err := s.kafka.Ends(ctx, at.Topic)
	if err != nil {
		return nil, 0, 0, err
	}
	end, there := ends[at.Partition]
	if !there {
		return nil, 0, 0, fmt.Errorf("topic %s has no partition %d", at.Topic, at.Partition)
	}
	start = starts[at.Partition]
	if at.Offset < start || at.Offset >= end {
		return nil, start, end, nil
	}
	_, err = s.kafka.Scan(ctx, at.Topic, map[int32]int64{at.Partition: at.Offset}, map[int32]int64{at.Partition: at.Offset + 1}, func(one *kgo.Record) error {
		r = one
		return nil
	})
	return r, start, end, err
}

// find searches every home for the decisions of one record.
func (s *System) find(ctx context.Context, w *Whereabouts, at verify.Place, since time.Time) (Record, error) {
	r := Record{Place: at, Committed: -1, Readers: -1, Replayers: -1}
	var read *kgo.Record
	var err error
	lane, ours := s.settings.Source(at.Topic)
	if ours {
		if read, r.Start, r.End, err = s.record(ctx, at); err != nil {
			return r, err
		}
		r.Gone, r.Ahead = at.Offset < r.Start, at.Offset >= r.End
	} else {
		r.Gone = true // of another source, whose offsets mean nothing here
	}
	from := since
	if read != nil {
		r.Produced = read.Timestamp
		if read.Timestamp.Before(w.At) {
			from = read.Timestamp
		}
	}
	ev, err := s.look(ctx, from)
	if err != nil {
		return r, err
	}
	if next, ok := ev.Committed[verify.Partition{Topic: at.Topic, Number: at.Partition}]; ok {
		r.Committed = next
	}
	s.members(ctx, lane.Group, &r)
	if err := s.decisions(ctx, &r, read, ev); err != nil {
		return r, err
	}
	w.Looked = append(w.Looked, s.looked(ev, r, from)...)
	return r, nil
}

// members counts the members of the lane's group and of the replayer's. An error does not stop the search.
func (s *System) members(ctx context.Context, group string, r *Record) {
	c, err := kafka.Describe(ctx, s.brokers, nil, []string{group, s.settings.ParkingGroup})
	if err != nil || len(c.Groups) != 2 {
		return
	}
	if c.Groups[0].Err == nil {
		r.Readers = c.Groups[0].Members
	}
	if c.Groups[1].Err == nil {
		r.Replayers = c.Groups[1].Members
	}
}

// decisions lists a record's decisions with their homes.
func (s *System) decisions(ctx context.Context, r *Record, read *kgo.Record, ev *verify.Evidence) error {
	truth := verify.NewTruth()
	if read != nil {
		truth.Add(verify.DecisionsOf(read, int64(s.settings.MaxRecordBytes))...)
	}
	byIndex := make(map[int]*Decision)
	for _, d := range truth.Decisions() {
		byIndex[d.Index] = &Decision{Place: d.Place, ID: d.ID, Time: d.Time, Refused: d.Code, body: d.Body}
		if d.Code != "" {
			claim := decision.ClaimOf(d.Body)
			byIndex[d.Index].ID, byIndex[d.Index].Time = claim.ID, claim.Time
		}
	}
	for _, f := range verify.Parted(ev, truth).Forwarded {
		if f.NoOrigin || f.Topic != r.Topic || f.Partition != r.Partition || f.Offset != r.Offset {
			continue
		}
		index := max(0, f.Index)
		if byIndex[index] == nil {
			byIndex[index] = &Decision{Place: verify.Place{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Index: index}}
		}
		byIndex[index].Forwarded = append(byIndex[index].Forwarded, Forwarded{Forwarded: f, Before: max(0, f.At.Offset-ev.Replayed[f.At.Partition])})
	}
	var sought []*verify.Decision
	for _, d := range truth.Decisions() {
		if d.ID != "" {
			sought = append(sought, d)
		}
	}
	err := s.lookUp(ctx, sought, func(d *verify.Decision, row verify.Row, equal bool) {
		byIndex[d.Index].Rows = append(byIndex[d.Index].Rows, Row{row, equal})
	})
	for _, d := range byIndex {
		r.Decisions = append(r.Decisions, *d)
	}
	slices.SortFunc(r.Decisions, func(a, b Decision) int { return a.Index - b.Index })
	return err
}

// only keeps the decisions that the query names. Those without a readable id are kept if no other has the id.
func (r *Record) only(q Query) {
	if q.ID != "" && slices.ContainsFunc(r.Decisions, func(d Decision) bool { return d.ID == q.ID }) {
		r.Decisions = slices.DeleteFunc(r.Decisions, func(d Decision) bool { return d.ID != q.ID })
		return
	}
	r.Decisions = slices.DeleteFunc(r.Decisions, func(d Decision) bool {
		return q.ID != "" && d.ID != "" && d.ID != q.ID || q.Topic == r.Topic && q.Index != envelope.NoIndex && d.Index != q.Index
	})
}

// saw reports whether a spool is on this host.
func saw(ev *verify.Evidence, dir string) bool {
	return slices.ContainsFunc(ev.Spool, func(d verify.SpoolDir) bool { return d.Dir == strings.TrimSuffix(dir, "/") })
}

// looked lists the searched places.
func (s *System) looked(ev *verify.Evidence, r Record, from time.Time) []string {
	var all []string
	if !r.Gone && !r.Ahead && !s.standby() {
		all = append(all, "the table, by decision_id and ts")
	}
	for _, t := range s.topics() {
		all = append(all, fmt.Sprintf("%s since %s", t.name, from.Add(-margin).UTC().Format(time.RFC3339)))
	}
	for _, dir := range s.spools {
		if saw(ev, dir) {
			all = append(all, "spool "+dir)
		} else {
			all = append(all, "spool "+dir+", which is not on this host")
		}
	}
	return all
}
