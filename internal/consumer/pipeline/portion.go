package pipeline

import (
	"sync"
	"time"

	"docket/internal/errclass"
)

const (
	mostPortion  = 5000 // rows; larger transactions are no faster, and a refused one is wasted work
	leastPortion = 64   // rows; a failure of so few rows is not one of size
	flat         = 1.5  // up to this factor, a row in a larger portion counts as no slower
)

// portion is the number of rows in the first write of a batch, for all partitions of a process. It starts at the
// largest. A write that was too much for the server halves it. It grows by a quarter with each full portion while a
// row takes no longer than in smaller ones. The zero value is the largest. It is safe for concurrent use.
type portion struct {
	mu   sync.Mutex
	most int     // 0: mostPortion
	pace float64 // nanoseconds a row took at best since the last halving; 0: not known
}

// of returns how many of this many rows to write at once: at least one, and usually all.
func (p *portion) of(rows int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most == 0 {
		return min(rows, mostPortion)
	}
	return min(rows, p.most, mostPortion)
}

// failed adapts the portion after a write of this many rows failed with v.
func (p *portion) failed(rows int, v errclass.Classification) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !tooMuch(v) || rows <= leastPortion || p.most != 0 && rows > p.most { // it was larger, and began before the last halving
		return
	}
	p.most, p.pace = max(leastPortion, rows/2), 0
}

// took adapts the portion after a write of this many rows succeeded within d.
func (p *portion) took(rows int, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most == 0 || rows < p.most {
		return
	}
	pace := float64(d) / float64(rows)
	if p.pace > 0 && pace > flat*p.pace {
		p.most, p.pace = max(leastPortion, p.most-p.most/5), 0
		return
	}
	if p.pace == 0 || pace < p.pace {
		p.pace = pace
	}
	p.most += p.most / 4
}

// tooMuch reports whether the number of rows may be the cause of a failure: memory, a limit of the server, or time.
func tooMuch(v errclass.Classification) bool {
	return v.Rule == errclass.RetryHalvesPark || v.Rule == errclass.RetryBisect || v.Code == errclass.CodeTimeout
}
