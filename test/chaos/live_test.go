//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// live checks, while everything is under way, that each decision below the committed offsets has a home: in the order
// committed offsets, spools, the replayer's offsets, parking, both dead-letter topics, table. Records move from left to
// right, with one exception: a parked record can be spooled on its way back to parking. So only a decision that has been
// without a home in several looks is a finding.
type live struct {
	*campaign
	forwarded *kgo.Client

	next     verify.Offsets // source offsets below are looked at or suspects
	suspects map[conservation.Place]*suspect
	parked   map[conservation.Place]conservation.Place // by origin: where in parking it is, the last time
	dead     map[conservation.Place]bool               // in a dead-letter topic
	read     map[string]map[int32]int64                // forwarded topics, up to where
}

type suspect struct {
	decision conservation.Decision
	looks    int
	since    time.Time
}

const (
	enoughLooks  = 3
	enoughTime   = 10 * time.Second
	mostPerLook  = 20000 // decisions, so that a look ends
	decisionsSQL = 2000  // in one query
)

func (c *campaign) live(ctx context.Context) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.cluster.Direct()...), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		c.places.ParkingTopic: fromStart(4), c.places.DLQTopic: fromStart(3), c.places.ParkingDLQ: fromStart(2),
	}))
	if err != nil {
		c.broken("the campaign", "no client to look at homes: %v", err)
		return
	}
	defer cl.Close()
	l := &live{
		campaign: c, forwarded: cl, next: verify.Offsets{}, suspects: map[conservation.Place]*suspect{},
		parked: map[conservation.Place]conservation.Place{}, dead: map[conservation.Place]bool{}, read: map[string]map[int32]int64{},
	}
	for wait(ctx, liveEvery) {
		looking, cancel := context.WithTimeout(ctx, 30*time.Second)
		if err := l.look(looking); err != nil {
			c.note("not looked at: %v", err)
		}
		cancel()
	}
}

func fromStart(partitions int32) map[int32]kgo.Offset {
	offsets := map[int32]kgo.Offset{}
	for p := range partitions {
		offsets[p] = kgo.NewOffset().AtStart()
	}
	return offsets
}

// look is one look. Where a part cannot be asked nothing is concluded.
func (l *live) look(ctx context.Context) error {
	adm := kadm.NewClient(l.forwarded)
	done, err := committedBy(ctx, adm, l.sources())
	if err != nil {
		return err
	}
	spooled := map[conservation.Place]bool{}
	for _, dir := range l.places.SpoolDirs {
		found, err := conservation.ReadSpool(dir)
		if err != nil {
			return err
		}
		for _, f := range found {
			spooled[l.origin(f)] = true
		}
	}
	replayed, err := committed(ctx, adm, l.places.ParkingGroup, l.places.ParkingTopic)
	if err != nil {
		return err
	}
	if err := l.readForwarded(ctx, adm); err != nil {
		return err
	}
	l.suspect(done)
	homeless := map[conservation.Place]*suspect{}
	for place, s := range l.suspects {
		in, isParked := l.parked[place]
		if spooled[place] || l.dead[place] || isParked && in.Offset >= replayed[in.Partition] {
			l.housed(place)
			continue
		}
		homeless[place] = s
	}
	return l.askTable(ctx, homeless)
}

// suspect makes suspects of what was committed since the last look.
func (l *live) suspect(done verify.Offsets) {
	for partition, offset := range done {
		for ; l.next[partition] < offset && len(l.suspects) < mostPerLook; l.next[partition]++ {
			at := conservation.Place{Topic: partition.Topic, Partition: partition.Number, Offset: l.next[partition]}
			record, known := l.ledger.At(at.Topic, at.Partition, at.Offset)
			if !known {
				break // its acknowledgement is still under way
			}
			for i, d := range record.Decisions {
				at.Index = i
				l.suspects[at] = &suspect{decision: d}
			}
		}
	}
}

func (l *live) housed(place conservation.Place) {
	delete(l.suspects, place)
	l.result.checked.Add(1)
}

// readForwarded reads on in the topics of forwarded records, up to where each ends now.
func (l *live) readForwarded(ctx context.Context, adm *kadm.Client) error {
	ends, err := adm.ListEndOffsets(ctx, l.places.ParkingTopic, l.places.DLQTopic, l.places.ParkingDLQ)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("list offsets of forwarded records: %w", err)
	}
	behind := func() bool {
		missing := false
		ends.Each(func(o kadm.ListedOffset) { missing = missing || l.read[o.Topic][o.Partition] < o.Offset })
		return missing
	}
	for behind() {
		fetches := l.forwarded.PollFetches(ctx)
		if ctx.Err() != nil {
			return errors.New("forwarded records cannot be read now")
		}
		fetches.EachRecord(l.remember)
	}
	return nil
}

func (l *live) remember(r *kgo.Record) {
	if l.read[r.Topic] == nil {
		l.read[r.Topic] = map[int32]int64{}
	}
	l.read[r.Topic][r.Partition] = r.Offset + 1
	f := verify.ForwardedOf(r, home.Parked, r.Topic)
	at := l.origin(f)
	if r.Topic == l.places.ParkingTopic {
		l.parked[at] = conservation.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
		return
	}
	l.dead[at] = true
}

// origin is where a forwarded decision was first read, as the ledger has it: one that is alone in its record is 0. A record that
// a desk put back may be dead again before it is known that it was put back.
func (l *live) origin(f conservation.Forwarded) conservation.Place {
	at := f.Place
	if record, known := l.ledger.At(at.Topic, at.Partition, at.Offset); at.Index == envelope.NoIndex || known && len(record.Decisions) == 1 {
		at.Index = 0
	}
	return at
}

// askTable looks for rows of those that have no other home.
func (l *live) askTable(ctx context.Context, homeless map[conservation.Place]*suspect) error {
	var places []conservation.Place
	for place := range homeless {
		places = append(places, place)
	}
	return l.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for len(places) > 0 {
			n := min(len(places), decisionsSQL)
			if err := l.askSome(ctx, conn, places[:n], homeless); err != nil {
				return err
			}
			places = places[n:]
		}
		return nil
	})
}

func (l *live) askSome(ctx context.Context, conn *pgx.Conn, places []conservation.Place, homeless map[conservation.Place]*suspect) error {
	ids, times := make([]string, len(places)), make([]time.Time, len(places))
	for i, p := range places {
		ids[i], times[i] = homeless[p].decision.ID, homeless[p].decision.Time
	}
	found, err := conn.Query(ctx, `SELECT t.n FROM unnest($1::text[], $2::timestamptz[]) WITH ORDINALITY AS t(id, ts, n)
		WHERE t.id <> '' AND EXISTS (SELECT FROM decision_logs d WHERE d.decision_id = t.id AND d.ts = t.ts)`, ids, times)
	if err != nil {
		return fmt.Errorf("look for rows: %w", err)
	}
	numbers, err := pgx.CollectRows(found, pgx.RowTo[int64])
	if err != nil {
		return fmt.Errorf("look for rows: %w", err)
	}
	stored := map[int]bool{}
	for _, n := range numbers {
		stored[int(n-1)] = true
	}
	for i, p := range places {
		if stored[i] {
			l.housed(p)
			continue
		}
		l.unhoused(p, homeless[p])
	}
	return nil
}

// unhoused counts a look in vain, and finds a loss after enough of them.
func (l *live) unhoused(p conservation.Place, s *suspect) {
	if s.looks++; s.looks == 1 {
		s.since = time.Now()
	}
	if s.looks >= enoughLooks && time.Since(s.since) > enoughTime {
		l.broken("the live check", "%v (%s) is committed and has no home in %d looks", p, s.decision.ID, s.looks)
		delete(l.suspects, p)
	}
}
