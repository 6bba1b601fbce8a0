package pipeline

import (
	"sync"
	"time"

	"docket/internal/errclass"
)

const (
	mostPortion  = 5000 // rows; larger transactions are no faster, and a refused one was for nothing
	leastPortion = 64   // rows; what fails with no more than that is not too large
	flat         = 1.5  // times the time of a row in smaller portions: that much is no slower
)

// portion is how many rows the first write of a batch carries, for all partitions of a process. It is the largest until
// a write was too much for the server; then it is half of that, and it grows by a quarter with each full portion while a
// row takes no longer than in smaller ones. Its zero value is the largest. It is safe for concurrent use.
type portion struct {
	mu   sync.Mutex
	most int     // 0: mostPortion
	pace float64 // nanoseconds a row took at best since the last step down; 0: not known
}

// of is how many of so many rows to write at once: at least one, and all of them as a rule.
func (p *portion) of(rows int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most == 0 {
		return min(rows, mostPortion)
	}
	return min(rows, p.most, mostPortion)
}

// failed learns from a write of so many rows that ended with this verdict.
func (p *portion) failed(rows int, v errclass.Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !tooMuch(v) || rows <= leastPortion || p.most != 0 && rows > p.most { // a larger one that began before a step down
		return
	}
	p.most, p.pace = max(leastPortion, rows/2), 0
}

// took learns from a write of so many rows that was done in that time.
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

// tooMuch says that the number of rows may be what a write failed of: memory, a limit of the server, or time.
func tooMuch(v errclass.Verdict) bool {
	return v.Rule == errclass.RetryHalvesPark || v.Rule == errclass.RetryBisect || v.Code == errclass.CodeTimeout
}
