package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a sort of fault.
type Kind struct {
	Name  string
	Group string // the part that it hits; a plan deals the groups in turn
	// Shortest and Longest bound how long it lasts, from done to healed.
	Shortest, Longest time.Duration
	Targets           int // how many there are to choose from, numbered from 0; at least 1
	// Holds names what it has for itself while it lasts; two faults that hold the same never overlap.
	Holds func(target int) []string
}

// Fault is one fault of a plan. Start counts from the beginning of the load.
type Fault struct {
	Kind   string
	Target int
	Start  time.Duration
	Length time.Duration
}

const (
	mostAtOnce  = 3
	calmBefore  = 4 * time.Second // the programs join their groups
	shortestGap = 2 * time.Second // between two waves
	longestGap  = 7 * time.Second
	spread      = 4 * time.Second // within which a wave breaks out
)

// Plan deals faults in waves of one to three that overlap, with a short calm between the waves, until length is over.
// The same arguments give the same plan. Groups come in turn, so that a short plan has something of each, and a long one
// every kind.
func Plan(seed uint64, length time.Duration, kinds []Kind) []Fault {
	if len(kinds) == 0 {
		return nil
	}
	d := &deck{rng: rand.New(rand.NewPCG(seed, 0x6368616f73)), kinds: kinds}
	var plan []Fault
	for from := calmBefore; ; {
		wave, until := d.wave(from)
		if until > length {
			return plan
		}
		plan = append(plan, wave...)
		from = until + d.between(shortestGap, longestGap)
	}
}

type deck struct {
	rng   *rand.Rand
	kinds []Kind
	next  []Kind
}

// wave draws faults that do not get into each other's way, and says when the last of them is healed.
func (d *deck) wave(from time.Duration) ([]Fault, time.Duration) {
	var faults []Fault
	var held []string
	until := from
	for range 1 + d.rng.IntN(mostAtOnce) {
		fault, holds, ok := d.draw(held)
		if !ok {
			break
		}
		fault.Start = from
		if len(faults) > 0 {
			fault.Start += d.between(0, spread)
		}
		held = append(held, holds...)
		faults = append(faults, fault)
		until = max(until, fault.Start+fault.Length)
	}
	return faults, until
}

// draw takes the first kind of the deck that leaves alone what is held.
func (d *deck) draw(held []string) (Fault, []string, bool) {
	if len(d.next) < mostAtOnce {
		d.next = append(d.next, d.shuffled()...)
	}
	for i, kind := range d.next {
		target := d.rng.IntN(max(kind.Targets, 1))
		holds := kind.Holds(target)
		if slices.ContainsFunc(holds, func(h string) bool { return slices.Contains(held, h) }) {
			continue
		}
		d.next = slices.Delete(d.next, i, i+1)
		return Fault{Kind: kind.Name, Target: target, Length: d.between(kind.Shortest, kind.Longest)}, holds, true
	}
	return Fault{}, nil, false
}

// shuffled is every kind once, the groups in turn.
func (d *deck) shuffled() []Kind {
	byGroup := make(map[string][]Kind)
	var groups []string
	for _, kind := range d.kinds {
		if _, known := byGroup[kind.Group]; !known {
			groups = append(groups, kind.Group)
		}
		byGroup[kind.Group] = append(byGroup[kind.Group], kind)
	}
	for _, group := range groups {
		d.rng.Shuffle(len(byGroup[group]), func(i, j int) {
			byGroup[group][i], byGroup[group][j] = byGroup[group][j], byGroup[group][i]
		})
	}
	var all []Kind
	for len(all) < len(d.kinds) {
		d.rng.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
		for _, group := range groups {
			if left := byGroup[group]; len(left) > 0 {
				all, byGroup[group] = append(all, left[0]), left[1:]
			}
		}
	}
	return all
}

func (d *deck) between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(d.rng.Int64N(int64(most-least)))
}
