package routing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// The settings of a router.
const (
	SettingUrgent = "DOCKET_COLLECTOR_URGENT"
	SettingShare  = "DOCKET_COLLECTOR_SHARE"
)

// Status is what an operator may want to know of a [Router]. It has no text of a decision.
type Status struct {
	Idle   []Idle   `json:"idle"`
	Shaped []Shaped `json:"shaped"`
}

// Idle is a value of a rule, or a share, that was of no use for [IdleAfter], while decisions came. It probably has a
// mistake. It has the number of the value and not its text, which may be the name of a customer: /readyz asks for no
// credentials.
type Idle struct {
	Setting string    `json:"setting"`
	Entry   int       `json:"entry"`           // from 1
	Value   int       `json:"value,omitempty"` // from 1, of those of the entry; 0: the entry is a share
	Rule    string    `json:"rule"`            // verdict, path, label:NAME or client
	Since   time.Time `json:"since"`           // of the last decision that it was true for, or of the start
}

// IdleAfter is how long a value of a rule matches nothing before that is told.
const IdleAfter = time.Hour

// Shaped is a sender of which decisions went to a lower lane in the last minutes.
type Shaped struct {
	Rule string `json:"rule"` // as in [Share.Rule]
	// Client is the client that uploaded the last of them.
	Client string `json:"client"`
	// Value is the label's value as "sha256:" and 12 hexadecimal digits, "none" for decisions without the label, or
	// "new" for all values of the client that are not settled. It is empty where no label counts.
	//
	// /readyz asks for no credentials, and the value is text of a payload: so it has no more than this.
	Value string `json:"value,omitempty"`
	// Decisions is how many there were since the sender is watched.
	Decisions uint64 `json:"decisions"`

	last time.Time
}

const (
	// mostShaped is how many senders of each rule a [Status] names.
	mostShaped = 3
	// shapedWithin is how long a sender is named after its last decision that went to a lower lane.
	shapedWithin = 10 * time.Minute
)

// NewlyIdle returns the values and shares that were of no use for [IdleAfter], each once until it is of use again. Call it only after
// decisions came.
func (r *Router) NewlyIdle(now time.Time) (idle []Idle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.uses {
		if u := &r.uses[i]; !u.told && now.Sub(u.Since) >= IdleAfter {
			u.told = true
			idle = append(idle, u.Idle)
		}
	}
	return idle
}

// Status returns the idle values and shares and, for each rule, the senders with most decisions beyond their share.
func (r *Router) Status(now time.Time) Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Status{Idle: []Idle{}, Shaped: []Shaped{}}
	for i := range r.uses {
		if r.uses[i].told {
			s.Idle = append(s.Idle, r.uses[i].Idle)
		}
	}
	for _, p := range r.shares() {
		var of []Shaped
		p.all(func(one *purse) {
			if one.shaped > 0 && now.Sub(one.last) <= shapedWithin {
				of = append(of, Shaped{p.Rule, one.client, one.shown(p.label), one.shaped, one.last})
			}
		})
		slices.SortFunc(of, func(a, b Shaped) int {
			return cmp.Or(cmp.Compare(b.Decisions, a.Decisions), b.last.Compare(a.last), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Client, b.Client))
		})
		s.Shaped = append(s.Shaped, of[:min(len(of), mostShaped)]...)
	}
	return s
}

// shown returns the value of a label as [Shaped.Value] has it.
func (p *purse) shown(label string) string {
	switch {
	case label == "":
		return ""
	case p.newcomer:
		return "new"
	case p.value == "":
		return "none"
	}
	sum := sha256.Sum256([]byte(p.value))
	return "sha256:" + hex.EncodeToString(sum[:6])
}
