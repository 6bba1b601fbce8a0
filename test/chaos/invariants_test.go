//go:build integration

package chaos

import (
	"context"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
)

// invariants has the checker decide every invariant that a campaign can give evidence for.
func (c *campaign) invariants(ctx context.Context, evidence conservation.Evidence) {
	evidence.Settled = c.result.settled
	evidence.Metrics = map[string]verify.Metrics{}
	history := &verify.History{
		Seed: strconv.FormatUint(c.seed, 10), Build: commit(), Commits: c.history(), Markers: markers,
		Backlog: c.result.backlog, Rate: settlePace,
	}
	history.Claims = c.asks.claims
	var err error
	if history.Stored, err = c.stored(ctx); err != nil {
		c.broken("the account", "%v", err)
	}
	c.note("%d answers said until when they are complete", len(history.Claims))
	history.Heals = append(history.Heals, c.result.healed)
	if c.result.settled {
		history.Settled = c.result.healed.Add(c.result.recovery)
	}
	for _, s := range c.ran() {
		for _, path := range []string{"/metrics", "/readyz"} {
			_, body, err := s.get(ctx, path)
			if err != nil {
				continue // that it settled says already that all of them answered
			}
			history.Texts = append(history.Texts, verify.Text{Name: s.name + path, Body: body})
			if path == "/metrics" && s.program != "docket" {
				evidence.Metrics[s.name] = verify.ParseMetrics(body)
			}
		}
	}
	err = c.admin(ctx, func(ctx context.Context, adm *kadm.Client) error {
		ends, err := adm.ListEndOffsets(ctx, c.topics()...)
		if err == nil {
			err = ends.Error()
		}
		evidence.Ends = verify.Offsets{}
		ends.Each(func(o kadm.ListedOffset) {
			evidence.Ends[verify.Partition{Topic: o.Topic, Number: o.Partition}] = o.Offset
		})
		return err
	})
	if err != nil {
		c.broken("the account", "the log ends cannot be read: %v", err)
		evidence.Ends = nil
	}
	c.result.summary = verify.Decide(&evidence, c.ledger.Truth(), history)
	for _, v := range c.result.summary.Results {
		c.note("%v", v)
		if v.State == verify.Broken {
			c.broken("the invariants", "%v\n    %s", v, strings.Join(v.Found[0].History, "\n    "))
		}
	}
}

// history is every commit that was seen, by partition.
func (c *campaign) history() []verify.Commit {
	groups := map[string]string{c.places.ParkingTopic: c.places.ParkingGroup}
	for _, l := range c.sources() {
		groups[l.Topic] = l.Group
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []verify.Commit
	for _, seen := range c.commits {
		for at, offset := range seen.offsets {
			all = append(all, verify.Commit{
				At: seen.at, Group: groups[at.Topic], Topic: at.Topic, Partition: at.Number, Offset: offset,
				End: -1, Lowest: -1, Outcome: verify.Succeeded, Process: "the group",
			})
		}
	}
	return all
}
