package lookup

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"
)

// seen remembers which decisions earlier scans met in the records that wait in Kafka, so that a scan reads on from there.
// While the database is away, records pile up, and people ask: without it each question would read the whole pile.
//
// It keeps 16 bytes for a decision: its offset and a hash of its id. A record with an equal hash is read again, and its
// id compared. Records never change, so an earlier reading is as good as a new one.
type seen struct {
	mu     sync.Mutex
	topics map[string]*seenTopic
	seed   maphash.Seed
	last   scanned
}

// scanned is a scan that read all topics completely, and remembers what it met.
type scanned struct {
	at     time.Time // before it read anything; zero: there was none
	topics []string
	places []Searched
	spools Noted
}

// lately is how long a scan answers for ids that it did not meet. It is the time between two looks of a watch, which answers
// where nothing waits.
const lately = 5 * time.Second

// scanned notes a scan; the zero value: one begins.
func (s *seen) scanned(last scanned) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = last
}

// without returns the last scan, if it did not meet an id. It returns false if the scan is too
// old, if it may have met the id, or while another one runs.
func (s *seen) without(id string, now time.Time) (scanned, bool) {
	if s == nil {
		return scanned{}, false
	}
	s.mu.Lock()
	last := s.last
	var topics []*seenTopic
	for _, name := range last.topics {
		topics = append(topics, s.topics[name])
	}
	s.mu.Unlock()
	if age := now.Sub(last.at); last.at.IsZero() || age < 0 || age > lately {
		return scanned{}, false
	}
	hash := maphash.String(s.seed, id)
	for _, t := range topics {
		if !t.lacks(hash) {
			return scanned{}, false
		}
	}
	return last, true
}

// lacks reports whether no decision with a hash was met. It is false while a scan runs. A topic of which nothing was
// remembered is nil.
func (t *seenTopic) lacks(hash uint64) bool {
	if t == nil {
		return true
	}
	if !t.mu.TryRLock() {
		return false
	}
	defer t.mu.RUnlock()
	for _, sp := range t.spans {
		if slices.ContainsFunc(sp.entries, func(e entry) bool { return e.hash == hash }) {
			return false
		}
	}
	return true
}

// mostSeen limits the decisions that are remembered of a topic; about 8 MiB.
const mostSeen = 500_000

func newSeen() *seen { return &seen{topics: map[string]*seenTopic{}, seed: maphash.MakeSeed()} }

// seenTopic has what was met in a topic. Its lock is held for a whole scan.
type seenTopic struct {
	mu       sync.RWMutex
	identity string // another one: the topic was made a second time, and its offsets began again; empty: it is not known
	spans    map[int32]*span
	seed     maphash.Seed
	kept     int // entries of all spans
}

// span has the decisions of the records of a partition at the offsets from from up to, and without, to.
type span struct {
	from, to int64
	entries  []entry // by offset; of a record without a readable id, one with the hash of an empty one
}

type entry struct {
	hash   uint64
	offset int64
}

// topic returns what was met in a topic, locked. The caller unlocks it.
func (s *seen) topic(name string) *seenTopic {
	s.mu.Lock()
	t := s.topics[name]
	if t == nil {
		t = &seenTopic{spans: map[int32]*span{}, seed: s.seed}
		s.topics[name] = t
	}
	s.mu.Unlock()
	t.mu.Lock()
	return t
}

// next forgets what is before begin, and returns where to read on. A partition whose records were not all met from begin on
// begins again.
func (t *seenTopic) next(identity string, begin, ends map[int32]int64) map[int32]int64 {
	if t.identity != identity || identity == "" {
		t.identity, t.spans = identity, map[int32]*span{}
	}
	on := make(map[int32]int64, len(ends))
	t.kept = 0
	maps.DeleteFunc(t.spans, func(partition int32, _ *span) bool { _, asked := ends[partition]; return !asked })
	for partition, end := range ends {
		at, sp := begin[partition], t.spans[partition]
		if sp == nil || at < sp.from || at > sp.to || sp.to > end {
			sp = &span{from: at, to: at}
			t.spans[partition] = sp
		}
		sp.forget(at)
		t.kept += len(sp.entries)
		on[partition] = sp.to
	}
	return on
}

// forget removes the records before at.
func (sp *span) forget(at int64) {
	sp.from = at
	first, _ := slices.BinarySearchFunc(sp.entries, at, func(e entry, at int64) int { return int(e.offset - at) })
	if first > 0 {
		sp.entries = slices.Clone(sp.entries[first:])
	}
}

// met notes a decision of a record.
func (t *seenTopic) met(partition int32, offset int64, id string) {
	sp := t.spans[partition]
	sp.entries = append(sp.entries, entry{maphash.String(t.seed, id), offset})
	sp.to = offset + 1
	t.kept++
}

// records counts the records that are remembered.
func (t *seenTopic) records() (n int64) {
	for _, sp := range t.spans {
		last := int64(-1)
		for _, e := range sp.entries {
			if e.offset != last {
				n, last = n+1, e.offset
			}
		}
	}
	return n
}

// with returns the offsets below the ends of records that may have one of the ids, in order, by partition.
func (t *seenTopic) with(ids []string, ends map[int32]int64) map[int32][]int64 {
	hashes := make(map[uint64]bool, len(ids))
	for _, id := range ids {
		hashes[maphash.String(t.seed, id)] = true
	}
	at := map[int32][]int64{}
	for partition := range ends {
		for _, e := range t.spans[partition].entries {
			if has := at[partition]; hashes[e.hash] && (len(has) == 0 || has[len(has)-1] != e.offset) {
				at[partition] = append(has, e.offset)
			}
		}
	}
	return at
}
