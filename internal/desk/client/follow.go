package client

import (
	"context"
	"maps"
	"strconv"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
)

// followWait is how long a desk holds a request that follows, in seconds. It is less than any proxy waits.
const followWait = 20

// followed is the place of a follower. The text alone can repeat decisions: after a restart, at another desk, and
// after a lost answer. So the place also has those that were told since the time from which that can be.
type followed struct {
	text string
	told map[toldKey]time.Time // by when it was stored
	last time.Time             // the latest of these times
}

// toldKey is what makes two decisions one.
type toldKey struct {
	id, shard string
	at        int64 // nanoseconds
}

const (
	// longestStore is how long a desk may tell decisions again that does not tell until when all is done with.
	longestStore = 20 * time.Minute
	// mostTold is how many decisions a place remembers. Beyond it, some can come twice after a restart.
	mostTold = 1 << 19
)

// Follow asks for what was stored since a place. With a place it waits until something is stored, for 20 s at most. A
// decision comes once, also after a restart of the desk.
func (d Decisions) Follow(ctx context.Context, f reader.Filter, t reader.Tail, limit int, payload bool) ([]reader.Decision, reader.Tail, error) {
	place, going := t.Mark.(*followed)
	if !going {
		place = &followed{told: map[toldKey]time.Time{}}
	}
	var all []reader.Decision
	for more := true; more && len(all) < limit; {
		q := filterQuery(f, payload)
		q.Set("limit", strconv.Itoa(limit-len(all)))
		if place.text != "" {
			q.Set("tail", place.text)
			q.Set("wait", strconv.Itoa(d.last.patience()))
			if len(all) > 0 {
				q.Set("wait", "0")
			}
		}
		var stored api.Stored
		err := d.client.ask(ctx, get("/decisions/follow", q), &stored)
		if d.last.failed(err); err != nil {
			if len(all) > 0 { // they are told; the next call meets the error again
				break
			}
			return nil, t, cursorOf(err, "query.tail")
		}
		d.last.note(stored.EditsUnknown)
		all = append(all, place.fresh(decisionsOf(stored.Decisions))...)
		place.move(stored.Tail, stored.Settled)
		if err := partly(ctx, stored.Partly); err != nil {
			return all, reader.Tail{Mark: place}, err
		}
		more = stored.More
	}
	return all, reader.Tail{Mark: place}, nil
}

// fresh returns those that were not told before.
func (p *followed) fresh(found []reader.Decision) (all []reader.Decision) {
	for i := range found {
		d := &found[i]
		k := toldKey{d.ID, d.Shard, d.Time.UnixNano()}
		if _, told := p.told[k]; told {
			continue
		}
		p.told[k] = d.StoredAt
		if d.StoredAt.After(p.last) {
			p.last = d.StoredAt
		}
		all = append(all, *d)
	}
	return all
}

// move takes over the place of an answer, and forgets what cannot come again.
func (p *followed) move(text string, settled *time.Time) {
	p.text = text
	before := p.last.Add(-longestStore)
	if settled != nil {
		before = *settled
	}
	maps.DeleteFunc(p.told, func(_ toldKey, at time.Time) bool { return at.Before(before) })
	for k := range p.told {
		if len(p.told) <= mostTold {
			return
		}
		delete(p.told, k)
	}
}

// patience is how long a desk may hold a request that follows, in seconds. The first one after an outage is not held, so
// that a person learns of its end.
func (u *last) patience() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.away {
		return 0
	}
	return followWait
}
