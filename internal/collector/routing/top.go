package routing

import "strings"

// top counts values in bounded memory: the Space-Saving algorithm of Metwally, Agrawal and El Abbadi (2005). A value that
// finds no room takes the place of the one with the lowest count. It begins at that count, because it may have had so many
// decisions before. So a value with more than 1/most of all decisions is always there.
type top struct {
	most   int
	byName map[string]*counted
	heap   []*counted // the lowest count first
}

// counted is a value in a top.
type counted struct {
	name  string
	count uint64 // never below the true count since the last halving
	over  uint64 // by so much it may be above that
	seen  uint64 // decisions since it took its place
	place int    // in the heap
	purse *purse // of a settled value
}

// sure is how many decisions there were at least, of those that are not halved away.
func (c *counted) sure() uint64 { return c.count - min(c.over, c.count) }

func newTop(most int) *top { return &top{most: most, byName: map[string]*counted{}} }

func (t *top) full() bool { return len(t.heap) >= t.most }

// count counts a decision of a value that is there.
func (t *top) count(c *counted) {
	c.count++
	c.seen++
	t.sink(c.place)
}

// arrive counts a decision of a value, which takes a place if it has none.
func (t *top) arrive(name string) *counted {
	c := t.byName[name]
	switch {
	case c != nil:
	case !t.full():
		c = t.insert(strings.Clone(name), 0) // else it would keep the whole upload in memory
	default:
		c = t.heap[0]
		delete(t.byName, c.name)
		c.name, c.over, c.seen = strings.Clone(name), c.count, 0
		t.byName[c.name] = c
	}
	t.count(c)
	return c
}

// insert puts a value in a free place.
func (t *top) insert(name string, count uint64) *counted {
	c := &counted{name: name, count: count, place: len(t.heap)}
	t.heap = append(t.heap, c)
	t.byName[name] = c
	t.rise(c.place)
	return c
}

// remove takes a value out.
func (t *top) remove(c *counted) {
	delete(t.byName, c.name)
	last := len(t.heap) - 1
	at := c.place
	t.swap(at, last)
	t.heap[last] = nil
	t.heap = t.heap[:last]
	if at < last {
		t.sink(at)
		t.rise(at)
	}
}

// halve forgets: after n halvings a former count weighs 1/2^n. The order of counts stays.
func (t *top) halve(n uint) {
	for _, c := range t.heap {
		c.count >>= n
		c.over >>= n
	}
}

func (t *top) sink(at int) {
	for {
		least := at
		for _, below := range [2]int{2*at + 1, 2*at + 2} {
			if below < len(t.heap) && t.heap[below].count < t.heap[least].count {
				least = below
			}
		}
		if least == at {
			return
		}
		t.swap(at, least)
		at = least
	}
}

func (t *top) rise(at int) {
	for at > 0 && t.heap[at].count < t.heap[(at-1)/2].count {
		t.swap(at, (at-1)/2)
		at = (at - 1) / 2
	}
}

func (t *top) swap(a, b int) {
	t.heap[a], t.heap[b] = t.heap[b], t.heap[a]
	t.heap[a].place, t.heap[b].place = a, b
}
