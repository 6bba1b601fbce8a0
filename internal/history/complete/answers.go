package complete

import (
	"context"
	"slices"
	"time"

	"docket/internal/history/reader"
	"docket/internal/record/commitnote"
)

// Status is what a look found. The zero value knows nothing.
type Status struct {
	now       func() time.Time
	at        time.Time // when the look began; zero: there was none
	until     time.Time // zero: not known
	recent    bool      // all that had reached Kafka at the last look but one has its home
	held      bool
	behind    int64
	eta       estimate
	parked    *snapshot
	unentered int64
	spools    commitnote.Beside
	took      time.Duration // of the last look, or of the present one if that takes longer
	waits     []Waits
}

// Waits are the records that wait in a partition of a source topic.
type Waits struct {
	Topic     string
	Partition int32
	Records   int64
	MovedAt   time.Time // when a consumer last made progress in it, or it was seen first
}

// Waits returns what waits in each partition, and when that was looked at. It returns false if it is not known now. The
// caller must not change it.
func (s Status) Waits() (all []Waits, at time.Time, known bool) {
	return s.waits, s.at, s.current()
}

// slow is how long a look takes if Kafka is too slow for a request to ask it.
const slow = 2 * time.Second

// Slow reports whether Kafka is too slow for a request to ask it.
func (s Status) Slow() bool { return s.took >= slow }

// current reports whether the status is new enough to say what waits.
func (s *Status) current() bool {
	return !s.at.IsZero() && s.now().Sub(s.at) <= Lasts
}

// Until returns the time until which all that had reached Kafka has a home; zero: not known.
func (s Status) Until() time.Time { return s.until }

// Spools are what programs note of their spools. Known is false if some do not, or if it is not known now.
func (s Status) Spools() (note commitnote.Note, known bool) {
	note, known = s.spools.Note()
	return note, known && s.current()
}

// Read returns the time until which all that had reached Kafka was read and has left the parking topic and the dead-letter
// topics. It returns false if something waits in one of these, or if it is not known.
func (s Status) Read() (until time.Time, ok bool) {
	ok = s.current() && s.recent && s.parked != nil && s.parked.whole && len(s.parked.all) == 0 && s.unentered == 0
	return s.until, ok
}

// Books is the ledger, asked for dead letters that may still become rows.
type Books interface {
	// Waiting counts the dead letters of a range that can still become rows, and those without a known time or path. These
	// are the open ones, and closed ones whose retry is on its way. Known is false if there are others, or if they may
	// not be read. Primary is false if the server may lack rows, as a standby does.
	Waiting(ctx context.Context, r Range) (n int64, known, primary bool, err error)
}

// Answers say how complete answers are.
type Answers struct {
	// Status returns what is known of Kafka. It must not wait.
	Status func(ctx context.Context) Status
	// Books is nil if there is no ledger.
	Books  Books
	shards []*Answers // of [Joined], in place of all others
	// Asked asks another process, in place of all others: how complete an answer that finds something is. nil: none is.
	Asked func(ctx context.Context, r Range) (reader.Completeness, error)
	Now   func() time.Time // with Asked; nil: time.Now
	// Within limits the question to the ledger; default [BooksWithin]. After it the count is unknown.
	Within time.Duration
}

// BooksWithin is how long the ledger may take.
const BooksWithin = 100 * time.Millisecond

// Begun is an answer whose rows are not read yet.
type Begun struct {
	status  Status
	r       Range
	dead    *int64
	primary bool
	told    bool                 // the ledger answered
	shards  []Begun              // in place of all others but r
	given   *reader.Completeness // of Asked, in place of all others but r
}

// Begin reads what has to be known before the rows are read: Kafka's state, then the ledger. A record that moves on
// afterwards is a row when the rows are read. Nothing of it is an error. Without answers nothing is known.
func (a *Answers) Begin(ctx context.Context, r Range) Begun {
	if a != nil && len(a.shards) > 0 {
		return a.beginAll(ctx, r)
	}
	if a != nil && a.Asked != nil {
		return a.beginAsked(ctx, r)
	}
	if a == nil || a.Status == nil {
		return Begun{r: r}
	}
	b := Begun{status: a.Status(ctx), r: r}
	if a.Books == nil {
		return b
	}
	within := a.Within
	if within <= 0 {
		within = BooksWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	n, known, primary, err := a.Books.Waiting(ctx, r)
	if err != nil {
		return b
	}
	b.primary, b.told = primary, true
	if known && b.status.current() && b.status.unentered == 0 {
		b.dead = &n
	}
	return b
}

// Told reports whether the ledger answered, in every shard. If it did not, its database may be away.
func (b Begun) Told() bool {
	if len(b.shards) > 0 {
		return !slices.ContainsFunc(b.shards, func(one Begun) bool { return !one.Told() })
	}
	return b.told || b.given != nil
}

// Facts are what the answer found.
type Facts struct {
	Found    bool // some decision
	Archived bool // some decision of it is only in the archive
	Partly   bool // some place was not searched completely
	RowsLack bool // a part of the table was not read
}

// FactsOf are those of an answer with these decisions.
func FactsOf(decisions []reader.Decision, partly bool) Facts {
	f := Facts{Found: len(decisions) > 0, Partly: partly}
	for i := range decisions {
		f.Archived = f.Archived || decisions[i].Archived != nil
	}
	return f
}

// End says how complete the answer is.
func (b Begun) End(f Facts) reader.Completeness {
	if len(b.shards) > 0 {
		return b.endAll(f)
	}
	if b.given != nil {
		return b.endAsked(f)
	}
	c := reader.Completeness{Freshness: b.freshness(f), DeadLettered: b.dead}
	if !b.status.until.IsZero() && b.primary && !f.RowsLack {
		until := b.status.until.UTC().Truncate(time.Millisecond)
		c.CompleteUntil = &until
	}
	if b.status.current() {
		behind := b.status.behind
		c.Behind, c.ETA, c.ETALow, c.ETAHigh = &behind, b.status.eta.likely, b.status.eta.low, b.status.eta.high
		c.Parked = b.status.parked.count(b.r)
		if b.status.unspooled(b.r) {
			c.Spooled = new(int64)
		}
	}
	return c
}

func (b Begun) freshness(f Facts) reader.Freshness {
	switch {
	case f.Partly || !b.primary || !b.status.current():
		return reader.Partial
	case b.status.held:
		return reader.Holding
	case !b.status.recent:
		return reader.CatchingUp
	case f.Archived:
		return reader.Archived
	case !f.Found:
		return reader.NotFound
	}
	return reader.Fresh
}
