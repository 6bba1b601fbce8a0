package chaos

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestCalm_NothingElseWithinTheGrace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		span   Span
		others []Span
		want   []Span
	}{
		"alone":                {between(10, 30), nil, []Span{between(12, 30)}},
		"too short":            {between(10, 12), nil, nil},
		"another before":       {between(10, 30), []Span{between(1, 9)}, []Span{between(12, 30)}},
		"another just before":  {between(10, 30), []Span{between(1, 14)}, []Span{between(16, 30)}},
		"another in it":        {between(10, 30), []Span{between(15, 20)}, []Span{between(12, 15), between(22, 30)}},
		"another to the end":   {between(10, 30), []Span{between(20, 29)}, []Span{between(12, 20)}},
		"another all the time": {between(10, 30), []Span{between(1, 40)}, nil},
		"two others":           {between(10, 30), []Span{between(14, 15), between(24, 25)}, []Span{between(12, 14), between(17, 24), between(27, 30)}},
		"another after":        {between(10, 30), []Span{between(31, 40)}, []Span{between(12, 30)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := calm(c.span, c.others, 2*time.Second); !slices.Equal(got, c.want) {
				t.Errorf("calm %v, want %v", got, c.want)
			}
		})
	}
}

// TestCalm_EachSecondOnce compares with a look at each second.
func TestCalm_EachSecondOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const grace = 3
		drawn := func(name string) (from, to int) {
			from = rapid.IntRange(0, 40).Draw(t, name)
			return from, from + rapid.IntRange(0, 40).Draw(t, name+" length")
		}
		from, to := drawn("span")
		affected := make([]bool, 100)
		var others []Span
		for range rapid.IntRange(0, 5).Draw(t, "others") {
			first, last := drawn("other")
			others = append(others, between(first, last))
			for s := first; s < last+grace; s++ {
				affected[s] = true
			}
		}
		seconds := 0
		for _, s := range calm(between(from, to), others, grace*time.Second) {
			for at := s.From; at.Before(s.To); at = at.Add(time.Second) {
				seconds++
				if affected[at.Unix()] || at.Unix() < int64(from+grace) || at.Unix() >= int64(to) {
					t.Fatalf("second %d is not calm", at.Unix())
				}
			}
		}
		for s := from + grace; s < to; s++ {
			if !affected[s] {
				seconds--
			}
		}
		if seconds != 0 {
			t.Fatalf("%d calm seconds too many", seconds)
		}
	})
}

func between(from, to int) Span {
	return Span{time.Unix(int64(from), 0), time.Unix(int64(to), 0)}
}
