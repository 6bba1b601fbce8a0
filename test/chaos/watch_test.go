//go:build integration

package chaos

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
)

const (
	commitsEvery  = 500 * time.Millisecond
	progressEvery = 12 * time.Second
	liveEvery     = 4 * time.Second
	// rewound is how long a committed offset has to stay lower than it was: a broker that comes back and takes itself for
	// the coordinator may still give an old answer.
	rewound = 5 * time.Second
)

// commits is what all groups had committed at a time.
type commits struct {
	at      time.Time
	offsets verify.Offsets
}

// watch looks on until the context ends: commits, progress, and whether everything committed has a home.
func (c *campaign) watch(ctx context.Context) *sync.WaitGroup {
	var all sync.WaitGroup
	all.Go(func() { c.pollCommits(ctx) })
	all.Go(func() { c.progress(ctx) })
	all.Go(func() { c.live(ctx) })
	all.Go(func() { c.followReturns(ctx) })
	if c.lanes {
		all.Go(func() { c.followLimits(ctx) })
	}
	return &all
}

// pollCommits sees to it that no committed offset ever decreases.
func (c *campaign) pollCommits(ctx context.Context) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.cluster.Direct()...))
	if err != nil {
		c.broken("the campaign", "no client to poll commits: %v", err)
		return
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	seen := &ratchet{campaign: c, highest: verify.Offsets{}, lower: map[verify.Partition]time.Time{}}
	for wait(ctx, commitsEvery) {
		now := commits{at: time.Now()}
		var err error
		if now.offsets, err = committedBy(ctx, adm, append(c.sources(), conservation.Lane{Topic: c.places.ParkingTopic, Group: c.places.ParkingGroup})); err != nil {
			continue
		}
		seen.see(now.at, now.offsets)
		if len(seen.lower) > 0 {
			continue // an old answer, or soon a finding
		}
		c.mu.Lock()
		if last := len(c.commits) - 1; last < 0 || !maps.Equal(c.commits[last].offsets, now.offsets) {
			c.commits = append(c.commits, now)
		}
		c.mu.Unlock()
	}
}

// committedBy are the offsets that groups have committed in their topics.
func committedBy(ctx context.Context, adm *kadm.Client, groups []conservation.Lane) (verify.Offsets, error) {
	all := verify.Offsets{}
	for _, g := range groups {
		offsets, err := committed(ctx, adm, g.Group, g.Topic)
		if err != nil {
			return nil, err
		}
		all.Add(g.Topic, offsets)
	}
	return all, nil
}

// committed are the offsets that a group has committed, by partition.
func committed(ctx context.Context, adm *kadm.Client, group, topic string) (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(ctx, adminLimit)
	defer cancel()
	found, err := adm.FetchOffsetsForTopics(ctx, group, topic)
	if err == nil {
		err = found.Error()
	}
	if err != nil {
		return nil, fmt.Errorf("fetch offsets of group %s: %w", group, err)
	}
	offsets := map[int32]int64{}
	found.Each(func(o kadm.OffsetResponse) {
		if o.At >= 0 {
			offsets[o.Partition] = o.At
		}
	})
	return offsets, nil
}

// ratchet remembers the highest commit of each partition and since when it is lower.
type ratchet struct {
	campaign *campaign
	highest  verify.Offsets
	lower    map[verify.Partition]time.Time
}

func (r *ratchet) see(at time.Time, now verify.Offsets) {
	for partition, highest := range r.highest {
		offset := now[partition]
		if offset >= highest {
			delete(r.lower, partition)
			continue
		}
		since, known := r.lower[partition]
		if !known {
			r.lower[partition] = at
			continue
		}
		if at.Sub(since) > rewound {
			r.campaign.broken("commits", "%v went back from %d to %d", partition, highest, offset)
			r.highest[partition] = offset
		}
	}
	for partition, offset := range now {
		r.highest[partition] = max(r.highest[partition], offset)
	}
}

// progress notes the state of the campaign now and then.
func (c *campaign) progress(ctx context.Context) {
	for wait(ctx, progressEvery) {
		rows, lag := "?", "?"
		if n, err := c.database.rows(ctx); err == nil {
			rows = fmt.Sprint(n)
		}
		asking, cancel := context.WithTimeout(ctx, 5*time.Second)
		if source, parking, err := c.places.Lag(asking); err == nil {
			lag = fmt.Sprintf("%d+%d parked", source, parking)
		}
		cancel()
		if ctx.Err() != nil {
			return
		}
		c.say("produced %d, rows %s, lag %s, checked %d; %s", c.load.produced.Load(), rows, lag, c.result.checked.Load(), c.activeFaults())
	}
}
