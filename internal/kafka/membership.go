package kafka

import (
	"context"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// leaveTimeout limits the request to leave the group. Together with the drain it stays below the time that a program
// has to stop.
const leaveTimeout = 3 * time.Second

// assigned begins an assignment for every new partition.
func (s *session) assigned(_ context.Context, client *kgo.Client, added map[string][]int32) {
	member, _ := client.GroupMetadata()
	var begun []*Assignment
	var foreign []int32
	s.mu.Lock()
	switch {
	case s.stopping || s.broken != nil:
		s.mu.Unlock()
		return
	case s.member != member && len(s.parts) > 0:
		// The group forgot this member and took it in again as a new one. The client continues where it was, but
		// another member may have read on too.
		s.mu.Unlock()
		s.endSession(errFenced)
		return
	}
	s.member, s.joined, s.changed = member, true, time.Now()
	for _, p := range added[s.source.sc.Topic] {
		if !s.source.share().Has(p) { // a leader of another kind gave it to us; it is another shard's
			foreign = append(foreign, p)
			continue
		}
		a := newAssignment(s.base, s, s.source.sc.Topic, p, member)
		s.parts[p] = a
		begun = append(begun, a)
	}
	total := len(s.parts)
	s.sharing.Store(int64(total))
	s.mu.Unlock()

	s.source.faults.clear(faultGroup)
	if total > 0 {
		s.source.faults.clear(faultTopic)
	}
	s.source.grow(begun)
	s.unlooked.Store(true)
	for _, a := range begun {
		s.flow(a) // a pause outlives the loss of a partition
		go s.carry(a)
	}
	if len(foreign) > 0 {
		client.PauseFetchPartitions(map[string][]int32{s.source.sc.Topic: foreign})
		s.source.logger.Error().Ints32("partitions", foreign).
			Str("hint", "another program is the leader of this group; every shard needs a group of its own").Msg("partitions of other shards refused")
	}
	if len(begun) > 0 {
		s.source.logger.Info().Ints32("partitions", added[s.source.sc.Topic]).Int("assigned", total).Msg("partitions assigned")
	}
}

// grow counts the partitions of a topic that grew since the last look. It had fewer partitions then than it needs for
// these assignments. The share of this process would be too high until the next look.
func (s *Source) grow(begun []*Assignment) {
	before := s.partitions.Load()
	if before == 0 {
		return // the first look tells
	}
	least := int32(0)
	for _, a := range begun {
		least = max(least, a.partition+1)
	}
	s.partitions.CompareAndSwap(before, max(before, int64(s.share().Count(int(least)))))
}

// offsets notes the committed offsets of the group.
func (s *session) offsets(_ context.Context, at map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, o := range at[s.source.sc.Topic] {
		if a := s.parts[p]; a != nil && o.EpochOffset().Offset >= 0 {
			a.startAt(o.EpochOffset())
		}
	}
	return at, nil
}

// revoked gives partitions up in good order: the batch in hand may be finished and committed.
func (s *session) revoked(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	s.changed = time.Now()
	s.mu.Unlock()
	s.giveUp(s.pick(lost), s.source.sc.Drain)
}

// lost ends assignments whose partitions already belong to another member.
func (s *session) lost(_ context.Context, _ *kgo.Client, lost map[string][]int32) {
	s.mu.Lock()
	s.joined = false
	s.mu.Unlock()
	s.giveUp(s.pick(lost), 0)
}

func (s *session) pick(which map[string][]int32) []*Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	var picked []*Assignment
	for _, p := range which[s.source.sc.Topic] {
		if a := s.parts[p]; a != nil {
			picked = append(picked, a)
		}
	}
	return picked
}

// giveUp ends assignments and waits for their handlers. With a drain the handlers may work on for that long. Without
// one nothing is committed from the first moment on.
func (s *session) giveUp(gone []*Assignment, drain time.Duration) {
	if len(gone) == 0 {
		return
	}
	for _, a := range gone {
		if drain <= 0 {
			a.kill()
		}
		a.leave()
	}
	timer := time.NewTimer(drain)
	defer timer.Stop()
	for _, a := range gone {
		select {
		case <-a.done:
			continue
		case <-timer.C:
			timer.Reset(0) // the time is over for the others too
		}
		a.cancel()
		<-a.done
	}
	for _, a := range gone {
		a.kill()
		s.source.faults.clearCommit(a.topic, a.partition)
		s.mu.Lock()
		if s.parts[a.partition] == a {
			delete(s.parts, a.partition)
			s.sharing.Store(int64(len(s.parts)))
		}
		s.mu.Unlock()
	}
	numbers := make([]int32, len(gone))
	for i, a := range gone {
		numbers[i] = a.partition
	}
	s.source.logger.Info().Ints32("partitions", numbers).Msg("partitions given up")
}

// endFenced ends an assignment from inside its own commit, because the group refused the commit.
func (s *session) endFenced(a *Assignment, err error) {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.cancel()
	s.endSession(err)
}

// stopPartition stops an assignment whose log has changed behind the records that were read. The partition stays assigned
// and is not read: an operator has to decide what the offsets mean now.
func (s *session) stopPartition(a *Assignment, err error) {
	f := a.explain(err)
	a.mu.Lock()
	a.dead = true
	a.empty()
	a.faulty = &partFault{err: f, resting: true, final: true}
	a.mu.Unlock()
	a.cancel()
	s.flow(a)
	s.source.logger.Error().Err(f).Str("hint", f.Hint).Msg("partition stopped")
}

// endSession ends the session because the client's state of the group cannot be trusted.
func (s *session) endSession(err error) {
	s.mu.Lock()
	if s.broken == nil && !s.stopping {
		s.broken = err
	}
	s.mu.Unlock()
	s.stop(err)
}

// close gives everything up and leaves the group.
func (s *session) close() {
	s.mu.Lock()
	s.stopping = true
	drain := s.source.sc.Drain
	if s.broken != nil {
		drain = 0
	}
	s.mu.Unlock()
	s.giveUp(s.assignments(), drain)

	// After that time the client's context ends all waits for a broker. Leaving is part of closing: a separate
	// request makes the client leave a goroutine behind.
	timer := time.AfterFunc(leaveTimeout, s.kill)
	defer timer.Stop()
	s.client.CloseAllowingRebalance()
}

func (s *session) assignments() []*Assignment {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*Assignment, 0, len(s.parts))
	for _, a := range s.parts {
		all = append(all, a)
	}
	slices.SortFunc(all, func(x, y *Assignment) int { return int(x.partition - y.partition) })
	return all
}
