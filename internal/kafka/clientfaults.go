package kafka

import (
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kinds of faults besides those of partitions.
const (
	faultCluster = iota
	faultGroup
	faultTopic
	faultNeeded  // a topic of SourceConfig.Needs
	faultUnowned // comes last, because it concerns no partition of this process
	faultKinds
)

// clientFaults keeps the faults that concern no partition. As a hook of the client it also notes when a broker last
// answered.
type clientFaults struct {
	logger zerolog.Logger
	heard  atomic.Int64 // Unix nanoseconds

	mu     sync.Mutex
	faults [faultKinds]*FaultError
	commit map[int32]*FaultError
}

// OnBrokerRead notes that a broker answered. Answers before the end of a login do not count, because a refused client
// gets them too.
func (s *clientFaults) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if err == nil && key != int16(kmsg.ApiVersions) && key != int16(kmsg.SASLHandshake) && key != int16(kmsg.SASLAuthenticate) {
		s.heard.Store(time.Now().UnixNano())
	}
}

// OnBrokerConnect does nothing: a connection is not an answer. It is needed for [kgo.HookBrokerConnect].
func (s *clientFaults) OnBrokerConnect(kgo.BrokerMetadata, time.Duration, net.Conn, error) {}

func (s *clientFaults) set(kind int, f *FaultError) {
	s.mu.Lock()
	old := s.faults[kind]
	s.faults[kind] = f
	s.mu.Unlock()
	logFault(s.logger, old, f)
}

func (s *clientFaults) clear(kind int) {
	s.mu.Lock()
	old := s.faults[kind]
	s.faults[kind] = nil
	s.mu.Unlock()
	logFault(s.logger, old, nil)
}

func (s *clientFaults) setCommit(f *FaultError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.commit == nil {
		s.commit = make(map[int32]*FaultError)
	}
	logFault(s.logger, s.commit[f.Partition], f)
	s.commit[f.Partition] = f
}

func (s *clientFaults) clearCommit(_ string, partition int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	logFault(s.logger, s.commit[partition], nil)
	delete(s.commit, partition)
}

// of returns the fault of a kind, nil if there is none.
func (s *clientFaults) of(kind int) *FaultError {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.faults[kind]
}

// first returns the fault that explains most, other than faultUnowned.
func (s *clientFaults) first() *FaultError {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults[:faultUnowned] {
		if f != nil {
			return f
		}
	}
	return nil
}

// commits returns the faults of commits, in the order of their partitions.
func (s *clientFaults) commits() (all []*FaultError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range slices.Sorted(maps.Keys(s.commit)) {
		all = append(all, s.commit[p])
	}
	return all
}

// logFault logs when a fault changes, not each time that it is found again.
func logFault(logger zerolog.Logger, old, now *FaultError) {
	switch {
	case now != nil && (old == nil || old.Reason != now.Reason || old.Code != now.Code || old.Resource != now.Resource || old.Operation != now.Operation):
		line := logger.Error().Str("reason", string(now.Reason)).Str("code", now.Code).Str("topic", now.Topic).
			Int32("partition", now.Partition)
		if now.Operation != "" {
			line.Str("acl", now.Operation+" on "+now.Resource)
		}
		if d := (*dialError)(nil); errors.As(now.Err, &d) {
			line.Str("broker", d.address)
		}
		line.Str("hint", now.Hint).Msg("kafka fault began")
	case now == nil && old != nil:
		logger.Warn().Str("reason", string(old.Reason)).Str("topic", old.Topic).
			Int32("partition", old.Partition).Msg("kafka fault ended")
	}
}
