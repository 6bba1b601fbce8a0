package fallback

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// history remembers, in bounded memory, which files have failed and which are
// delivered and only wait to be tidied away. Forgetting costs duplicates, no
// record.
type history struct {
	limit     int
	clock     uint64
	failed    map[string]uint64 // stem to the time of its last failure
	delivered map[string]fault  // stem to what is wrong with the file
}

func newHistory(limit int) history {
	return history{limit: limit, failed: make(map[string]uint64), delivered: make(map[string]fault)}
}

// order returns files, given oldest first, in the order they should be tried.
// As long as nothing fails that is by age. Otherwise a coin decides: those
// that have not failed, oldest first, and then the others, the one longest
// untried first; or no order at all. Any fixed order falls into step with the
// windows sooner or later, and some file would never have its turn.
func (h *history) order(files []stem) []stem {
	if len(h.failed) == 0 {
		return files
	}
	if rand.IntN(2) == 0 {
		rand.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		return files
	}
	slices.SortStableFunc(files, func(a, b stem) int {
		return cmp.Compare(h.failed[a.text], h.failed[b.text]) // zero where it has not
	})
	return files
}

func (h *history) fail(f stem) {
	h.clock++
	if len(h.failed) >= h.limit {
		clear(h.failed)
	}
	h.failed[f.text] = h.clock
}

func (h *history) deliver(f stem, broken fault) {
	if len(h.delivered) >= h.limit {
		clear(h.delivered)
	}
	h.delivered[f.text] = broken
}

func (h *history) forget(f stem) {
	delete(h.failed, f.text)
	delete(h.delivered, f.text)
}

// rounds says when oversize files are tried: every one of them once after
// Open, and once more each time the interval has passed.
type rounds struct {
	every time.Duration
	start time.Time // of the next round; zero is at once
	left  int64     // files to try in this one
	flip  bool
}

// due reports whether a round is on, beginning one where it is time.
func (r *rounds) due(files int64) bool {
	if r.left > 0 {
		return true
	}
	if now := time.Now(); files > 0 && !now.Before(r.start) {
		r.left, r.start = files, now.Add(r.every)
	}
	return r.left > 0
}

// turn alternates, the ordinary files first.
func (r *rounds) turn() bool {
	r.flip = !r.flip
	return !r.flip
}

func (r *rounds) next() bool {
	if r.left == 0 {
		return false
	}
	r.left--
	return true
}
