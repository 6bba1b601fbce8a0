package collector

import (
	"fmt"
	"testing"
	"time"
)

func TestPlaces_ClientAlone(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(8), time.Unix(1e9, 0)
	for range 8 {
		if !p.take("one", now) {
			t.Fatal("alone, it does not get all")
		}
	}
	if p.take("one", now) || p.taken() != 8 {
		t.Error("more than there are")
	}
	p.leave("one")
	if !p.take("one", now) {
		t.Error("it waits for itself")
	}
}

func TestPlaces_OthersWait(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(8), time.Unix(1e9, 0)
	for range 8 {
		p.take("one", now)
	}
	if p.take("two", now) {
		t.Fatal("there is none left")
	}
	for range 3 { // 5 are held, which is more than a quarter
		p.leave("one")
		if p.take("one", now.Add(waits)) {
			t.Fatal("it gets one before who waits")
		}
	}
	if !p.take("two", now.Add(waits)) {
		t.Fatal("who waited gets none")
	}
	if !p.take("one", now.Add(waits)) {
		t.Error("nobody waits any more")
	}
	p.leave("one")
	for p.take("two", now.Add(waits)) {
	}
	if p.taken() != 8 || p.take("three", now.Add(waits)) {
		t.Fatal("all are taken")
	}
	for range 5 {
		p.leave("one")
	}
	more := 0
	for p.take("one", now.Add(waits)) {
		more++
	}
	if more != 2 {
		t.Errorf("it got %d more, up to a quarter it does not wait for others", more)
	}
	if p.take("one", now.Add(2*waits+1)) != true {
		t.Error("who does not come again is waited for for ever")
	}
}

func TestPlaces_Strangers(t *testing.T) {
	t.Parallel()
	p, now := newPlaces(1), time.Unix(1e9, 0)
	p.take("one", now)
	for i := range 3 * mostWaiting {
		p.take(fmt.Sprint(i), now)
	}
	if len(p.waiting) != mostWaiting {
		t.Errorf("%d are remembered", len(p.waiting))
	}
	p.leave("one")
	if p.take("two", now.Add(waits+1)); len(p.waiting) != 0 || len(p.held) != 1 {
		t.Errorf("%d wait, %d hold", len(p.waiting), len(p.held))
	}
}
