package api

import (
	"crypto/rand"
	"encoding/base64"
	"strconv"
	"strings"
	"sync"
	"time"

	"docket/internal/history/reader"
)

// tails keeps the places of followers between two of their requests. A place in the store knows which of the last
// decisions were sent, which is too much for a text. So the text names a place that is kept here. It also has a
// simpler place, for a restart, another desk, or a lost answer.
type tails struct {
	mu   sync.Mutex
	most int
	now  func() time.Time
	kept map[string]*followPlace
}

// followPlace is the place of a follower.
type followPlace struct {
	id   string
	turn uint64 // number of answers with decisions; a repeated older request has an older turn
	tail reader.Tail
	used time.Time
}

// keptFor is how long an unused place is kept.
const keptFor = 2 * time.Minute

func newTails(most int, now func() time.Time) *tails {
	return &tails{most: most, now: now, kept: map[string]*followPlace{}}
}

// open takes the place of a text, so that no other request has it. An empty text begins a new one.
func (t *tails) open(text string, places Places) (*followPlace, error) {
	if text == "" {
		return &followPlace{id: rand.Text()}, nil
	}
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, reader.ErrCursor
	}
	parts := strings.SplitN(string(plain), " ", 3)
	if len(parts) != 3 {
		return nil, reader.ErrCursor
	}
	turn, err := strconv.ParseUint(parts[1], 10, 64)
	if err != nil {
		return nil, reader.ErrCursor
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.kept[parts[0]]; p != nil {
		delete(t.kept, p.id)
		if p.turn == turn && t.now().Sub(p.used) < keptFor {
			return p, nil
		}
	}
	tail, err := places.ParseTail(parts[2])
	if err != nil {
		return nil, err
	}
	return &followPlace{id: rand.Text(), tail: tail}, nil
}

// keep gives a place back. Unused places are dropped, the oldest first.
func (t *tails) keep(p *followPlace) {
	if p.tail == (reader.Tail{}) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p.used = t.now()
	t.kept[p.id] = p
	var oldest *followPlace
	for id, other := range t.kept {
		if p.used.Sub(other.used) >= keptFor {
			delete(t.kept, id)
		} else if oldest == nil || other.used.Before(oldest.used) {
			oldest = other
		}
	}
	if len(t.kept) > t.most {
		delete(t.kept, oldest.id)
	}
}

// text returns the name of the place.
func (p *followPlace) text(places Places) (string, error) {
	at, err := places.TailText(p.tail)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString([]byte(p.id + " " + strconv.FormatUint(p.turn, 10) + " " + at)), nil
}
