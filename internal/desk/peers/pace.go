package peers

import (
	"slices"
	"time"
)

// sample has the counters of a look, for the pace at the next one.
type sample struct {
	at    time.Time
	count map[string]float64
	pace  map[string]float64 // of the look before, for one that comes too soon after it
}

// soon is how long a pace stays: two looks within it are too close to each other.
const soon = time.Second

// pace fills in how much a second came since the look before. A counter that fell is of a program that was restarted.
func (w *Watch) pace(address string, f *Facts) {
	now := sample{at: w.cfg.Now(), count: map[string]float64{}, pace: map[string]float64{}}
	for name, of := range map[string]*float64{"stored": f.Stored, "taken": f.Taken} {
		if of != nil {
			now.count[name] = *of
		}
	}
	for _, l := range f.Lanes {
		now.count["lane "+l.Lane] = l.Stored
	}
	w.mu.Lock()
	before, known := w.rates[address]
	took := now.at.Sub(before.at)
	switch {
	case known && took < soon:
		now = sample{before.at, before.count, before.pace}
	case known:
		for name, n := range now.count {
			if was, there := before.count[name]; there && n >= was {
				now.pace[name] = (n - was) / took.Seconds()
			}
		}
	}
	w.rates[address] = now
	w.mu.Unlock()
	of := func(name string) *float64 {
		if v, there := now.pace[name]; there {
			return &v
		}
		return nil
	}
	f.StoredPace, f.TakenPace = of("stored"), of("taken")
	for i := range f.Lanes {
		f.Lanes[i].Pace = of("lane " + f.Lanes[i].Lane)
	}
}

// forget drops the counters of programs that are gone.
func (w *Watch) forget(asked []one) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for address := range w.rates {
		if !slices.ContainsFunc(asked, func(o one) bool { return o.address == address }) {
			delete(w.rates, address)
		}
	}
}
