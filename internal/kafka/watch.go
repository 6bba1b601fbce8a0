package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	restFirst = time.Second
	restMost  = 30 * time.Second
	trust     = 5 * time.Second // without an error for so long after a rest, a partition is healthy again
)

// rest pauses a partition after an error. Otherwise the client would fetch again without a pause.
func (a *Assignment) rest(err error, now time.Time) {
	f := a.explain(err)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faulty != nil && a.faulty.final {
		return
	}
	var old *FaultError
	if a.faulty == nil {
		a.faulty = &partFault{}
	} else {
		old = a.faulty.err
	}
	if f.Reason == ReasonSetTooLarge { // the client has stopped reading this partition
		a.faulty.err, a.faulty.resting, a.faulty.final = f, true, true
		logFault(a.session.source.logger, old, f)
		return
	}
	if f.Offset < 0 && f.Reason == ReasonOutOfRange {
		f.Offset = max(a.position, a.start)
	}
	pause := min(restFirst<<min(a.faulty.failures, 5), restMost)
	a.faulty.err, a.faulty.resting, a.faulty.next = f, true, now.Add(pause)
	a.faulty.failures++
	logFault(a.session.source.logger, old, f)
}

// explain returns the fault of a partition that cannot be read.
func (a *Assignment) explain(err error) *FaultError {
	src := a.session.source
	return fault("read", a.topic, a.partition, err).resetting(src.cfg.Brokers, src.sc.Group)
}

// well ends a fault, because records came.
func (a *Assignment) well() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faulty == nil || a.faulty.final {
		return
	}
	logFault(a.session.source.logger, a.faulty.err, nil)
	a.faulty = nil
}

// wake resumes a resting partition when it is time, or ends a fault after a silence.
func (a *Assignment) wake(now time.Time) {
	a.mu.Lock()
	f := a.faulty
	if f == nil || f.final || now.Before(f.next) {
		a.mu.Unlock()
		return
	}
	if !f.resting {
		a.mu.Unlock()
		a.well()
		return
	}
	f.resting, f.next = false, now.Add(trust+a.session.source.sc.FetchWait)
	a.mu.Unlock()
	a.session.flow(a)
}

func (a *Assignment) fault() *FaultError {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.faulty == nil {
		return nil
	}
	return a.faulty.err
}

// Failing returns the [FaultError] of a partition that cannot be read now; nil: no fault is known.
func (a *Assignment) Failing() error {
	if f := a.fault(); f != nil {
		return f
	}
	return nil
}

// startAt notes the group's committed offset.
func (a *Assignment) startAt(at kgo.EpochOffset) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.position < 0 {
		a.start, a.committed, a.epoch = at.Offset, at.Offset, at.Epoch
	}
}

// heard notes how far the partition can be read.
func (a *Assignment) heard(fp kgo.FetchPartition) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if fp.Err == nil {
		a.end = max(a.end, fp.LastStableOffset)
	}
}

func (a *Assignment) lag() PartitionLag {
	a.mu.Lock()
	defer a.mu.Unlock()
	return PartitionLag{Topic: a.topic, Partition: a.partition, Lag: max(0, a.end-max(a.committed, a.start, 0)), Oldest: a.oldest(), Stuck: a.faulty != nil}
}

// Bounds returns how far the partition was read. The next taken record has the offset next or a later one. end is one
// past the last readable offset (the last stable offset). When next has reached end, there are no records to take.
func (a *Assignment) Bounds(ctx context.Context) (next, end int64, err error) {
	ends, err := a.session.admin.ListCommittedOffsets(ctx, a.topic)
	if end, err = listed(ends, a, err); err != nil {
		return 0, 0, err
	}
	a.mu.Lock()
	switch {
	case len(a.queue) > 0:
		next = a.queue[0].Offset
	default:
		next = max(a.position, a.start)
	}
	a.end = max(a.end, end)
	a.mu.Unlock()
	if next >= 0 {
		return next, end, nil
	}
	starts, err := a.session.admin.ListStartOffsets(ctx, a.topic)
	if next, err = listed(starts, a, err); err != nil {
		return 0, 0, err
	}
	return next, end, nil
}

func listed(offsets kadm.ListedOffsets, a *Assignment, err error) (int64, error) {
	if err == nil {
		err = offsets.Error()
	}
	o, ok := offsets.Lookup(a.topic, a.partition)
	switch {
	case ok && o.Err == nil:
		return o.Offset, nil
	case ok:
		err = o.Err
	}
	return 0, fault("list offsets of", a.topic, a.partition, err)
}

// tick is the pause between two checks of a session.
const tick = time.Second

// watch checks what no poll reports: resting partitions, silent brokers, a missing topic and the ends of partitions.
func (s *session) watch(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var next time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, a := range s.assignments() {
				a.wake(now)
			}
			s.finishOnce(now)
			if !s.unlooked.Swap(false) && now.Before(next) { // the group shares a topic out again after it has grown
				continue
			}
			interval := s.source.sc.WatchInterval
			if !s.look(ctx) {
				interval /= 5
			}
			next = time.Now().Add(interval)
			s.lookRetention(ctx)
		}
	}
}

// passMarks commits transaction markers after which no batch comes.
func (s *session) passMarks(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			notes := true
			for _, a := range s.assignments() {
				notes = a.commitMarks(ctx, notes) && notes
			}
		}
	}
}

// awaitNeeded waits until every topic of SourceConfig.Needs exists. A topic that may not be seen counts as present.
// It waits once only: the publisher finds out about a topic that is deleted later.
func (s *session) awaitNeeded(ctx context.Context) {
	src := s.source
	for !src.complete {
		missing, err := s.missing(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case missing != nil:
			src.faults.set(faultNeeded, missing)
		case err == nil:
			src.faults.clear(faultNeeded)
			src.complete = true
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(tick):
		}
	}
}

// missing returns the fault of the first needed topic that does not exist. An error says that some topics could not
// be asked about.
func (s *session) missing(ctx context.Context) (*FaultError, error) {
	ctx, cancel := context.WithTimeout(ctx, s.source.cfg.RequestTimeout)
	defer cancel()
	for _, topic := range s.source.sc.Needs {
		meta, err := s.admin.Metadata(ctx, topic) // alone, because one that may not be seen hides the others
		if err == nil {
			err = meta.Topics[topic].Err
		}
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			f := fault("publish to", topic, -1, err)
			f.Hint = "create the topic " + topic + "; reading starts by itself"
			return f, nil
		case err != nil && !errors.Is(err, kerr.TopicAuthorizationFailed) && !errors.Is(err, kerr.LeaderNotAvailable):
			return nil, err
		}
	}
	return nil, nil
}

// look asks for the topic and the ends of its partitions. It reports whether all is well.
func (s *session) look(ctx context.Context) bool {
	src := s.source
	ctx, cancel := context.WithTimeout(ctx, src.cfg.RequestTimeout)
	defer cancel()
	asked := time.Now()
	meta, err := s.admin.Metadata(ctx, src.sc.Topic)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		src.faults.clear(faultCluster)
		src.faults.set(faultTopic, fault("read", src.sc.Topic, -1, err))
		return false
	}
	if err != nil {
		if s.polling.Err() != nil || src.faults.heard.Load() > asked.UnixNano() {
			return false
		}
		src.faults.set(faultCluster, unreachable("reach the brokers", err))
		return false
	}
	src.faults.clear(faultCluster)
	if err := meta.Topics[src.sc.Topic].Err; err != nil {
		src.faults.set(faultTopic, fault("read", src.sc.Topic, -1, err))
		return false
	}
	src.faults.clear(faultTopic)
	n := len(meta.Topics[src.sc.Topic].Partitions)
	if before := src.partitions.Swap(int64(src.share().Count(n))); before != src.partitions.Load() {
		s.client.ForceMetadataRefresh() // the group shares out what the client knows, which is a minute old at most
	}
	s.lookUnowned(n)
	parts := s.assignments()
	if len(parts) > 0 {
		s.measure(ctx, parts)
	}
	s.mu.Lock()
	joined := s.joined
	s.mu.Unlock()
	if joined && len(parts) == 0 && src.Partitions() > 0 {
		s.askForForgotten(ctx)
	}
	return joined
}

// lookUnowned sets a fault while the topic has partitions that no shard has. Nobody reads them.
func (s *session) lookUnowned(n int) {
	src := s.source
	none := src.share().Unowned(n)
	src.unowned.Store(int64(len(none)))
	if len(none) == 0 {
		src.faults.clear(faultUnowned)
		return
	}
	src.faults.set(faultUnowned, &FaultError{
		Reason: ReasonUnowned, Act: "read", Topic: src.sc.Topic, Partition: none[0], Offset: -1,
		Hint: fmt.Sprintf("the topic has %d partitions, and %d of them, from %d on, belong to no shard: nobody reads them; %s", n, len(none), none[0], hints[ReasonUnowned]),
	})
}

// askForForgotten asks the group to assign the topic's partitions again if no member has them. The leader of the
// group leaves out a topic that it does not read itself and that brokers did not know then. It does not add the topic
// later.
func (s *session) askForForgotten(ctx context.Context) {
	src := s.source
	groups, err := s.admin.DescribeGroups(ctx, src.sc.Group)
	if err != nil {
		return // a client without this right waits until the group changes
	}
	g, ok := groups[src.sc.Group]
	if !ok || g.Err != nil || g.State != "Stable" || len(g.AssignedPartitions()[src.sc.Topic]) > 0 {
		return
	}
	src.logger.Warn().Str("topic", src.sc.Topic).Msg("topic left out by the group")
	s.client.ForceRebalance()
}

// measure notes how far the partitions can be read, paused ones too.
func (s *session) measure(ctx context.Context, parts []*Assignment) {
	ends, err := s.admin.ListCommittedOffsets(ctx, s.source.sc.Topic)
	if err != nil {
		return
	}
	starts, _ := s.admin.ListStartOffsets(ctx, s.source.sc.Topic)
	for _, a := range parts {
		end, ok := ends.Lookup(a.topic, a.partition)
		first, known := starts.Lookup(a.topic, a.partition)
		a.mu.Lock()
		if ok && end.Err == nil {
			a.end = max(a.end, end.Offset)
		}
		if known && first.Err == nil && a.start < 0 {
			a.start = first.Offset
		}
		a.mu.Unlock()
	}
}

// unreachable wraps an error of a request that no broker answered.
func unreachable(act string, err error) *FaultError {
	f := fault(act, "", -1, err)
	if f.Reason == ReasonOther && f.Code == "" {
		f.Reason, f.Hint = ReasonUnreachable, hints[ReasonUnreachable]
	}
	return f
}
