package kafka

import (
	"slices"
	"testing"
)

// Each partition with a fault is named, in order, unless nothing at all can be read.
func TestFaults_OfEachPartition(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{Topic: "t", Group: "g"})
	src := s.source
	src.session = s
	of := func(p int32, r Reason) *FaultError { return &FaultError{Reason: r, Topic: "t", Partition: p} }
	for _, f := range []*FaultError{of(4, ReasonUnreadable), of(2, ReasonOutOfRange)} {
		s.parts[f.Partition] = &Assignment{topic: "t", partition: f.Partition, session: s, faulty: &partFault{err: f}}
	}
	s.parts[3] = &Assignment{topic: "t", partition: 3, session: s}
	src.faults.setCommit(of(3, ReasonGroup))
	src.faults.setCommit(of(1, ReasonGroup))
	src.faults.set(faultUnowned, of(9, ReasonUnowned))
	check := func(want ...int32) {
		t.Helper()
		var got []int32
		for _, err := range src.Faults() {
			got = append(got, err.(*FaultError).Partition)
		}
		if !slices.Equal(got, want) || src.Fault().(*FaultError).Partition != want[0] {
			t.Errorf("faults of %v, first %v; want %v", got, src.Fault(), want)
		}
	}
	check(1, 3, 2, 4, 9)
	src.faults.set(faultCluster, of(-1, ReasonUnreachable))
	check(-1)
	src.faults.clear(faultCluster)
	src.faults.clearCommit("t", 1)
	src.faults.clearCommit("t", 3)
	check(2, 4, 9)
}
