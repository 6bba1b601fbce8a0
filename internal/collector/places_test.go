package collector

import (
	"fmt"
	"testing"
	"time"
)

func take(p *places, name string, now time.Time) bool {
	_, ok := p.take(name, now)
	return ok
}

func TestPlaces_ClientAlone(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(8), time.Unix(1e9, 0)
	for range 8 {
		if !take(p, "one", now) {
			t.Fatal("alone, it does not get all")
		}
	}
	if take(p, "one", now) || p.taken() != 8 {
		t.Error("more than there are")
	}
	p.leave("one")
	if !take(p, "one", now) {
		t.Error("it waits for itself")
	}
}

func TestPlaces_OthersWait(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(8), time.Unix(1e9, 0)
	for range 8 {
		take(p, "one", now)
	}
	if take(p, "two", now) {
		t.Fatal("there is none left")
	}
	for range 3 { // 5 are held, which is more than a quarter
		p.leave("one")
		if take(p, "one", now.Add(waits)) {
			t.Fatal("it gets one before who waits")
		}
	}
	if !take(p, "two", now.Add(waits)) {
		t.Fatal("who waited gets none")
	}
	if !take(p, "one", now.Add(waits)) {
		t.Error("nobody waits any more")
	}
	p.leave("one")
	for take(p, "two", now.Add(waits)) {
	}
	if p.taken() != 8 || take(p, "three", now.Add(waits)) {
		t.Fatal("all are taken")
	}
	for range 5 {
		p.leave("one")
	}
	more := 0
	for take(p, "one", now.Add(waits)) {
		more++
	}
	if more != 2 {
		t.Errorf("it got %d more, up to a quarter it does not wait for others", more)
	}
	if !take(p, "one", now.Add(2*waits+1)) {
		t.Error("who does not come again is waited for for ever")
	}
}

func TestPlaces_Strangers(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(1), time.Unix(1e9, 0)
	take(p, "one", now)
	for i := range 3 * mostWaiting {
		take(p, fmt.Sprint(i), now)
	}
	if len(p.waiting) != mostWaiting {
		t.Errorf("%d are remembered", len(p.waiting))
	}
	p.leave("one")
	if take(p, "two", now.Add(waits+1)); len(p.waiting) != 0 || len(p.held) != 1 {
		t.Errorf("%d wait, %d hold", len(p.waiting), len(p.held))
	}
}
