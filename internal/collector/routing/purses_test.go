package routing

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
	"pgregory.net/rapid"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// labelled is a share of a label's values, in small.
func labelled(rate, values, clients int) *purses {
	return newPurses(Share{Rule: "label:id", Rate: rate, label: "id"}, values, clients)
}

// pay takes a token for a decision, if there is one.
func pay(p *purses, value, client string, now time.Time) bool {
	one := p.of(value, client, now)
	if !one.has(now) {
		return false
	}
	one.take(now)
	return true
}

// TestPurses_ConformingClientIsNeverShaped has one client keep within the share with all its values together, while others
// invent values, repeat them and flood. They know none of its values.
func TestPurses_ConformingClientIsNeverShaped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(1, 5).Draw(t, "share")
		p := labelled(share, rapid.IntRange(1, 6).Draw(t, "values"), 4)
		within := rate.NewLimiter(rate.Limit(float64(share)*(1-1e-6)), burstOf(share)) // a hair below, for the rounding of floats
		now := start
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 500).Draw(t, "pause")) * time.Millisecond)
			if rapid.IntRange(0, 20).Draw(t, "halve") == 0 {
				p.halve(1)
			}
			n := rapid.IntRange(0, 15).Draw(t, "value")
			if client := rapid.IntRange(0, 3).Draw(t, "client"); client > 0 {
				pay(p, fmt.Sprint("theirs-", n), fmt.Sprint("other-", client), now)
				continue
			}
			if within.AllowN(now, 1) && !pay(p, fmt.Sprint("its-", n), "it", now) {
				t.Fatalf("shaped at %v", now.Sub(start))
			}
		}
	})
}

// TestPurses_InventedValuesHaveOneShare bounds a client that uses no value often enough to settle.
func TestPurses_InventedValuesHaveOneShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		share := rapid.IntRange(1, 20).Draw(t, "share")
		p := labelled(share, 8, 4)
		each := rapid.IntRange(1, settledAfter-1).Draw(t, "each")
		passed, now := 0, start
		for i := range rapid.IntRange(1, 2000).Draw(t, "decisions") {
			now = now.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "pause")) * time.Millisecond)
			if pay(p, fmt.Sprint("invented-", i/each), "inventor", now) {
				passed++
			}
		}
		if most := float64(burstOf(share)) + float64(share)*now.Sub(start).Seconds(); float64(passed) > most+1e-6 {
			t.Fatalf("%d passed in %v, at most %v", passed, now.Sub(start), most)
		}
	})
}

// TestPurses_SettledValueIsKept has a settled value stay while others of the same client invent values that occur less often.
func TestPurses_SettledValueIsKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, now := labelled(1000, rapid.IntRange(1, 4).Draw(t, "values"), 4), start
		own := rapid.IntRange(settledAfter, 40).Draw(t, "own")
		for range own {
			p.of("honest", "shared", now)
		}
		kept := p.settled.byName["honest"]
		if kept == nil {
			t.Fatalf("not settled after %d", own)
		}
		for n := range rapid.IntRange(1, 10).Draw(t, "invented") {
			for range rapid.IntRange(1, own).Draw(t, "times") { // no more decisions than the honest one
				p.of(fmt.Sprint("invented-", n), "shared", now)
			}
		}
		if p.settled.byName["honest"] != kept {
			t.Fatal("the value lost its place")
		}
	})
}

func TestPurses_HeavierValueSettlesAtLast(t *testing.T) {
	t.Parallel()
	p := labelled(5, 2, 4)
	for _, light := range []string{"a", "b"} {
		for range settledAfter {
			p.of(light, "shared", start)
		}
	}
	for range settledAfter + 1 {
		p.of("noisy", "shared", start)
	}
	if p.settled.byName["noisy"] == nil || len(p.settled.heap) != 2 {
		t.Error("the noisy value has no bucket of its own")
	}
}

func TestPurses_TotalIsBounded(t *testing.T) {
	t.Parallel()
	const share, values, seconds = 3, 4, 20
	p := labelled(share, values, 4)
	passed := 0
	for i := range 200 * seconds { // repeats every value often, so that it settles
		if pay(p, fmt.Sprint(i/50%16), "inventor", start.Add(time.Duration(i)*time.Second/200)) {
			passed++
		}
	}
	settled := 16 // each value settles once at most: all have the same count
	if most := (settled + 1) * (burstOf(share) + share*seconds); passed > most {
		t.Errorf("%d passed, at most %d", passed, most)
	}
}

func TestPurses_NoLabelIsOneValue(t *testing.T) {
	t.Parallel()
	p := labelled(2, 8, 4)
	passed := 0
	for range 1000 {
		if pay(p, "", "it", start) {
			passed++
		}
	}
	if most := 2 * burstOf(2); passed > most { // once as newcomer, once settled
		t.Errorf("%d passed, at most %d", passed, most)
	}
}

func TestPurses_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	p := labelled(2, 50, 20)
	for i := range 20_000 {
		value := fmt.Sprint(strings.Repeat("x", i/12%1000), i/12) // each settles
		p.of(value, fmt.Sprint("client-", i%997), start.Add(time.Duration(i)*time.Millisecond)).take(start.Add(time.Duration(i) * time.Millisecond))
	}
	if len(p.settled.heap) != 50 || len(p.candidates.heap) > 50 || len(p.common) > 20 {
		t.Errorf("%d settled, %d candidates, %d clients", len(p.settled.heap), len(p.candidates.heap), len(p.common))
	}
	for _, all := range []*top{p.settled, p.candidates} {
		for name := range all.byName {
			if len(name) > mostName {
				t.Errorf("a name of %d bytes", len(name))
			}
		}
	}
}

// TestPurses_ForgottenClientGainsNothing has more clients than are told apart. One of them floods, and being forgotten gives
// it no further burst.
func TestPurses_ForgottenClientGainsNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPurses(Share{Rule: RuleClient, Rate: 2}, 4, 3)
		passed, now := 0, start
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 400).Draw(t, "pause")) * time.Millisecond)
			if n := rapid.IntRange(0, 8).Draw(t, "client"); n > 3 {
				pay(p, "", fmt.Sprint("other-", n), now)
			} else if pay(p, "", "flood", now) {
				passed++
			}
		}
		// It may find its place taken and share the last bucket, too.
		if most := 2 * (float64(burstOf(2)) + 2*now.Sub(start).Seconds()); float64(passed) > most+1e-6 {
			t.Fatalf("%d passed, at most %v", passed, most)
		}
	})
}
