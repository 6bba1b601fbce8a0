package routing

import (
	"testing"

	"docket/internal/consumer/lanes"
)

func TestDecide_EachOutcome(t *testing.T) {
	t.Parallel()
	const yes, no = true, false
	for _, c := range []struct {
		urgent, overUrgent, overShare bool
		want                          lanes.Lane
	}{
		{no, no, no, lanes.Default},
		{no, yes, no, lanes.Default},
		{no, no, yes, lanes.Bulk},
		{no, yes, yes, lanes.Bulk},
		{yes, no, no, lanes.Urgent},
		{yes, no, yes, lanes.Urgent},
		{yes, yes, no, lanes.Default},
		{yes, yes, yes, lanes.Bulk},
	} {
		if got := Decide(c.urgent, c.overUrgent, c.overShare); got != c.want {
			t.Errorf("%+v: %s", c, got.Name())
		}
	}
}
