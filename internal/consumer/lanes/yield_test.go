package lanes

import (
	"testing"
	"time"
)

func TestYielding_Bounds(t *testing.T) {
	t.Parallel()
	type look struct {
		after  time.Duration
		behind Behind
		want   bool
	}
	late := Behind{YieldRecords + 1, 0}
	for name, looks := range map[string][]look{
		"at the bounds":  {{0, Behind{1000, 3 * time.Second}, false}},
		"by records":     {{0, Behind{1001, 0}, true}},
		"by age":         {{0, Behind{1, 3*time.Second + 1}, true}},
		"never behind":   {{0, Behind{}, false}, {time.Hour, Behind{999, time.Second}, false}},
		"half is late":   {{0, late, true}, {time.Second, Behind{500, 0}, true}, {time.Hour, Behind{500, 0}, true}, {2 * time.Hour, Behind{0, 1500 * time.Millisecond}, true}},
		"calm":           {{0, late, true}, {time.Second, Behind{499, 1499 * time.Millisecond}, true}, {4*time.Second - 1, Behind{}, true}, {4 * time.Second, Behind{}, false}},
		"calm restarts":  {{0, late, true}, {time.Second, Behind{}, true}, {2 * time.Second, Behind{500, 0}, true}, {4 * time.Second, Behind{}, true}, {5 * time.Second, Behind{}, true}, {7 * time.Second, Behind{}, false}},
		"late in calm":   {{0, late, true}, {time.Second, Behind{}, true}, {2 * time.Second, late, true}, {4 * time.Second, Behind{}, true}, {6 * time.Second, Behind{}, true}, {7 * time.Second, Behind{}, false}},
		"again":          {{0, late, true}, {time.Second, Behind{}, true}, {4 * time.Second, Behind{}, false}, {5 * time.Second, Behind{900, 2 * time.Second}, false}, {6 * time.Second, late, true}},
		"a look is late": {{0, late, true}, {time.Hour, Behind{}, true}, {time.Hour + 3*time.Second, Behind{}, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, y := time.Now(), Yielding{}
			for i, l := range looks {
				if y = y.Next(from.Add(l.after), l.behind); y.Yields() != l.want {
					t.Errorf("look %d, %+v after %v: yields %t", i, l.behind, l.after, y.Yields())
				}
			}
		})
	}
}
