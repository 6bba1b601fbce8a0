package ledgermodel

import (
	"cmp"
	"context"
	"slices"
	"time"

	"docket/internal/desk/ledger"
)

// growth has the numbers of letters by client, and those that are only in Kafka.
type growth struct {
	most   int               // limit for a client in an hour; 0: none
	hour   func() time.Time  // present hour
	counts map[string]int    // by client, for the hour in at
	at     time.Time         // zero: none
	ranges []*ledger.Surplus // by id, from 1 on
}

// Bounded limits the letters of a client in an hour. hour returns the present hour; nil: the clock's.
func (b *Book) Bounded(most int, hour func() time.Time) *Book {
	b.growth.most, b.growth.hour = most, hour
	return b
}

// now returns the hour. A new one has no counts.
func (g *growth) now() time.Time {
	hour := time.Now().UTC().Truncate(time.Hour)
	if g.hour != nil {
		hour = g.hour()
	}
	if g.counts == nil || !hour.Equal(g.at) {
		g.counts, g.at = map[string]int{}, hour
	}
	return hour
}

// has reports whether a place is in a range.
func (g *growth) has(topic string, partition int32, offset int64) bool {
	return slices.ContainsFunc(g.ranges, func(s *ledger.Surplus) bool { return s.Has(topic, partition, offset, "", true) })
}

func (g *growth) covers(l *ledger.Letter) bool {
	return slices.ContainsFunc(g.ranges, func(s *ledger.Surplus) bool {
		return s.Has(l.Found.Topic, l.Found.Partition, l.Found.Offset, l.Client, false) && (s.State == ledger.SurplusOpen || !l.Found.Stamp.After(s.LastAt))
	})
}

// fresh is a letter that is not in the ledger.
type fresh struct {
	*ledger.Letter
	parent string
}

// admit decides which letters enter, like dead_letters_admit. left are the ids of those beyond the limit.
func (b *Book) admit(own []fresh, all []ledger.Letter, of *ledger.Surplus, anyway bool) (admitted []fresh, left map[string]bool) {
	g := &b.growth
	left = map[string]bool{}
	if g.most == 0 && of == nil || len(own) == 0 {
		return own, left
	}
	hour := g.now()
	byPlace := slices.Clone(own)
	slices.SortStableFunc(byPlace, func(a, b fresh) int {
		return cmp.Or(cmp.Compare(a.Found.Topic, b.Found.Topic), cmp.Compare(a.Found.Partition, b.Found.Partition), cmp.Compare(a.Found.Offset, b.Found.Offset))
	})
	enters := map[string]bool{}
	for _, f := range byPlace {
		client := f.Client
		if of != nil {
			client = of.Client
		}
		switch {
		case f.parent != "":
			enters[f.ID] = true
		case of == nil && g.covers(f.Letter):
		case anyway || g.most == 0 || g.counts[client] < g.most:
			enters[f.ID] = true
			g.counts[client]++
		default:
			left[f.ID] = true
		}
	}
	if of == nil {
		for i := range all {
			if left[all[i].ID] {
				g.leave(&all[i], hour)
			}
		}
	}
	return slices.DeleteFunc(own, func(f fresh) bool { return !enters[f.ID] }), left
}

// leave adds a record to the open range of its client, partition and hour.
func (g *growth) leave(l *ledger.Letter, hour time.Time) {
	at, stamp := l.Found.Offset, l.Found.Stamp
	for _, s := range g.ranges {
		if s.State == ledger.SurplusOpen && s.Topic == l.Found.Topic && s.Partition == l.Found.Partition && s.Client == l.Client && s.Hour.Equal(hour) {
			s.First, s.Next, s.Last, s.Letters = min(s.First, at), min(s.Next, at), max(s.Last, at), s.Letters+1
			if stamp.Before(s.FirstAt) {
				s.FirstAt = stamp
			}
			if stamp.After(s.LastAt) {
				s.LastAt = stamp
			}
			return
		}
	}
	g.ranges = append(g.ranges, &ledger.Surplus{
		ID: int64(len(g.ranges) + 1), Topic: l.Found.Topic, Partition: l.Found.Partition, Client: l.Client, Hour: hour, First: at, Last: at, Next: at, Letters: 1,
		FirstAt: stamp, LastAt: stamp, LeftAt: time.Now(), State: ledger.SurplusOpen,
	})
}

// open returns an open range; nil if there is none with that id.
func (g *growth) open(id int64) *ledger.Surplus {
	if id < 1 || id > int64(len(g.ranges)) || g.ranges[id-1].State != ledger.SurplusOpen {
		return nil
	}
	return g.ranges[id-1]
}

// Surplus implements [ledger.Growth].
func (b *Book) Surplus(ctx context.Context, all bool, after int64, n int) (ranges []ledger.Surplus, err error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	b.growth.now()
	for _, s := range b.growth.ranges {
		if all && (after == 0 || s.ID < after) || !all && s.State == ledger.SurplusOpen && s.ID > after {
			one := *s
			one.Growth = int64(b.growth.counts[s.Client])
			ranges = append(ranges, one)
		}
	}
	if all {
		slices.Reverse(ranges)
	}
	return ranges[:min(n, len(ranges))], nil
}

// SurplusSums implements [ledger.Growth]. All losses count as recent.
func (b *Book) SurplusSums(ctx context.Context) (ledger.SurplusSums, error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return ledger.SurplusSums{}, err
	}
	defer end()
	sums := ledger.SurplusSums{Letters: map[ledger.SurplusState]int64{}}
	for _, s := range b.growth.ranges {
		sums.Letters[ledger.SurplusOpen] += s.Open()
		sums.Letters[ledger.SurplusEntered] += s.Entered
		sums.Letters[ledger.SurplusArchived] += s.Archived
		sums.Letters[ledger.SurplusLost] += s.Lost
		if s.State == ledger.SurplusOpen && (sums.Oldest.IsZero() || s.LeftAt.Before(sums.Oldest)) {
			sums.Oldest = s.LeftAt
		}
	}
	return sums, nil
}

// EnterSurplus implements [ledger.Growth].
func (b *Book) EnterSurplus(ctx context.Context, p ledger.Portion, maxAttempts int, by ledger.Actor) (count ledger.EnteredCount, done ledger.Passed, err error) {
	if by.Name == "" {
		return count, done, ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return count, done, err
	}
	defer end()
	s := b.growth.open(p.ID)
	if s == nil || s.Next != p.From {
		return count, done, ledger.ErrLost
	}
	count, left, ended := b.enter(p.Letters, maxAttempts, by, now, s, p.Anyway)
	next := p.To
	for i := range p.Letters {
		if l := &p.Letters[i]; left[l.ID] {
			next = min(next, l.Found.Offset)
		}
	}
	var earliest time.Time
	for i := range p.Letters {
		switch l := &p.Letters[i]; {
		case l.Found.Offset >= next:
			if earliest.IsZero() || l.Found.Stamp.Before(earliest) {
				earliest = l.Found.Stamp
			}
		case ended[l.ID] || !b.isNew(l):
			s.Entered++
		}
	}
	if !earliest.IsZero() {
		s.FirstAt = earliest
	}
	if s.Next = next; next > s.Last {
		s.ClosedAt, s.State, s.Lost = now, ledger.SurplusEntered, max(s.Letters-s.Entered, 0)
		if s.Lost > 0 {
			s.State = ledger.SurplusLost
		}
	}
	return count, ledger.Passed{Next: next, Lost: s.Lost}, nil
}

// ArchivedSurplus implements [ledger.Growth].
func (b *Book) ArchivedSurplus(ctx context.Context, id, from, last int64, archive string, letters int64) (lost int64, err error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	s := b.growth.open(id)
	if s == nil || s.Next != from || s.Last != last || archive == "" {
		return 0, ledger.ErrLost
	}
	s.State, s.ClosedAt, s.Next, s.ArchivedFrom, s.ArchivedIn, s.Archived = ledger.SurplusArchived, now, last+1, from, archive, letters
	s.Lost = max(s.Letters-s.Entered-letters, 0)
	return s.Lost, nil
}

// OrderSurplus implements [ledger.Growth].
func (b *Book) OrderSurplus(ctx context.Context, id int64, by ledger.Actor) error {
	if by.Name == "" {
		return ledger.ErrNobody
	}
	now, end, err := b.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s := b.growth.open(id)
	if s == nil || s.OrderedBy != "" {
		return ledger.ErrNotFound
	}
	s.OrderedAt, s.OrderedBy, s.OrderedWhy = now, by.Name, by.Why
	return nil
}

// TrimSurplus implements [ledger.Growth]. The model forgets nothing.
func (b *Book) TrimSurplus(ctx context.Context) error { return ctx.Err() }
