package commitnote

import (
	"sync"
	"time"
)

// Keeper keeps the note of one program. It is safe for concurrent use.
type Keeper struct {
	own func() (s Spool, known bool)
	now func() time.Time

	mu    sync.Mutex
	met   Note // of other spools, and of this one before the program began
	ahead int64
	last  Spool
	text  string
}

// NewKeeper makes the keeper of a program. own returns the present state of its spool, and must not wait; known is
// false if the state cannot be told. A nil own means that the program has no spool. A nil now is [time.Now].
func NewKeeper(own func() (s Spool, known bool), now func() time.Time) *Keeper {
	if now == nil {
		now = time.Now
	}
	return &Keeper{own: own, now: now}
}

// Text is the note for the next commit. It has the state of the program's own spool at the time of the call. So a commit
// takes it after the records have their homes. It is empty if that state cannot be told.
func (k *Keeper) Text() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var s Spool
	if k.own != nil {
		var known bool
		if s, known = k.own(); !known {
			return ""
		}
		s.Since += k.ahead
	}
	if k.text == "" || s != k.last {
		k.last, k.text = s, k.met.String()
		if k.own != nil {
			k.text = k.met.with(&s)
		}
	}
	return k.text
}

// Met takes in the text beside the offset that the group has of a partition. Any other text than a note means that an
// unknown spool may have records from before that offset. Before an offset of 0 nothing was committed.
func (k *Keeper) Met(offset int64, text string) {
	n, ok := Parse(text)
	switch {
	case ok:
	case offset > 0:
		n = Unnoted(k.now())
	default:
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.own != nil {
		if s, known := k.own(); known {
			// A copy of the directory was noted. What this one says now has to be the newest, and nobody tells what is in
			// the copy.
			if was, there := n.spools[s.ID]; there && (was.Since > s.Since+k.ahead || was.Since == s.Since+k.ahead && was.Holds != s.Holds) {
				k.ahead = was.Since + 1 - s.Since
				n = n.Join(Unnoted(k.now()))
			}
			delete(n.spools, s.ID)
		}
	}
	k.met, k.text = k.met.Join(n), ""
}
