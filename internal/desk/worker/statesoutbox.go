package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
)

// Pauses between two deliveries of a message that no channel took.
const firstUndelivered, longestUndelivered = time.Minute, time.Hour

// mark notes that news were told.
type mark func(ctx context.Context) error

// newsOutbox is one kind of alert. It has at most one message, and looks for further news after that is delivered. The
// ledger remembers the message until then, so it outlives the desk.
type newsOutbox struct {
	key  string // of the messages
	look func(ctx context.Context, from, now time.Time) (*notify.Message, mark, error)

	read    bool            // the note
	noted   string          // in the ledger, when it was read or written last
	waiting *notify.Message // nil: none
	taken   bool            // a channel has it, and the note is still there
	answer  chan bool       // of the delivery that is under way; nil: none is
	tries   int
	next    time.Time // when it is delivered again
}

// note is the name of what the ledger remembers.
func (o *newsOutbox) note() string { return "untold:" + o.key }

// leave has the notes read again. Another desk may have the duty, or may have had it, and then told or left other news.
func (a *StateAlerts) leave() {
	if a == nil {
		return
	}
	for _, o := range a.kinds {
		o.read = false
	}
}

// tell delivers what waits, and then what is new if look is true. News are marked as told when the ledger has their
// message. A desk that ends in the middle tells the rest, or some again, at its next start.
func (a *StateAlerts) tell(ctx context.Context, o *newsOutbox, look bool, from, now time.Time) error {
	for {
		empty, err := a.deliver(ctx, o, now)
		if err != nil || !empty || !look {
			return err
		}
		m, told, err := o.look(ctx, from, now)
		if err != nil || told == nil {
			return err
		}
		if m != nil {
			m.Key = o.key
			text, err := json.Marshal(m)
			if err != nil {
				return err
			}
			if err := a.notes.Remember(ctx, o.note(), string(text)); err != nil {
				return err
			}
			o.noted, o.waiting, o.tries, o.next = string(text), m, 0, now
		}
		if err := told(ctx); err != nil {
			return err
		}
	}
}

// deliver hands out the message that waits, and reports whether none waits any more. It does not wait for the answer.
func (a *StateAlerts) deliver(ctx context.Context, o *newsOutbox, now time.Time) (empty bool, err error) {
	if err := a.readNote(ctx, o); err != nil || o.waiting == nil {
		return err == nil, err
	}
	if o.answer == nil && !o.taken && !now.Before(o.next) {
		answer := make(chan bool, 1)
		o.answer = answer
		a.to.Deliver(*o.waiting, func(taken bool) { answer <- taken })
	}
	select {
	case o.taken = <-o.answer:
		o.answer, o.next = nil, now.Add(doubling(firstUndelivered, longestUndelivered, o.tries))
		o.tries++
	default:
	}
	if !o.taken {
		return false, nil
	}
	if err := a.notes.Remember(ctx, o.note(), ""); err != nil {
		return false, err
	}
	o.noted, o.waiting, o.taken = "", nil, false
	return true, nil
}

// readNote reads what another desk did not deliver. A message that the ledger still has stays as it is.
func (a *StateAlerts) readNote(ctx context.Context, o *newsOutbox) error {
	if o.read {
		return nil
	}
	text, _, err := a.notes.Remembered(ctx, o.note())
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	if o.read = true; text == o.noted {
		return nil
	}
	*o = newsOutbox{key: o.key, look: o.look, read: true, noted: text}
	var m notify.Message
	if json.Unmarshal([]byte(text), &m) == nil { // an unreadable text counts as none
		o.waiting = &m
	}
	return nil
}
