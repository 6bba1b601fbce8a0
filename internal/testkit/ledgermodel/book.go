package ledgermodel

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"docket/internal/desk/ledger"
)

// Book is a ledger. It is safe for concurrent use.
type Book struct {
	// Rows marks rows like [ledger.Marker], instead of the table beside a ledger; nil: there are none.
	Rows func(s ledger.Sending, edit int64, rows []ledger.RowName) (marked, missing int)

	mu       sync.Mutex
	letters  map[string]*ledger.Entry
	sendings map[int64]*sending
	lines    []ledger.Audit
	lastID   int64 // of a sending
	duties   map[string]*duty
	notes    map[string]note
	jobs     map[int64]*job        // from 1 on
	entered  map[ledger.Found]bool // places, without the time, whose records were entered
	keep     time.Duration

	fourEyes     bool
	proposals    map[int64]*proposal
	lastProposal int64
	growth       growth
	rules        rules
}

// sending is a row of the outbox.
type sending struct {
	ledger.Sending
	claimedBy                     string
	claimedUntil, nextTry, lookAt time.Time // zero: none
	looks                         int
	children                      []int
	edit                          int64     // audit line of the edit that its value comes from; 0: none
	markAt                        time.Time // its rows are to be marked then
	marks                         int       // number of tries
	marked                        bool
}

func (s *sending) unsent() bool { return s.Published.Stamp.IsZero() && s.EndedAt.IsZero() }

func (s *sending) end(how ledger.SendingOutcome, now time.Time) {
	s.Outcome, s.EndedAt, s.claimedBy, s.claimedUntil = how, now, "", time.Time{}
}

type duty struct {
	holder      string
	until, done time.Time // done zero: never
}

type note struct {
	text string
	at   time.Time
}

// New makes an empty ledger.
func New() *Book {
	b := &Book{
		letters: map[string]*ledger.Entry{}, sendings: map[int64]*sending{}, duties: map[string]*duty{}, notes: map[string]note{}, jobs: map[int64]*job{},
		entered: map[ledger.Found]bool{}, keep: 7 * 24 * time.Hour, proposals: map[int64]*proposal{},
	}
	b.rules = newRules(b)
	return b
}

// Keep sets how long RESOLVED letters stay at least, instead of 7 days.
func (b *Book) Keep(keep time.Duration) *Book {
	b.keep = keep
	return b
}

var (
	_ ledger.Intake  = (*Book)(nil)
	_ ledger.Growth  = (*Book)(nil)
	_ ledger.Decider = (*Book)(nil)

	_ ledger.Proposals = (*Book)(nil)

	_ ledger.Relay  = (*Book)(nil)
	_ ledger.Watch  = (*Book)(nil)
	_ ledger.Marker = (*Book)(nil)
	_ ledger.Upkeep = (*Book)(nil)
	_ ledger.Jobs   = (*Book)(nil)
	_ ledger.Prover = (*Book)(nil)
)

// begin locks the ledger, unless ctx has ended.
func (b *Book) begin(ctx context.Context) (now time.Time, end func(), err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, nil, err
	}
	b.mu.Lock()
	return time.Now(), b.mu.Unlock, nil
}

// move sets the state of a letter, with its line in the audit.
func (b *Book) move(e *ledger.Entry, to ledger.State, act ledger.Act, by ledger.Actor, now time.Time) {
	from := e.State
	if by.Job != 0 {
		e.Job = by.Job
	}
	e.State, e.ChangedAt, e.ChangedBy, e.Why = to, now, by.Name, by.Why
	if to != ledger.Processing {
		e.Owner, e.LeaseUntil = "", time.Time{}
	}
	b.line(e, act, from, to, by, now)
}

func (b *Book) line(e *ledger.Entry, act ledger.Act, from, to ledger.State, by ledger.Actor, now time.Time) {
	b.lines = append(b.lines, ledger.Audit{
		ID: int64(len(b.lines) + 1), At: now, LetterID: e.ID, Act: act, From: from, To: to, By: by.Name, Why: by.Why, Attempts: e.Attempts, Job: e.Job,
	})
}

// of lists the sendings of a letter in the order of the outbox.
func (b *Book) of(letter string) []*sending {
	var own []*sending
	for _, id := range slices.Sorted(maps.Keys(b.sendings)) {
		if b.sendings[id].LetterID == letter {
			own = append(own, b.sendings[id])
		}
	}
	return own
}

// all lists the sendings in the order of the outbox.
func (b *Book) all() []*sending {
	all := make([]*sending, 0, len(b.sendings))
	for _, id := range slices.Sorted(maps.Keys(b.sendings)) {
		all = append(all, b.sendings[id])
	}
	return all
}

// Retry moves PENDING and FAILED letters to PROCESSING, each with a row in the outbox. See [ledger.Decider].
func (b *Book) Retry(ctx context.Context, ids []string, lease time.Duration, by ledger.Actor) ([]ledger.Outcome, error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	outcomes, free := b.free(ids)
	b.retry(free, lease, by, now)
	return outcomes, nil
}

// Resolve moves PENDING and FAILED letters to RESOLVED. See [ledger.Decider].
func (b *Book) Resolve(ctx context.Context, ids []string, by ledger.Actor) ([]ledger.Outcome, error) {
	now, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	outcomes, free := b.free(ids)
	b.resolve(free, by, now)
	return outcomes, nil
}

func (b *Book) resolve(letters []*ledger.Entry, by ledger.Actor, now time.Time) {
	for _, e := range letters {
		b.takeBack(e.ID, now)
		b.move(e, ledger.Resolved, ledger.Closed, by, now)
	}
}

// free returns the letters that may be moved, by id, each once.
func (b *Book) free(ids []string) (outcomes []ledger.Outcome, free []*ledger.Entry) {
	for _, id := range ids {
		o := ledger.Outcome{ID: id}
		switch e := b.letters[id]; {
		case e == nil:
			o.Err = ledger.ErrNotFound
		case !e.State.Decidable():
			o.Err = &ledger.RefusedError{ID: id, State: e.State, By: e.ChangedBy, At: e.ChangedAt}
		default:
			free = append(free, e)
		}
		outcomes = append(outcomes, o)
	}
	slices.SortFunc(free, func(a, b *ledger.Entry) int { return strings.Compare(a.ID, b.ID) })
	return outcomes, slices.Compact(free)
}

// takeBack ends the waiting sendings of a letter that is moved.
func (b *Book) takeBack(letter string, now time.Time) {
	for _, s := range b.of(letter) {
		if s.unsent() {
			s.end(ledger.SendingWithdrawn, now)
		}
	}
	b.forget(letter)
}

// forget stops looking for retries that were given up.
func (b *Book) forget(letter string) {
	for _, s := range b.of(letter) {
		if s.Outcome == ledger.SendingRefused {
			s.lookAt = time.Time{}
		}
	}
}

// retry puts letters into the outbox in the order in which they came.
func (b *Book) retry(letters []*ledger.Entry, lease time.Duration, by ledger.Actor, now time.Time) (ids []int64) {
	slices.SortFunc(letters, func(a, b *ledger.Entry) int {
		x, y := a.Origin, b.Origin
		return cmp.Or(strings.Compare(x.Topic, y.Topic), cmp.Compare(x.Partition, y.Partition), cmp.Compare(x.Offset, y.Offset),
			cmp.Compare(uint(x.Index), uint(y.Index)), strings.Compare(a.ID, b.ID)) // a missing index comes last
	})
	for _, e := range letters {
		b.takeBack(e.ID, now)
		b.move(e, ledger.Processing, ledger.Retried, by, now)
		e.Owner, e.LeaseUntil = by.Name, now.Add(lease)
		b.lastID++
		s := &sending{nextTry: now, Sending: ledger.Sending{
			ID: b.lastID, LetterID: e.ID, Mark: fmt.Sprintf("00000000-0000-4000-8000-%012x", b.lastID), Topic: e.Origin.Topic,
			Key: e.Key, Value: e.Value, Headers: e.Headers, By: by.Name, Job: by.Job, CreatedAt: now,
		}}
		b.sendings[s.ID] = s
		ids = append(ids, s.ID)
	}
	return ids
}

// Proof implements [ledger.Prover]; it returns everything. Counted is computed from the letters.
func (b *Book) Proof(ctx context.Context, _ time.Time, _ int) (ledger.Proof, error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return ledger.Proof{}, err
	}
	defer end()
	p := ledger.Proof{Lines: slices.Clone(b.lines), Rows: map[ledger.State]int64{}}
	for _, id := range slices.Sorted(maps.Keys(b.letters)) {
		p.Letters = append(p.Letters, *b.letters[id])
		p.Rows[b.letters[id].State]++
	}
	for _, s := range b.all() {
		if b.letters[s.LetterID] != nil {
			p.Sendings = append(p.Sendings, s.Sending)
		}
	}
	p.Counted = maps.Clone(p.Rows)
	return p, nil
}

// Knows implements [ledger.Prover].
func (b *Book) Knows(ctx context.Context, traces []ledger.Trace) ([]bool, error) {
	_, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	known := make([]bool, len(traces))
	for i, t := range traces {
		known[i] = b.letters[t.ID] != nil || slices.ContainsFunc(b.lines, func(a ledger.Audit) bool { return a.LetterID == t.ID })
		for _, s := range b.sendings {
			known[i] = known[i] || t.Mark != "" && s.Mark == t.Mark || s.isAt(t.Topic, t.Partition, t.Offset)
		}
	}
	return known, nil
}

// isAt reports whether the record of a retry is known to be at a place.
func (s *sending) isAt(topic string, partition int32, offset int64) bool {
	return !s.Published.Stamp.IsZero() && s.Topic == topic && s.Published.Partition == partition && s.Published.Offset == offset
}

// Has reports whether the record at a place of a dead-letter topic was entered, or is in a range of those that were
// left.
func (b *Book) Has(topic string, partition int32, offset int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.entered[ledger.Found{Topic: topic, Partition: partition, Offset: offset}] || b.growth.has(topic, partition, offset)
}

// Lapse ends all leases, those of jobs too, all claims, and all pauses.
func (b *Book) Lapse(leases, claims bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	past := time.Now().Add(-time.Second)
	for _, e := range b.letters {
		if leases && e.State == ledger.Processing {
			e.LeaseUntil = past
		}
	}
	for _, j := range b.jobs {
		if leases && j.State == ledger.JobRunning {
			j.leaseUntil = past
		}
	}
	for _, s := range b.sendings {
		if !claims {
			break
		}
		s.nextTry = past
		if !s.claimedUntil.IsZero() {
			s.claimedUntil = past
		}
		if !s.lookAt.IsZero() {
			s.lookAt = past.Add(-time.Hour + time.Duration(s.ID)*time.Millisecond)
		}
	}
}
