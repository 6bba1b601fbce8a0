package collector

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// waits is how long somebody counts as waiting after an upload of his found no place: OPA sends it again within that time.
	waits = 30 * time.Second
	// mostWaiting keeps the memory of strangers small where no credentials are asked for.
	mostWaiting = 1000
)

// client is what the uploads of one client have.
type client struct {
	places int
	memory atomic.Int64 // bytes
}

// places are for uploads under way. Nobody waits for one in a queue: a client that finds none is told to come again. A client that has a quarter
// of them or more gets no further one while another waits. The same goes for memory.
type places struct {
	mu      sync.Mutex
	most    int
	all     int
	held    map[string]*client // by name
	waiting line               // for a place
	hungry  line               // for memory
}

func newPlaces(most int) *places {
	return &places{most: most, held: map[string]*client{}, waiting: line{}, hungry: line{}}
}

// take takes a place for a client, and says whether there is one.
func (p *places) take(name string, now time.Time) (*client, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.forget(now)
	of := p.held[name]
	if of == nil {
		of = new(client)
	}
	if p.all == p.most || of.places >= max(1, p.most/4) && p.waiting.others(name) {
		if p.all == p.most {
			p.waiting.join(name, now)
		}
		return nil, false
	}
	delete(p.waiting, name)
	p.all++
	of.places++
	p.held[name] = of
	return of, true
}

// leave gives a place back.
func (p *places) leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	of := p.held[name]
	if of.places--; of.places == 0 {
		delete(p.held, name)
	}
}

// hunger notes that there was no memory for an upload of a client.
func (p *places) hunger(name string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hungry.forget(now)
	p.hungry.join(name, now)
}

// othersHunger reports whether another client was refused memory of late. One that got some since may still wait for more.
func (p *places) othersHunger(name string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hungry.forget(now)
	return p.hungry.others(name)
}

// taken is how many places are in use.
func (p *places) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// line is who waits, by when they were last refused.
type line map[string]time.Time

func (l line) join(name string, now time.Time) {
	if len(l) < mostWaiting {
		l[name] = now
	}
}

// others reports whether anybody else waits.
func (l line) others(name string) bool {
	_, self := l[name]
	return len(l) > 1 || len(l) == 1 && !self
}

func (l line) forget(now time.Time) {
	maps.DeleteFunc(l, func(_ string, since time.Time) bool { return now.Sub(since) > waits })
}
