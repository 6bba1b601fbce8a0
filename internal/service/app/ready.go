package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"docket/internal/collector/routing"
	"docket/internal/service/telemetry"
)

// Reason is one reason why a program is not ready or not healthy.
type Reason struct {
	Reason     string     `json:"reason"`
	Code       string     `json:"code,omitempty"`
	Hint       string     `json:"hint,omitempty"`
	Topic      string     `json:"topic,omitempty"` // that takes no decisions, of the collector
	Since      *time.Time `json:"since,omitempty"`
	Partitions []string   `json:"partitions,omitempty"` // topic/number, the first few
	More       int        `json:"more_partitions,omitempty"`
}

// Health is the body of /healthz.
type Health struct {
	Healthy bool     `json:"healthy"`
	Reasons []Reason `json:"reasons"`
}

// Health reports whether the process works: it does unless a batch is stuck. A hold is healthy, as a restart does not
// end it.
func (p *Program) Health() Health {
	h := Health{Healthy: true, Reasons: []Reason{}}
	if p.pipe.Wedged(p.patience) != nil {
		h.Healthy = false
		h.Reasons = append(h.Reasons, Reason{Reason: "wedged", Hint: fmt.Sprintf("a batch made no progress for %v; restart the process, or wait: it ends by itself after %v", p.patience, 2*p.patience)})
	}
	return h
}

// Readiness is the body of /readyz.
type Readiness struct {
	Ready    bool     `json:"ready"`
	Program  string   `json:"program"`
	Joined   bool     `json:"joined"`
	Assigned int      `json:"assigned"`
	Note     string   `json:"note,omitempty"`
	Reasons  []Reason `json:"reasons"`
	// Lanes are there if the program has more than one.
	Lanes []LaneState `json:"lanes,omitempty"`
	// Routing is of a collector with lanes.
	Routing *routing.Status `json:"routing,omitempty"`
	// Groupless is a program that reads nothing: it joins no group and is assigned nothing.
	Groupless bool `json:"-"`
}

// MarshalJSON leaves out of a groupless program what it has not.
func (r Readiness) MarshalJSON() ([]byte, error) {
	if !r.Groupless {
		type whole Readiness
		return json.Marshal(whole(r))
	}
	return json.Marshal(struct {
		Ready   bool            `json:"ready"`
		Program string          `json:"program"`
		Note    string          `json:"note,omitempty"`
		Reasons []Reason        `json:"reasons"`
		Routing *routing.Status `json:"routing,omitempty"`
	}{r.Ready, r.Program, r.Note, r.Reasons, r.Routing})
}

// Readiness reports whether the program works: it has an assignment and does not hold.
func (p *Program) Readiness() Readiness {
	for _, f := range p.faults {
		f.Look()
	}
	r := Readiness{
		Program: string(p.name), Joined: p.source.Joined(), Assigned: p.source.Assigned(), Lanes: p.laneStates(),
		Reasons: Grouped(p.observer.Holds()),
	}
	p.mu.Lock()
	stopping := p.stopping
	p.mu.Unlock()
	switch {
	case stopping:
		r.Reasons = append(r.Reasons, Reason{Reason: "stopping", Hint: "the program stops: it finishes the current batch and fetches no more"})
	case !r.Joined:
		r.Reasons = append(r.Reasons, Reason{Reason: "joining", Hint: "wait: the group has not assigned partitions to this member yet"})
	case r.Assigned == 0:
		r.Note = "this member has no partition, because the group has more members than partitions"
	}
	r.Ready = len(r.Reasons) == 0
	if since := p.yieldingSince(); !since.IsZero() && !stopping {
		r.Reasons = append(r.Reasons, yieldingReason(since)) // not a reason against being ready
	}
	r.Reasons = append(r.Reasons, p.limits.reasons(time.Now())...) // no reasons against being ready
	return r
}

// mostPartitions are named for a reason; an outage has all of them.
const mostPartitions = 20

// Grouped makes one reason of all partitions that stand still for the same one.
func Grouped(standing []telemetry.Standing) []Reason {
	reasons := []Reason{}
	for _, s := range standing {
		i := slices.IndexFunc(reasons, func(r Reason) bool { return r.Reason == s.Reason && r.Code == s.Code })
		if i < 0 {
			i = len(reasons)
			reasons = append(reasons, Reason{Reason: s.Reason, Code: s.Code, Hint: s.Hint})
		}
		r := &reasons[i]
		if r.Since == nil || s.Since.Before(*r.Since) {
			since := s.Since.UTC()
			r.Since = &since
		}
		switch {
		case s.Topic == "":
		case len(r.Partitions) < mostPartitions:
			r.Partitions = append(r.Partitions, fmt.Sprintf("%s/%d", s.Topic, s.Partition))
		default:
			r.More++
		}
	}
	return reasons
}
