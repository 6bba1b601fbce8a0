//go:build synctests

package sim

import (
	"bytes"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/errclass"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

// witness records the requests of each process to the database: every try to store and every probe.
type witness struct {
	mu    sync.Mutex
	who   map[string]*process // by backend id
	began map[uint32]time.Time
	tries map[*process][]try
}

// try is one INSERT and its result.
type try struct {
	at     time.Time
	on     uint32 // session
	rows   []verify.Place
	times  []int64 // microseconds
	probe  bool
	code   string // answered code; empty for success or a cut
	passed bool
	prompt bool // the answer came at the instant at which the transaction began, so its client got it
}

func newWitness(db *pgmodel.Server) *witness {
	wit := &witness{who: map[string]*process{}, began: map[uint32]time.Time{}, tries: map[*process][]try{}}
	db.Observe(wit.see)
	return wit
}

// dialled notes the process of a connection to the database.
func (wit *witness) dialled(p *process, c net.Conn) {
	_, backend, _ := net.SplitHostPort(c.LocalAddr().String())
	wit.mu.Lock()
	defer wit.mu.Unlock()
	wit.who[backend] = p
}

// deserted notes that nobody reads answers on a connection any more.
func (wit *witness) deserted(c net.Conn) {
	_, backend, _ := net.SplitHostPort(c.LocalAddr().String())
	wit.mu.Lock()
	defer wit.mu.Unlock()
	delete(wit.who, backend)
}

func (wit *witness) see(e pgmodel.Event) {
	switch e.Point {
	case pgmodel.Begin, pgmodel.Insert, pgmodel.InsertAnswered, pgmodel.Commit:
	default:
		return
	}
	wit.mu.Lock()
	defer wit.mu.Unlock()
	if e.Copied && (e.SQLSTATE == "23505" || e.SQLSTATE == "0A000") {
		return // an insert comes next, and decides
	}
	if e.Point == pgmodel.Begin {
		wit.began[e.Session] = e.Time
		return
	}
	p := wit.who[strconv.FormatUint(uint64(e.Session), 10)]
	if p == nil || len(e.Rows) == 0 || e.Point == pgmodel.Commit && e.Applied {
		return
	}
	t := try{
		at: e.Time, on: e.Session, probe: e.Rows[0].Offset == store.ProbeOffset, code: e.SQLSTATE,
		passed: e.SQLSTATE == "" && !e.Cut, prompt: e.Time.Equal(wit.began[e.Session]),
	}
	for i := range e.Rows {
		r := &e.Rows[i]
		t.rows = append(t.rows, verify.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Index: int(r.Index)})
		t.times = append(t.times, r.Time.UnixMicro())
	}
	wit.tries[p] = append(wit.tries[p], t)
}

// of lists the tries of a process, in order.
func (wit *witness) of(p *process) []try {
	wit.mu.Lock()
	defer wit.mu.Unlock()
	return wit.tries[p]
}

func (t *try) refused() bool { return t.code != "" }

// blames reports whether the refusal blamed a row: the search then retries at once.
func (t *try) blames() bool {
	v, ok := errclass.Lookup(t.code)
	return ok && v.Class == errclass.Data
}

// name is equal for tries of the same rows.
func (t *try) name() string {
	var b strings.Builder
	for _, at := range t.rows {
		fmt.Fprintf(&b, "%v ", at)
	}
	return b.String()
}

// attempts returns the tries of a process to store whole batches. Two tries belong to one batch under three
// conditions. The database answered the first with a refusal that blames no row. No probe passed between them. The
// process was not giving its partitions up. Then the next comes after the pause. A later one means that a try in
// between was not seen. Tries of single rows are left out, because the search retries at once.
func (wit *witness) attempts(p *process, pauses []time.Duration) (all []verify.Attempt) {
	type chain struct {
		last *try
		n, k int
	}
	chains := map[string]*chain{}
	var well time.Time
	tries := wit.of(p)
	for i := range tries {
		t := &tries[i]
		if t.probe {
			if t.passed {
				well = t.at
			}
			continue
		}
		if len(t.rows) < 2 {
			continue
		}
		name := t.name()
		c := chains[name]
		if c == nil {
			c = &chain{}
			chains[name] = c
		}
		if l := c.last; l == nil || !l.refused() || l.blames() || !l.prompt || !well.Before(l.at) || p.leaving(l.at, t.at) ||
			c.n <= len(pauses) && t.at.Sub(l.at) > pauses[c.n-1]*6/5 || c.n > len(pauses) && t.at.Sub(l.at) > time.Second {
			c.k++
			c.n = 0
		}
		c.last = t
		c.n++
		outcome := verify.Unknown
		if t.refused() {
			outcome = verify.Failed
		}
		all = append(all, verify.Attempt{
			Process: p.name, Batch: fmt.Sprintf("%s(%d)", name, c.k), Begun: t.at, Ended: t.at, Outcome: outcome, Code: t.code,
		})
	}
	return all
}

// resumed finds a batch that was tried again although its last probe was refused. The probe has the time of one of
// the batch's rows. A later one may be that of another batch of the same hour. Times that several decisions or batches
// share prove nothing. The first row on a probe's connection is the
// probe. Later ones may be decisions of another partition's batch, at their own times.
func (wit *witness) resumed(p *process, shared map[int64]bool) (wrong []string) {
	refused, asked := map[int64]*try{}, map[uint32]bool{}
	tries := wit.of(p)
	for i := range tries {
		t := &tries[i]
		if t.probe {
			first := !asked[t.on]
			asked[t.on] = true
			if t.refused() && first {
				refused[t.times[0]] = t
			} else if t.passed {
				maps.DeleteFunc(refused, func(at int64, p *try) bool {
					v, _ := errclass.Lookup(p.code) // a fault of data may be one of the time: the probe is made at another time
					return sameHour(at, t.times[0]) || v.Class == errclass.Data
				})
			}
			continue
		}
		for k, at := range t.times {
			probe := refused[at]
			if probe == nil || shared[at] {
				continue
			}
			delete(refused, at)
			if !p.leaving(probe.at, t.at) {
				wrong = append(wrong, fmt.Sprintf("%s tried %v again at %v, after a probe for its batch was refused with %s at %v and before one passed",
					p.name, t.rows[k], p.w.history.at(t.at), probe.code, p.w.history.at(probe.at)))
			}
		}
	}
	return wrong
}

// sameHour compares two times in microseconds.
func sameHour(a, b int64) bool {
	return time.UnixMicro(a).UTC().Truncate(time.Hour).Equal(time.UnixMicro(b).UTC().Truncate(time.Hour))
}

// accused returns the error in dead-lettering a decision that the database refused. It must be refused alone, twice,
// and then a probe must pass. An empty result means no error.
func (wit *witness) accused(p *process, at verify.Place, failed time.Time, sharing map[verify.Place]bool) string {
	alone, proved := 0, false
	for _, t := range wit.of(p) {
		switch {
		case t.at.After(failed):
		case t.probe && t.passed:
			proved = true
		case !t.probe && len(t.rows) == 1 && (t.rows[0] == at || sharing[t.rows[0]]) && t.refused():
			alone++
			if t.rows[0] == at || t.at.Before(failed) {
				proved = false // another copy may be tried at the instant at which this one is sent
			}
		}
	}
	switch {
	case alone < 2:
		return fmt.Sprintf("%s had seen it refused alone %d times, not twice", p.name, alone)
	case !proved:
		return p.name + " saw no probe pass after it was refused"
	}
	return ""
}

// proved reports whether a probe passed just before a time: only then an attempt counts.
func (wit *witness) proved(p *process, since, at time.Time) bool {
	return slices.ContainsFunc(wit.of(p), func(t try) bool {
		return t.probe && t.passed && !t.at.Before(since) && !t.at.After(at)
	})
}

// leaving reports whether the process may have been giving partitions up in that span. Then its tries may come early,
// and its batches begin again. It logs that afterwards, unless it is killed.
func (p *process) leaving(from, to time.Time) bool {
	const longest = 15 * time.Second
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stoppedAt.IsZero() && to.After(p.stoppedAt.Add(-longest)) {
		return true
	}
	return slices.ContainsFunc(p.gaveUp, func(at time.Time) bool { return !at.Before(from) && at.Before(to.Add(longest)) })
}

// shown is everything that a process wrote into its log.
type shown struct {
	p    *process
	text bytes.Buffer
}

func (s *shown) Write(b []byte) (int, error) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if bytes.Contains(b, []byte("partitions given up")) {
		s.p.gaveUp = append(s.p.gaveUp, time.Now())
	}
	return s.text.Write(b)
}
