package fallback

import (
	"sync"
	"time"
)

// Stats are counters of the spool.
type Stats struct {
	Files  int64 // data files waiting, oversize ones included
	Bytes  int64 // their size with their metas; corrupt/ not included
	Oldest time.Time
	// Oldest is the second in which the oldest waiting file was written, zero if none waits. After an older file is
	// gone it may be up to a minute too early.

	OversizeFiles    int64  // files that wait for a broker with a higher limit
	OversizeRecords  uint64 // records in them, now
	AppendedRecords  uint64 // records given a home since Open
	RecoveredRecords uint64 // records of files that were acknowledged whole, since Open
	DroppedRecords   uint64 // records lost to Evict, since Open
	CorruptFiles     uint64 // files moved to corrupt/, since Open
}

// usage counts files and bytes, so that nobody has to read the directory. Its lock is never held during a disk
// operation.
type usage struct {
	mu       sync.Mutex
	stats    Stats
	reserved int64 // bytes of running appends
	ages     ages
	busy     map[string]struct{} // stems being appended, recovered or evicted
	oversize []oversizeFile      // longest untried first
	since    int64               // rises when the first file comes and when the last one goes
}

// oversizeFile is a file that is tried in separate rounds.
type oversizeFile struct {
	stem    stem
	records uint64
}

func newUsage() *usage {
	return &usage{ages: make(ages), busy: make(map[string]struct{})}
}

func (l *usage) snapshot() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	st := l.stats
	st.Oldest = l.ages.oldest()
	st.OversizeFiles = int64(len(l.oversize))
	return st
}

func (l *usage) held() (since int64, holds bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since, l.stats.Files > 0
}

// reserve claims room for an append; false if that exceeds limit.
func (l *usage) reserve(size, limit int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats.Bytes+l.reserved+size > limit {
		return false
	}
	l.reserved += size
	return true
}

// fits reports whether reserve would succeed, without claiming anything.
func (l *usage) fits(size, limit int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats.Bytes+l.reserved+size <= limit
}

func (l *usage) unreserve(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reserved -= size
}

// add counts a new file.
func (l *usage) add(f stem, size int64, records int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats.Files++; l.stats.Files == 1 {
		l.since++
	}
	l.stats.Bytes += size
	l.ages.add(f.unix)
	if f.oversize() {
		l.oversize = append(l.oversize, oversizeFile{f, uint64(records)})
		l.stats.OversizeRecords += uint64(records)
	}
}

// remove counts a deleted file. A file that was put there by hand was never counted, so nothing goes below zero.
func (l *usage) remove(f stem, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stats.Files == 1 {
		l.since++
	}
	l.stats.Files = max(0, l.stats.Files-1)
	l.stats.Bytes = max(0, l.stats.Bytes-size)
	l.ages.remove(f.unix)
	if !f.oversize() {
		return
	}
	for i, o := range l.oversize {
		if o.stem.text == f.text {
			l.stats.OversizeRecords -= o.records
			l.oversize = append(l.oversize[:i], l.oversize[i+1:]...)
			return
		}
	}
}

// grow corrects the bytes after a meta came back or went away alone.
func (l *usage) grow(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Bytes = max(0, l.stats.Bytes+size)
}

func (l *usage) count(f func(*Stats)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f(&l.stats)
}

// claim takes a file for one activity; false if another has it.
func (l *usage) claim(f stem) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, taken := l.busy[f.text]; taken {
		return false
	}
	l.busy[f.text] = struct{}{}
	return true
}

func (l *usage) release(f stem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.busy, f.text)
}

// nextOversize claims the oversize file that has waited longest and moves it to the end of the line.
func (l *usage) nextOversize() (stem, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.oversize) == 0 {
		return stem{}, false
	}
	head := l.oversize[0]
	copy(l.oversize, l.oversize[1:])
	l.oversize[len(l.oversize)-1] = head
	if _, taken := l.busy[head.stem.text]; taken {
		return stem{}, false
	}
	l.busy[head.stem.text] = struct{}{}
	return head.stem, true
}

// ages counts files by the minute of their creation, with the earliest second of each. Its memory grows with the
// length of an outage, not with the number of files.
type ages map[int64]*ageBucket

type ageBucket struct {
	files int64
	first int64 // Unix seconds
}

func (a ages) add(unix int64) {
	b := a[unix/60]
	if b == nil {
		b = &ageBucket{first: unix}
		a[unix/60] = b
	}
	b.files++
	b.first = min(b.first, unix)
}

func (a ages) remove(unix int64) {
	b := a[unix/60]
	if b == nil {
		return
	}
	if b.files--; b.files <= 0 {
		delete(a, unix/60)
	}
}

func (a ages) oldest() time.Time {
	var first *ageBucket
	for _, b := range a {
		if first == nil || b.first < first.first {
			first = b
		}
	}
	if first == nil {
		return time.Time{}
	}
	return time.Unix(first.first, 0)
}
