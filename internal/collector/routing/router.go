package routing

import (
	"cmp"
	"sync"
	"time"

	"docket/internal/consumer/lanes"
	"docket/internal/record/decision"
)

// Config is what a [Router] keeps to. Without a lane nothing is routed to it.
type Config struct {
	Rules        Rules
	Shares       Shares
	Urgent, Bulk bool // whether there is such a lane
}

// Lanes returns the lanes that there are, the default one first.
func (c Config) Lanes() []lanes.Lane {
	all := []lanes.Lane{lanes.Default}
	if c.Urgent {
		all = append(all, lanes.Urgent)
	}
	if c.Bulk {
		all = append(all, lanes.Bulk)
	}
	return all
}

// Shaping returns the rules of shares that can have an effect, as [Share.Rule] names them.
func (c Config) Shaping() (rules []string) {
	if c.Urgent && c.Rules.Any() {
		rules = append(rules, RuleUrgent)
	}
	if c.Bulk {
		for _, s := range c.Shares.Senders {
			rules = append(rules, s.Rule)
		}
	}
	return rules
}

// Router chooses lanes. It is safe for concurrent use.
type Router struct {
	cfg Config

	mu      sync.Mutex
	urgent  *purses
	senders []*purses
	paying  []*purse // of the decision in hand
	uses    []use    // of the values of rules, then of the labels of shares
	halving time.Time
	latest  time.Time // the latest time that the router was told
}

// use is when a value of a rule, or a share, was last of use.
type use struct {
	Idle
	told bool
}

// forgetting is after how long a decision counts half, in the counts that decide which values are settled.
const forgetting = time.Minute

// labelOfOPA is the label that each OPA sets to a value of its own. It names the sender of an urgent decision where no share
// says who senders are.
const labelOfOPA = "id"

// New returns a router whose shares are all unused.
func New(cfg Config, now time.Time) *Router {
	r := &Router{cfg: cfg, halving: now.Add(forgetting)}
	watch := func(setting string, entry, value int, rule string) {
		r.uses = append(r.uses, use{Idle: Idle{setting, entry, value, rule, now.UTC()}})
	}
	if cfg.Urgent && cfg.Rules.Any() {
		s := Share{Rule: RuleUrgent, Rate: cfg.Shares.Urgent}
		if s.Rate == 0 {
			s.Rate = DefaultUrgent
		}
		for _, sender := range cfg.Shares.Senders {
			s.label = cmp.Or(s.label, sender.label)
		}
		nobody := len(cfg.Shares.Senders) == 0
		if nobody {
			s.label = labelOfOPA
		}
		r.urgent = newPurses(s, mostValues, mostClients)
		r.urgent.unnamed = nobody
		for _, c := range cfg.Rules.conditions {
			for i := range c.values {
				watch(SettingUrgent, c.entry, 1+i, c.name)
			}
		}
	}
	if cfg.Bulk {
		for _, s := range cfg.Shares.Senders {
			r.senders = append(r.senders, newPurses(s, mostValues, mostClients))
			watch(SettingShare, s.entry, 0, s.Rule)
		}
	}
	return r
}

// Meant returns the lane of a decision by the rules alone. It depends on nothing but the decision, so a dead letter has the
// same id whenever its decision is uploaded.
func (r *Router) Meant(l *decision.Log) lanes.Lane {
	return Decide(r.urgent != nil && r.cfg.Rules.Match(l), false, false)
}

// Paid is what the decisions of one upload paid from shares. The zero value is nothing.
type Paid struct{ purses []*purse }

// Reset forgets what was paid, and keeps its memory.
func (p *Paid) Reset() {
	clear(p.purses)
	p.purses = p.purses[:0]
}

func (p *Paid) pay(from *purse, now time.Time) {
	from.take(now)
	p.purses = append(p.purses, from)
}

// Return gives back what was paid. It is for an upload that its client has to send again, and pays for then.
func (r *Router) Return(paid *Paid, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now = r.present(now)
	for _, p := range paid.purses {
		p.give(now)
	}
	paid.Reset()
}

// present returns now, or the latest time that the router was told if that is later. Uploads are routed at once, each at the
// time at which it began. A bucket that goes back in time would fill twice for the same time.
func (r *Router) present(now time.Time) time.Time {
	if now.After(r.latest) {
		r.latest = now
	}
	return r.latest
}

// Route returns the lane of a decision that a client uploads at a time, pays for it from the shares, and notes that in
// paid. It also returns the rule of the share that sent it to a lower lane, empty for none. If two did, it is the one that
// chose the lane.
func (r *Router) Route(client string, l *decision.Log, now time.Time, paid *Paid) (lane lanes.Lane, shaped string) {
	if len(r.uses) == 0 {
		return lanes.Default, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now = r.present(now)
	r.forget(now)
	urgent, overUrgent := r.matches(l, now), false
	if urgent {
		p := r.urgent.of(r.urgent.sender(l), client, now)
		if overUrgent = !p.has(now); !overUrgent {
			paid.pay(p, now)
			r.meets(l, now)
			return Decide(urgent, overUrgent, false), ""
		}
		p.shape(client, now)
		shaped = RuleUrgent
	}
	over := r.over(client, l, now, paid)
	if over != "" {
		shaped = over
	}
	return Decide(urgent, overUrgent, over != ""), shaped
}

// matches looks at each value of each rule, so that none counts as idle only because an earlier one is true, too.
func (r *Router) matches(l *decision.Log, now time.Time) (matched bool) {
	if r.urgent == nil {
		return false
	}
	n := 0
	for i := range r.cfg.Rules.conditions {
		c := &r.cfg.Rules.conditions[i]
		text, ok := c.textOf(l)
		for j := range c.values {
			if ok && c.hits(j, text) {
				r.uses[n+j].used(now)
				matched = true
			}
		}
		n += len(c.values)
	}
	return matched
}

// meets notes the shares that a decision belongs to and does not pay from, so that none counts as idle because all
// decisions are urgent.
func (r *Router) meets(l *decision.Log, now time.Time) {
	for i, s := range r.senders {
		r.met(i, s.sender(l), now)
	}
}

// met notes that a decision belongs to a share, if it has its label.
func (r *Router) met(i int, value string, now time.Time) {
	if value != "" || r.senders[i].label == "" {
		r.uses[len(r.uses)-len(r.senders)+i].used(now)
	}
}

// over pays a decision from all shares of its sender. If one of them is empty, it pays from none, and returns the rule of
// that share.
func (r *Router) over(client string, l *decision.Log, now time.Time, paid *Paid) (rule string) {
	r.paying = r.paying[:0]
	for i, s := range r.senders {
		value := s.sender(l)
		r.met(i, value, now)
		p := s.of(value, client, now)
		r.paying = append(r.paying, p)
		if !p.has(now) {
			p.shape(client, now)
			if rule == "" {
				rule = s.Rule
			}
		}
	}
	if rule == "" {
		for _, p := range r.paying {
			paid.pay(p, now)
		}
	}
	return rule
}

// sender returns the value that names the sender of a decision, empty for none.
func (p *purses) sender(l *decision.Log) string {
	if p.label == "" {
		return ""
	}
	return labelOf(l, p.label)
}

// forget halves the counts for each [forgetting] that is over.
func (r *Router) forget(now time.Time) {
	if now.Before(r.halving) {
		return
	}
	n := 1 + uint(now.Sub(r.halving)/forgetting)
	r.halving = r.halving.Add(time.Duration(n) * forgetting)
	for _, p := range r.shares() {
		p.halve(min(n, 63))
	}
}

func (r *Router) shares() []*purses {
	if r.urgent == nil {
		return r.senders
	}
	return append([]*purses{r.urgent}, r.senders...)
}

func (u *use) used(now time.Time) { u.Since, u.told = now.UTC(), false }
