package collector

import (
	"strings"
	"time"

	"docket/internal/collector/routing"
	"docket/internal/consumer/lanes"
	"docket/internal/record/decision"
	"docket/internal/service/telemetry"
)

// Routing returns what the rules and shares did, nil if there is only the default lane.
func (c *Collector) Routing() *routing.Status {
	if c.router == nil {
		return nil
	}
	s := c.router.Status(c.now())
	for i := range s.Shaped {
		one := &s.Shaped[i]
		one.Client = strings.TrimPrefix(one.Client, namePrefix)
		if label, ok := strings.CutPrefix(one.Rule, "label:"); ok && c.cfg.Redact.Covers("/labels/"+pointerEscaper.Replace(label)) {
			one.Value = "" // not even its hash leaves the process
		}
	}
	return &s
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

// topicOf returns the topic of a lane.
func (c *Collector) topicOf(l lanes.Lane) string {
	if l == lanes.Default {
		return c.cfg.Topic
	}
	return c.cfg.Lanes[l]
}

// routes returns a function that chooses the topic of each decision of the upload. It looks at what OPA sent: a value that
// is masked for Kafka can still choose a lane.
func (u *upload) routes(now time.Time) func(*decision.Part) string {
	c := u.collector
	if c.router == nil {
		return func(*decision.Part) string { return c.cfg.Topic }
	}
	return func(part *decision.Part) string {
		if part.Err != nil {
			return u.meant(part)
		}
		lane, shaped := c.router.Route(u.sender, &part.Log, now, &u.tools.paid)
		if shaped != "" {
			c.metrics.shaped.WithLabelValues(shaped).Inc()
		}
		return c.topicOf(lane)
	}
}

// unpay gives back what the decisions of the upload paid from shares. Its client sends it again.
func (u *upload) unpay() {
	if c := u.collector; c.router != nil {
		c.router.Return(&u.tools.paid, c.now())
	}
}

// tellIdle logs the values of rules that matched nothing for an hour, each once until it matches. The labels of shares
// count, too. Decisions were routed just before.
func (c *Collector) tellIdle(now time.Time) {
	if c.router == nil {
		return
	}
	for _, idle := range c.router.NewlyIdle(now) {
		line := c.log.Warn().Str(telemetry.KeyVariable, idle.Setting).Int("entry", idle.Entry).Str("rule", idle.Rule)
		if idle.Value > 0 {
			line = line.Int("value", idle.Value)
		}
		line.Time("since", idle.Since).Str(telemetry.KeyHint, "compare this part of the setting with a decision, or remove it").Msg("routing rule matched nothing")
	}
}

// meant returns the topic that a dead letter names as its own: that of the urgent lane if a rule is true for its decision.
// Shares have no effect on it, so the letter has one id however often its decision comes. A decision that cannot be read
// was meant for the default topic.
func (u *upload) meant(part *decision.Part) string {
	c := u.collector
	if c.router == nil || part.Log.ID == "" {
		return c.cfg.Topic
	}
	return c.topicOf(c.router.Meant(&part.Log))
}

// count counts decisions that have their home, by the topic.
func (u *upload) count(homes map[string]int) {
	c := u.collector
	dead := homes[c.cfg.DLQTopic]
	delete(homes, c.cfg.DLQTopic)
	stored := 0
	for _, lane := range c.cfg.Routing.Lanes() {
		n := homes[c.topicOf(lane)]
		stored += n
		if c.router != nil {
			c.metrics.routed.WithLabelValues(lane.Name()).Add(float64(n))
		}
	}
	u.topic += stored
	u.dead += dead
	c.metrics.decisions.WithLabelValues(homeTopic).Add(float64(stored))
	c.metrics.decisions.WithLabelValues(homeDeadLetter).Add(float64(dead))
}
