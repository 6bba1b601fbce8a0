//go:build integration

package e2e

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// holders are the partitions of the source by the member of the group that has them.
func (s *system) holders() (byMember [][]int32, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.places.Brokers...), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	described, err := kadm.NewClient(cl).DescribeGroups(s.t.Context(), s.places.Group)
	if err != nil {
		return nil, err
	}
	for _, m := range described[s.places.Group].Members {
		var has []int32
		if c, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range c.Topics {
				has = append(has, t.Partitions...)
			}
		}
		byMember = append(byMember, has)
	}
	return byMember, nil
}

// evenly waits until so many members have all partitions between them, the same number each, give or take one.
func (s *system) evenly(members, partitions int) {
	s.t.Helper()
	eventually(s.t, patience, fmt.Sprintf("%d members share %d partitions evenly", members, partitions), func() error {
		held, err := s.holders()
		if err != nil {
			return err
		}
		all := slices.Concat(held...)
		slices.Sort(all)
		whole := len(all) == partitions && len(slices.Compact(all)) == partitions
		for _, has := range held {
			whole = whole && len(has) >= partitions/members && len(has) <= (partitions+members-1)/members
		}
		if len(held) != members || !whole {
			return fmt.Errorf("they have %v", held)
		}
		return nil
	})
}

// lags is what a process says of its partitions, by partition.
func (p *process) lags() map[string]float64 {
	_, body := p.get("/metrics")
	found := map[string]float64{}
	for line := range strings.Lines(body) {
		if rest, ok := strings.CutPrefix(line, "docket_consumer_lag{"); ok {
			labels, value, _ := strings.Cut(strings.TrimSpace(rest), "} ")
			if n, err := strconv.ParseFloat(value, 64); err == nil {
				found[labels] = n
			}
		}
	}
	return found
}

// Four instances share twelve partitions evenly. One is killed under load, as a host that goes is, and the others take over
// what it had: all of it is stored, once.
func TestScale_FourConsumersTakeOverFromOneKilled(t *testing.T) {
	t.Parallel()
	const partitions, instances = 12, 4
	// A late answer of a busy machine would have records parked or spooled.
	s := partitioned(t, testenv.Kafka(t), testenv.Postgres(t), partitions, "DOCKET_PUBLISH_TIMEOUT=20s", "DOCKET_STORE_TIMEOUT=30s", "DOCKET_KAFKA_REBALANCE_TIMEOUT=5m")
	g := s.generate(30_000, 13)
	var cs []*process
	for range instances {
		cs = append(cs, s.consumer())
	}
	s.replayer()
	s.evenly(instances, partitions)
	g.background(0, unhurried)
	serving(t, home.Row, 100, cs...)
	killed, others := cs[0], cs[1:]
	for _, c := range cs {
		if n := len(c.lags()); n != partitions/instances {
			t.Errorf("%s tells the lag of %d partitions, and has %d", c.name, n, partitions/instances)
		}
	}
	killed.kill()
	s.evenly(instances-1, partitions)
	before := map[*process]float64{}
	for _, c := range others {
		before[c] = c.metric(`docket_records_total{home="row"}`)
	}
	for _, c := range others {
		serving(t, home.Row, before[c]+100, c)
	}
	g.enough.Store(true)
	g.wg.Wait()
	a := s.account(patience)
	if a.Homes[home.Parked]+a.Homes[home.Exhausted]+a.Homes[home.Spooled] > 0 {
		t.Errorf("with nothing away, records were put by: %v", a.Homes)
	}
	s.verify(0, "--settled")
	for _, c := range others {
		for partition, lag := range c.lags() {
			if lag != 0 {
				t.Errorf("%s: lag %v of %s with everything committed", c.name, lag, partition)
			}
		}
		c.stopped()
	}
}
