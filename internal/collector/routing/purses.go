package routing

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

const (
	// mostValues is how many values of a label have a bucket of their own, and how many candidates are watched.
	mostValues = 1000
	// mostClients is how many clients are told apart. Further ones share one bucket.
	mostClients = 1000
	// settledAfter is how often a value occurs before it has a bucket of its own. A value that an attacker makes for one
	// decision never gets there. A new OPA does with its first upload.
	settledAfter = 10
	// mostName is the longest value that is kept as it is, in bytes. A longer one is kept as its hash.
	mostName = 256
)

// purse has the tokens of one sender.
type purse struct {
	bucket   *rate.Limiter
	client   string // that was shaped last
	value    string // of the label; meaningless for newcomers
	newcomer bool   // it belongs to all values of a client that are not settled
	shaped   uint64 // decisions since it is there
	last     time.Time
}

func (p *purse) has(now time.Time) bool { return p.bucket.TokensAt(now) >= 1 }

func (p *purse) take(now time.Time) { p.bucket.AllowN(now, 1) }

// give puts back what a take took. The bucket gets no fuller than full: that is looked at with the next call.
func (p *purse) give(now time.Time) { p.bucket.AllowN(now, -1) }

// shape notes that a decision of a client went to a lower lane.
func (p *purse) shape(client string, now time.Time) {
	p.shaped++
	p.client, p.last = client, now
}

// purses are those of one share.
type purses struct {
	Share
	settled    *top // values with a purse of their own
	candidates *top
	common     map[string]*purse // of newcomers, by client
	rest       *purse            // of newcomers of all clients beyond mostClients
	most       int               // clients
	unnamed    bool              // a decision without the label belongs to its client
	swept      time.Time
}

func newPurses(s Share, values, clients int) *purses {
	p := &purses{Share: s, settled: newTop(values), candidates: newTop(values), common: map[string]*purse{}, most: clients}
	p.rest = p.open("", true)
	return p
}

func (p *purses) open(value string, newcomer bool) *purse {
	return &purse{bucket: rate.NewLimiter(rate.Limit(p.Rate), burstOf(p.Rate)), value: value, newcomer: newcomer}
}

// of counts a decision and returns the purse that it is paid from.
func (p *purses) of(value, client string, now time.Time) *purse {
	if p.label == "" || value == "" && p.unnamed { // the share of clients, whose names nobody invents
		return p.newcomers(client, now)
	}
	value = bounded(value)
	if c := p.settled.byName[value]; c != nil {
		p.settled.count(c)
		return c.purse
	}
	if c := p.candidates.arrive(value); c.seen >= settledAfter && p.settle(c) {
		return p.settled.byName[value].purse
	}
	return p.newcomers(client, now)
}

// settle gives a candidate a purse of its own. It takes the place of a settled value that has fewer decisions, or a free one.
func (p *purses) settle(c *counted) bool {
	if p.settled.full() {
		least := p.settled.heap[0]
		if least.count >= c.sure() {
			return false
		}
		p.settled.remove(least)
	}
	p.candidates.remove(c)
	p.settled.insert(c.name, c.sure()).purse = p.open(c.name, false)
	return true
}

// newcomers returns the purse of all values of a client that are not settled. A full bucket can be forgotten: a new one
// is the same.
func (p *purses) newcomers(client string, now time.Time) *purse {
	if one := p.common[client]; one != nil {
		return one
	}
	if len(p.common) >= p.most && now.Sub(p.swept) >= time.Second {
		p.swept = now
		for name, one := range p.common {
			if one.bucket.TokensAt(now) >= float64(one.bucket.Burst()) {
				delete(p.common, name)
			}
		}
	}
	if len(p.common) >= p.most {
		return p.rest
	}
	one := p.open("", p.label != "")
	p.common[strings.Clone(client)] = one
	return one
}

// halve forgets half of the counts, n times.
func (p *purses) halve(n uint) {
	p.settled.halve(n)
	p.candidates.halve(n)
}

// all calls do for each purse.
func (p *purses) all(do func(*purse)) {
	for _, c := range p.settled.heap {
		do(c.purse)
	}
	for _, one := range p.common {
		do(one)
	}
	do(p.rest)
}

// bounded returns a value of at most mostName bytes.
func bounded(value string) string {
	if len(value) <= mostName {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return "sha256:" + hex.EncodeToString(sum[:])
}
