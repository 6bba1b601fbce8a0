package kafka

import "testing"

func TestSource_GrowsWithAssignments(t *testing.T) {
	t.Parallel()
	s := lone(SourceConfig{Topic: "logs"})
	has := func(partitions ...int32) (all []*Assignment) {
		for _, p := range partitions {
			all = append(all, newAssignment(t.Context(), s, "logs", p, "member"))
		}
		return all
	}
	for _, tc := range []struct {
		known int64
		begun []*Assignment
		want  int
	}{
		{0, has(3, 4), 0}, // the first look tells, and 5 may be too few
		{4, has(0, 3), 4},
		{4, has(1, 6), 7},
		{4, nil, 4},
	} {
		s.source.partitions.Store(tc.known)
		if s.source.grow(tc.begun); s.source.Partitions() != tc.want {
			t.Errorf("%d partitions are known after %d: want %d", s.source.Partitions(), tc.known, tc.want)
		}
	}
}
