package cold

import (
	"container/list"
	"context"
	"sync"

	"docket/internal/history/archive"
	"docket/internal/history/archive/columnar"
	"docket/internal/history/cold/cache"
)

// Limits of what is kept of files in memory, in bytes. Outlines are small, and a look-up by id needs one of each file. A file is
// opened whole only if it may have the id.
const (
	mostOutlines = 32 << 20
	mostFiles    = 64 << 20
)

// located is a file and where it is.
type located struct {
	shelf archive.Shelf
	of    archive.File
	most  int64 // bytes of a line
}

func (l located) reader() columnar.ReaderAt { return archive.At(l.shelf, l.of) }

// asked tells a cache that rows of the file are needed.
func (l located) asked() {
	if s, ok := l.shelf.(*cache.Shelf); ok {
		s.Asked(l.of.Name)
	}
}

// ends keeps what is at the end of files. A file never changes.
type ends struct {
	outlines latestUsed[*columnar.Outline]
	files    latestUsed[*columnar.File]
	opening  flights[*columnar.File]
}

func newEnds() *ends {
	return &ends{outlines: latestUsed[*columnar.Outline]{most: mostOutlines}, files: latestUsed[*columnar.File]{most: mostFiles}}
}

// open opens a file, or returns it from memory. Questions at the same time share the reading.
func (e *ends) open(ctx context.Context, at located) (*columnar.File, error) {
	if f, ok := e.files.get(at.of); ok {
		return f, nil
	}
	return e.opening.do(ctx, at.of.Name, func(ctx context.Context) (*columnar.File, error) {
		f, err := columnar.OpenWithin(ctx, at.reader(), at.of.Bytes, at.most)
		if err != nil {
			return nil, err
		}
		e.files.put(at.of, f, f.Bytes())
		e.outlines.put(at.of, f.Outline(), f.Outline().Bytes())
		return f, nil
	})
}

// find passes the rows of a file with an id to emit, until that wants no more. If its filters are in memory and rule the
// id out, it is not opened.
func (e *ends) find(ctx context.Context, at located, id string, emit func(columnar.Row) (more bool, err error)) error {
	outline, ok := e.outlines.get(at.of)
	if !ok {
		f, err := e.open(ctx, at)
		if err != nil {
			return err
		}
		outline = f.Outline()
	}
	groups, err := outline.Groups(ctx, at.reader(), id)
	if err != nil || len(groups) == 0 {
		return err
	}
	at.asked()
	f, err := e.open(ctx, at)
	if err != nil {
		return err
	}
	return f.FindIn(ctx, groups, id, emit)
}

// latestUsed keeps values by file, up to a number of bytes. Those that were not used for the longest time leave.
type latestUsed[V any] struct {
	most  int64
	mu    sync.Mutex
	all   map[string]*list.Element // by name and SHA-256
	order list.List                // of used[V], the last used one first
	bytes int64
}

type used[V any] struct {
	key   string
	value V
	bytes int64
}

func keyOf(of archive.File) string { return of.Name + " " + of.SHA256 }

func (l *latestUsed[V]) get(of archive.File) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.all[keyOf(of)]
	if at == nil {
		return value, false
	}
	l.order.MoveToFront(at)
	one, _ := at.Value.(used[V])
	return one.value, true
}

// put keeps a value. One that has more than all may have is not kept.
func (l *latestUsed[V]) put(of archive.File, value V, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := keyOf(of)
	if l.all[key] != nil || bytes > l.most {
		return
	}
	if l.all == nil {
		l.all = map[string]*list.Element{}
	}
	l.all[key] = l.order.PushFront(used[V]{key, value, bytes})
	for l.bytes += bytes; l.bytes > l.most; {
		last := l.order.Back()
		one, _ := l.order.Remove(last).(used[V])
		delete(l.all, one.key)
		l.bytes -= one.bytes
	}
}
