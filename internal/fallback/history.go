package fallback

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// history remembers which files failed, and which of their lines were acknowledged all the same. It also remembers
// which files are delivered and only have to be removed. Its memory is bounded. If it forgets one, a record is
// published twice and none is lost.
type history struct {
	limit     int
	clock     uint64
	failed    map[string]uint64    // by stem, the time of the last failure
	delivered map[string]delivered // by stem
	acked     map[string]*acks     // by stem
	ackedBits int                  // of all acked
}

func newHistory(limit int) history {
	return history{limit: limit, failed: make(map[string]uint64), delivered: make(map[string]delivered), acked: make(map[string]*acks)}
}

// delivered is a file of which all records have other homes.
type delivered struct {
	broken fault
	file   Info // as it was when it was read
}

// acks are the lines of a file that were acknowledged. The brokers may refuse some lines for good, and the file is
// tried again each round. Without this its other lines would be published each round, too, or never.
type acks struct {
	sum  string // of the file that had them
	bits []uint64
	next int // the line with which the next round begins
}

// mostAckedBits limits what is remembered of all files: 4 MiB.
const mostAckedBits = 8 * 4 << 20

// acksOf returns what was acknowledged of a file with this content.
func (h *history) acksOf(f stem, found *findings) *acks {
	if a := h.acked[f.text]; a != nil && a.sum == found.sha256 {
		return a
	}
	return &acks{sum: found.sha256, bits: make([]uint64, (found.lines+63)/64)}
}

// keep remembers the acknowledged lines of a file that failed.
func (h *history) keep(f stem, a *acks) {
	h.drop(f)
	if h.ackedBits+a.size() > mostAckedBits {
		clear(h.acked)
		h.ackedBits = 0
	}
	if a.size() <= mostAckedBits {
		h.acked[f.text] = a
		h.ackedBits += a.size()
	}
}

func (h *history) drop(f stem) {
	if a := h.acked[f.text]; a != nil {
		h.ackedBits -= a.size()
		delete(h.acked, f.text)
	}
}

func (a *acks) size() int { return 64 * len(a.bits) }

// add notes a line. One beyond those that were judged came while the file was read, and is not noted.
func (a *acks) add(i int) {
	if i < a.size() {
		a.bits[i/64] |= 1 << (i % 64)
	}
}

func (a *acks) has(i int) bool { return i < a.size() && a.bits[i/64]&(1<<(i%64)) != 0 }

// order returns files in the order in which they should be tried. They are given oldest first. While nothing fails,
// the order is by age. After failures a dice decides. Two sides put files that have not failed first, from the oldest or
// from the newest, then the others, the longest untried first. The third side is a random order. With any fixed order
// some file might never have its turn, because the order falls into step with the windows.
func (h *history) order(files []stem) []stem {
	if len(h.failed) == 0 {
		return files
	}
	switch rand.IntN(3) {
	case 0:
		rand.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		return files
	case 1:
		slices.Reverse(files)
	}
	slices.SortStableFunc(files, func(a, b stem) int {
		return cmp.Compare(h.failed[a.text], h.failed[b.text]) // zero if it has not failed
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

func (h *history) deliver(f stem, d delivered) {
	if len(h.delivered) >= h.limit {
		clear(h.delivered)
	}
	h.delivered[f.text] = d
}

func (h *history) forget(f stem) {
	delete(h.failed, f.text)
	delete(h.delivered, f.text)
	h.drop(f)
}

// rounds says when oversize files are tried: each once after Open, and once more after each interval.
type rounds struct {
	every time.Duration
	start time.Time // start of the next round; zero: at once
	left  int64     // files still to try in this round
	flip  bool
}

// due reports whether a round has files left. It begins a round if it is time.
func (r *rounds) due(files int64) bool {
	if r.left > 0 {
		return true
	}
	if now := time.Now(); files > 0 && !now.Before(r.start) {
		r.left, r.start = files, now.Add(r.every)
	}
	return r.left > 0
}

// turn alternates between the two kinds, ordinary files first.
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
