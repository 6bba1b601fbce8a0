package ledger

import "testing"

func TestDeadAgain(t *testing.T) {
	t.Parallel()
	const most = 3
	for name, c := range map[string]struct {
		from   Standing
		before SendingOutcome
		later  bool // there is a later retry
		want   Standing
		counts bool
	}{
		"first attempt":                 {from: Standing{Processing, 0}, want: Standing{Pending, 1}, counts: true},
		"last attempt but one":          {from: Standing{Processing, 1}, want: Standing{Pending, 2}, counts: true},
		"last attempt":                  {from: Standing{Processing, 2}, want: Standing{Failed, 3}, counts: true},
		"beyond the last":               {from: Standing{Processing, 7}, want: Standing{Failed, 8}, counts: true},
		"later retry under way":         {from: Standing{Processing, 0}, later: true, want: Standing{Processing, 1}, counts: true},
		"later retry, no attempts left": {from: Standing{Processing, 2}, later: true, want: Standing{Processing, 3}, counts: true},
		"lease had ended":               {from: Standing{Pending, 0}, want: Standing{Pending, 1}, counts: true},
		"lease had ended, last attempt": {from: Standing{Pending, 2}, want: Standing{Failed, 3}, counts: true},
		"lease had ended, later retry":  {from: Standing{Pending, 0}, later: true, want: Standing{Pending, 1}, counts: true},
		"failed":                        {from: Standing{Failed, 0}, want: Standing{Failed, 1}, counts: true},
		"failed, later retry":           {from: Standing{Failed, 0}, later: true, want: Standing{Failed, 1}, counts: true},
		"resolved":                      {from: Standing{Resolved, 1}, want: Standing{Resolved, 1}},
		"copy of a dead retry":          {from: Standing{Pending, 1}, before: SendingDead, want: Standing{Pending, 1}},
		"stored":                        {from: Standing{Processing, 1}, before: SendingStored, want: Standing{Processing, 1}},
		"withdrawn":                     {from: Standing{Pending, 1}, before: SendingWithdrawn, want: Standing{Pending, 1}},
		"refused by Kafka":              {from: Standing{Failed, 1}, before: SendingRefused, want: Standing{Failed, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, counts := c.from.DeadAgain(c.before, !c.later, most)
			if got != c.want || counts != c.counts {
				t.Errorf("%+v, counts %v; want %+v, %v", got, counts, c.want, c.counts)
			}
			if got.State != c.from.State && !Legal(c.from.State, got.State, Died) {
				t.Errorf("no move from %s to %s", c.from.State, got.State)
			}
		})
	}
}

func TestEndsDead(t *testing.T) {
	t.Parallel()
	for outcome, want := range map[SendingOutcome]bool{
		"": true, SendingWithdrawn: true, SendingRefused: true, SendingDead: false, SendingStored: false,
	} {
		if got := outcome.EndsDead(); got != want {
			t.Errorf("%q: %v", outcome, got)
		}
	}
}
