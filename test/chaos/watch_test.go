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
)

const (
	commitsEvery  = 500 * time.Millisecond
	progressEvery = 12 * time.Second
	liveEvery     = 4 * time.Second
	// rewound is how long a committed offset has to stay lower than it was: a broker that comes back and takes itself for
	// the coordinator may still give an old answer.
	rewound = 5 * time.Second
)

// commits is what both groups had committed at a time.
type commits struct {
	at              time.Time
	source, parking map[int32]int64
}

// watch looks on until the context ends: commits, progress, and whether everything committed has a home.
func (c *campaign) watch(ctx context.Context) *sync.WaitGroup {
	var all sync.WaitGroup
	all.Go(func() { c.pollCommits(ctx) })
	all.Go(func() { c.progress(ctx) })
	all.Go(func() { c.live(ctx) })
	all.Go(func() { c.followReturns(ctx) })
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
	source, parking := newRatchet(c, c.places.Topic), newRatchet(c, c.places.ParkingTopic)
	for wait(ctx, commitsEvery) {
		now := commits{at: time.Now()}
		var err error
		if now.source, err = committed(ctx, adm, c.places.Group, c.places.Topic); err != nil {
			continue
		}
		if now.parking, err = committed(ctx, adm, c.places.ParkingGroup, c.places.ParkingTopic); err != nil {
			continue
		}
		source.see(now.at, now.source)
		parking.see(now.at, now.parking)
		if len(source.lower)+len(parking.lower) > 0 {
			continue // an old answer, or soon a finding
		}
		c.mu.Lock()
		if last := len(c.commits) - 1; last < 0 || !maps.Equal(c.commits[last].source, now.source) || !maps.Equal(c.commits[last].parking, now.parking) {
			c.commits = append(c.commits, now)
		}
		c.mu.Unlock()
	}
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
	topic    string
	highest  map[int32]int64
	lower    map[int32]time.Time
}

func newRatchet(c *campaign, topic string) *ratchet {
	return &ratchet{campaign: c, topic: topic, highest: map[int32]int64{}, lower: map[int32]time.Time{}}
}

func (r *ratchet) see(at time.Time, now map[int32]int64) {
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
			r.campaign.broken("commits", "%s/%d went back from %d to %d", r.topic, partition, highest, offset)
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
