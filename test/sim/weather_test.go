//go:build synctests

package sim

import (
	"sync"
	"time"
)

// fate is the result of a write.
type fate int

const (
	delivered fate = iota
	cutBefore      // the connection breaks and the server has not read it
	cutAfter       // the server has read it, and the connection breaks
	swallowed      // nobody reads it, and the connection stays open
)

// weather has the faults of the network, by kind of connection, for all processes.
type weather struct {
	mu      sync.Mutex
	refused map[string]int
	black   map[string]int
	slow    map[string]time.Duration
	every   map[string]int // every n-th write is cut
	writes  map[string]int
}

func newWeather() *weather {
	return &weather{refused: map[string]int{}, black: map[string]int{}, slow: map[string]time.Duration{}, every: map[string]int{}, writes: map[string]int{}}
}

// refuse makes dials fail until heal is called.
func (n *weather) refuse(kind string) (heal func()) { return n.count(n.refused, kind) }

// swallow makes writes vanish until heal is called.
func (n *weather) swallow(kind string) (heal func()) { return n.count(n.black, kind) }

func (n *weather) count(of map[string]int, kind string) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of[kind]++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		of[kind]--
	}
}

// tear cuts the connection at every n-th write until heal is called, by turns before and after the server has it.
func (n *weather) tear(kind string, every int) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.every[kind] = every
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.every[kind] = 0
	}
}

// delay makes every write take d until heal is called.
func (n *weather) delay(kind string, d time.Duration) (heal func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.slow[kind] = d
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.slow[kind] = 0
	}
}

func (n *weather) refuses(kind string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refused[kind] > 0
}

// fate decides about one write, after its delay.
func (n *weather) fate(kind string) fate {
	n.mu.Lock()
	slow := n.slow[kind]
	n.mu.Unlock()
	if slow > 0 {
		time.Sleep(slow) // virtual
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writes[kind]++
	every := n.every[kind]
	switch {
	case n.black[kind] > 0:
		return swallowed
	case every > 0 && n.writes[kind]%(2*every) == 0:
		return cutBefore
	case every > 0 && n.writes[kind]%every == 0:
		return cutAfter
	}
	return delivered
}
