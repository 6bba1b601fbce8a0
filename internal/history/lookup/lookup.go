package lookup

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/record/commitnote"
	"docket/internal/record/envelope"
	"docket/internal/service/config"
)

// Topics is the part of Kafka that a lookup needs; *kafka.Reader is one.
type Topics interface {
	// CommittedNoted are the offsets that a group has committed in a topic, and the text beside each: see package commitnote.
	CommittedNoted(ctx context.Context, group, topic string) (done map[int32]int64, notes map[int32]string, err error)
	Ends(ctx context.Context, topic string) (map[int32]int64, error)
	// Identity differs between a topic and a later one of the same name. It is empty if the brokers give none.
	Identity(ctx context.Context, topic string) (string, error)
	Scan(ctx context.Context, topic string, from, to map[int32]int64, each func(*kgo.Record) error) (map[int32]int64, error)
}

// Book is the ledger of dead letters.
type Book interface {
	// Claims returns the letters whose value claims a decision_id, at most n, newest failure first.
	Claims(ctx context.Context, decisionID string, n int) ([]ledger.Entry, error)
	// Surplus lists the open ranges of the dead-letter topics that a desk has read and not entered, at most n.
	Surplus(ctx context.Context, all bool, after int64, n int) ([]ledger.Surplus, error)
}

// Limits limit a lookup. Zero values mean [DefaultLimits].
type Limits struct {
	Within  time.Duration // for Kafka and the spools together, and again for the archives
	Records int           // for each topic
	Bytes   int64         // for each topic, for all spools and for the archived dead letters, inflated
}

// DefaultLimits are those of `docket logs ID`.
var DefaultLimits = Limits{Within: 2 * time.Second, Records: 100_000, Bytes: 256 << 20}

func (l Limits) withDefaults() Limits {
	if l.Within <= 0 {
		l.Within = DefaultLimits.Within
	}
	if l.Records <= 0 {
		l.Records = DefaultLimits.Records
	}
	if l.Bytes <= 0 {
		l.Bytes = DefaultLimits.Bytes
	}
	return l
}

// Look has the places to search.
type Look struct {
	Settings config.Settings
	// Rows returns the decisions with an id, oldest first.
	Rows func(ctx context.Context, id string) ([]reader.Decision, error)
	Book Book
	// Standby returns a context for questions to Rows and Book. Afterwards asked says whether one of them went to a standby, which may
	// lack what the primary has. nil: the database is none.
	Standby func(ctx context.Context) (asking context.Context, asked func() bool)
	// Topics opens Kafka; nil: this program does not read it. let closes it.
	Topics func() (topics Topics, let func(), err error)
	// Quiet says what is known of the topics without a question to them; nil: nothing. It must not wait.
	Quiet func() Quiet
	// Spools are directories on this host.
	Spools []string
	// Shelf opens the storage of archives; nil: this program does not read them.
	Shelf func(where string) (archive.Shelf, error)
	// Archived says whether days or dead letters may have been archived, by what the database has; nil: it is not known.
	// Without an archive in the settings it is asked.
	Archived func(ctx context.Context) (maybe bool, err error)
	// Noted returns the archives of dead letters that the ledger noted; nil: it is not known whether one is missing.
	Noted func(ctx context.Context) ([]archive.Noted, error)
	// Days reads archived days; nil: their rows are not read.
	Days   *cold.Days
	Limits Limits
	// Hint returns advice about an error; nil: none.
	Hint func(error) string
	// Now returns the time; nil: time.Now.
	Now func() time.Time
	// Shards are the lookups of several shards, which take the place of all others but Limits. Empty: there are none.
	Shards []ShardLook

	seen *seen // decisions that earlier scans met in Kafka; nil: nothing is remembered
}

func (l *Look) now() time.Time {
	if l.Now != nil {
		return l.Now()
	}
	return time.Now()
}

// Searched is a place that was searched completely.
type Searched struct {
	Name string
	Note string // the searched range, or empty
}

func (p Searched) String() string {
	if p.Note == "" {
		return p.Name
	}
	return p.Name + ": " + p.Note
}

// Gap is a place that was not searched completely.
type Gap = reader.Gap

// Where is the kind of place of a [Found].
type Where string

// Kinds of places.
const (
	Unread    Where = "not_read"        // of the source topic
	Parked    Where = "parked"          // and not replayed
	Dead      Where = "dead_letter"     // and not in the ledger yet
	Exhausted Where = "exhausted"       // and not in the ledger yet
	Spooled   Where = "spooled"         // on this host
	Archived  Where = "archived_letter" // closed; removed from the ledger or still in it
	InArchive Where = "archived"        // a decision of an archived day
)

// Found is a record with the id.
type Found struct {
	Where     Where
	Name      string // topic, file or archive
	Partition int32  // of a topic
	Offset    int64  // of a topic
	Time      time.Time
	Origin    envelope.Origin // where it was first read; its Topic is empty if not known
	Lane      string          // of that topic; empty without lanes, or if it is not known
	Kind      envelope.Kind
	Code      string
	FailedAt  time.Time
	Attempt   int
	NotBefore time.Time // of a parked record; zero: due
	To        string    // destination topic of a spooled record
	Letter    string    // dead-letter id
	Day       string    // of an archive
	Unproven  bool      // Docket's authorship of its headers is not proven
	// Left says that a desk left this dead letter in Kafka, because its client exceeded the limit.
	Left bool
	// Same says that it is the same decision as the row in the table.
	Same bool

	body []byte // until it is compared
}

const (
	mostLetters = 10      // for an id, shown
	mostClaims  = 1000    // for an id, read from the ledger
	mostFound   = 20      // for an id
	mostBodies  = 1 << 20 // kept for an id, to be compared with its row
)

// Find looks for an id.
func (l *Look) Find(ctx context.Context, id string) Answer { return l.All(ctx, []string{id})[0] }

// All looks for several ids at once, and answers in their order. Records move meanwhile: from the source and the
// spools to the parking topic, then to the dead-letter topics, the ledger, the rows and the archived days. It searches in
// that order, so that it sees a moving record at least once.
func (l *Look) All(ctx context.Context, ids []string) []Answer {
	all, _ := l.all(ctx, ids)
	return all
}

// all is All. It returns also how many records it read from Kafka.
func (l *Look) all(ctx context.Context, ids []string) (answers []Answer, read int64) {
	if len(l.Shards) > 0 {
		return l.allShards(ctx, ids)
	}
	s := newSearch(l, ids)
	limits := l.Limits.withDefaults()
	within, cancel := context.WithTimeout(ctx, limits.Within)
	defer cancel()
	topics, let := s.open()
	defer let()
	s.begin(within, topics, limits)
	asking := s.watched(ctx)
	s.surplus(asking)
	letters := s.letters(asking)
	s.scan(within, topics, letters, limits)
	s.archives(ctx, limits)
	s.rows(asking)
	s.days(ctx, limits)
	for _, a := range s.answers {
		a.Whole = true
	}
	return s.done(), s.read.Load()
}

// search is one search for some ids.
type search struct {
	look    *Look
	began   time.Time
	mu      sync.Mutex // of positions
	answers map[string]*Answer
	order   []string
	bodies  map[string]int // kept bytes by id
	// positions are the committed offsets of the groups, or why they are not known.
	positions map[string]position
	beside    commitnote.Beside // the offsets of those that may spool records
	read      atomic.Int64      // records of Kafka
	// ranges are those that desks left in Kafka. They are read before the ledger, so letters that enter meanwhile are
	// found there.
	ranges []ledger.Surplus
	more   bool        // there are more than those in ranges
	asked  func() bool // a standby was asked; nil: none is
	spools []spoolRead
	// archived are decisions of archived days.
	archived []reader.Decision
}

type position struct {
	next map[int32]int64
	err  error
}

func newSearch(l *Look, ids []string) *search {
	s := &search{look: l, began: l.now(), answers: map[string]*Answer{}, bodies: map[string]int{}, positions: map[string]position{}, order: ids}
	for _, id := range ids {
		s.answers[id] = &Answer{ID: id, At: s.began}
	}
	return s
}

func (s *search) looked(name, note string) {
	for _, a := range s.answers {
		a.Looked = append(a.Looked, Searched{name, note})
	}
}

func (s *search) missed(name, why string) { s.lack(Gap{Name: name, Why: why}) }

func (s *search) lack(g Gap) {
	for _, a := range s.answers {
		a.NotLooked = append(a.NotLooked, g)
	}
}

// failed notes a place that could not be searched.
func (s *search) failed(name string, err error) { s.missed(name, s.told(err)) }

func (s *search) told(err error) string {
	text := err.Error()
	if s.look.Hint != nil {
		if hint := s.look.Hint(err); hint != "" {
			text += "; " + hint
		}
	}
	return text
}

// found adds a record with an id.
func (s *search) found(id string, f Found, body []byte) {
	a := s.answers[id]
	switch {
	case f.Where == Unread:
		f.Lane = s.look.Settings.LaneName(f.Name) // its headers may be a stranger's
	case !f.Unproven:
		f.Lane = s.look.Settings.LaneName(f.Origin.Topic)
	}
	if len(a.Found) == mostFound {
		a.More = true
		return
	}
	if n := len(body); s.bodies[id]+n <= mostBodies {
		s.bodies[id] += n
		f.body = slices.Clone(body)
	}
	a.Found = append(a.Found, f)
}

// mostRanges limits the ranges; there is one for a client, a partition and an hour.
const mostRanges = 20_000

// surplus asks the ledger for the ranges that desks left in Kafka. Ranges beyond [mostRanges] are a gap.
func (s *search) surplus(ctx context.Context) {
	if s.look.Book == nil {
		return
	}
	const name = "dead letters that a desk left in Kafka"
	var err error
	if s.ranges, err = s.look.Book.Surplus(ctx, false, 0, mostRanges+1); err != nil {
		s.failed(name, err)
	}
	if s.more = len(s.ranges) > mostRanges; s.more {
		s.ranges = s.ranges[:mostRanges]
		s.missed(name, fmt.Sprintf("only the oldest %d ranges were read, and there are more", mostRanges))
	}
}

// letters asks the ledger. It reports whether the ledger answered.
func (s *search) letters(ctx context.Context) bool {
	const name = "the ledger of dead letters"
	if s.look.Book == nil {
		s.missed(name, "this program does not read it")
		return false
	}
	for _, id := range s.order {
		found, err := s.look.Book.Claims(ctx, id, mostClaims)
		if err != nil {
			s.failed(name, err)
			return false
		}
		s.answers[id].Letters = found
	}
	s.looked(name, "")
	return true
}

// rows asks the table last and compares the results with it.
func (s *search) rows(ctx context.Context) {
	const name = "the rows of decision_logs"
	ctx, parts := reader.WithParts(ctx)
	for _, id := range s.order {
		rows, err := s.look.Rows(ctx, id)
		if err != nil {
			s.lack(Gap{Name: name, Why: s.told(err), Rows: true})
			return
		}
		s.answers[id].Rows = rows
	}
	gaps := parts.NotRead()
	for _, g := range gaps {
		s.lack(Gap{Name: g.Name, Why: g.Why, Rows: true})
	}
	switch {
	case s.standby():
		s.lack(Gap{Name: name, Why: StandbyBehind, Rows: true})
	case len(gaps) == 0:
		s.looked(name, "")
	}
}

// done marks records that are the same decision.
func (s *search) done() []Answer {
	keys := !s.look.Settings.HeaderKeys().None()
	var all []Answer
	for _, id := range s.order {
		a := s.answers[id]
		places := make([]envelope.Origin, len(a.Rows))
		for i, d := range a.Rows {
			places[i] = envelope.Origin{Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, Index: d.Index}
		}
		entered := map[string]bool{}
		for _, e := range a.Letters {
			entered[e.ID] = true
		}
		s.join(a)
		a.near()
		a.Letters = ledger.Others(a.Letters, places)
		a.shorten()
		// The ledger has it, with more facts.
		a.Found = slices.DeleteFunc(a.Found, func(f Found) bool { return f.Letter != "" && entered[f.Letter] })
		for i := range a.Found {
			f := &a.Found[i]
			f.Same = slices.ContainsFunc(a.Rows, func(d reader.Decision) bool { return f.same(d, keys) })
			f.body = nil
		}
		all = append(all, *a)
	}
	return all
}

// same reports whether this is the decision of a row: it has the row's payload, or a proven place in Kafka. Unproven
// headers count only if payloads cannot be compared.
func (f *Found) same(d reader.Decision, keys bool) bool {
	o := f.Origin
	placed := o.Topic == d.Topic && o.Partition == d.Partition && o.Offset == d.Offset && (o.Index == d.Index || o.Index == envelope.NoIndex)
	if placed && (keys && !f.Unproven || f.Where == Unread) {
		return true
	}
	if f.body == nil || len(d.Unfaithful) > 0 || d.Unreadable || d.Raw == nil {
		return placed
	}
	if !f.Time.Truncate(time.Microsecond).Equal(d.Time) {
		return false
	}
	changes, err := reader.Diff(d.Raw, f.body, reader.DiffOptions{All: true, Most: 1})
	return err == nil && len(changes.Changes)+changes.More == 0
}
