package collector

import (
	"maps"
	"sync"
	"time"
)

const (
	// waits is how long somebody counts as waiting after an upload of his found no place: OPA sends it again within that time.
	waits = 30 * time.Second
	// mostWaiting keeps the memory of strangers small where no credentials are asked for.
	mostWaiting = 1000
)

// places are for uploads under way. Nobody waits for one in a queue: a client that finds none is told to come again. A client that has a quarter
// of them or more gets no further one while another waits.
type places struct {
	mu      sync.Mutex
	most    int
	all     int
	held    map[string]int       // by client
	waiting map[string]time.Time // clients, by when they were last refused
}

func newPlaces(most int) *places {
	return &places{most: most, held: map[string]int{}, waiting: map[string]time.Time{}}
}

// take takes a place for a client, and says whether there is one.
func (p *places) take(client string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.DeleteFunc(p.waiting, func(_ string, since time.Time) bool { return now.Sub(since) > waits })
	if p.all == p.most || p.held[client] >= max(1, p.most/4) && p.othersWait(client) {
		if p.all == p.most && len(p.waiting) < mostWaiting {
			p.waiting[client] = now
		}
		return false
	}
	delete(p.waiting, client)
	p.all++
	p.held[client]++
	return true
}

func (p *places) othersWait(client string) bool {
	_, self := p.waiting[client]
	return len(p.waiting) > 1 || len(p.waiting) == 1 && !self
}

// leave gives a place back.
func (p *places) leave(client string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.held[client]--; p.held[client] == 0 {
		delete(p.held, client)
	}
}

// taken is how many places are in use.
func (p *places) taken() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}
