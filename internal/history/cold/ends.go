package cold

import (
	"bytes"
	"container/list"
	"context"
	"strconv"
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
	mostBlocks   = 64 << 20
)

// filterBlock is the part of a long filter that a look-up needs, in bytes.
const filterBlock = 32

// located is a file and where it is.
type located struct {
	shelf archive.Shelf
	of    archive.File
	most  int64 // bytes of a line
}

// reader reads the file. Blocks of long filters come from memory, if they were read before.
func (e *ends) reader(at located) columnar.ReaderAt {
	return filters{archive.At(at.shelf, at.of), at.of, &e.blocks}
}

// filters reads a file and keeps what it reads of long filters: for 32 bytes, the whole blocks of [archive.BlockBytes] that
// are read and verified anyway. So a second look-up of an id reads nothing of filters, and one of another id often does not,
// either. All files together keep at most mostBlocks bytes; the blocks that were not used for the longest time leave first.
// Without sums nothing is verified, and no block is kept.
type filters struct {
	from   columnar.ReaderAt
	of     archive.File
	blocks *latestUsed[[]byte]
}

// ReadAt reads all of p, or returns an error.
func (f filters) ReadAt(ctx context.Context, p []byte, off int64) error {
	const size = archive.BlockBytes
	if len(p) != filterBlock || len(f.of.Sums) == 0 || off < 0 || off+filterBlock > f.of.Bytes {
		return f.from.ReadAt(ctx, p, off)
	}
	first, last := off/size, (off+filterBlock-1)/size // a filter block can be in two of them
	var have []byte
	for n := first; n <= last; n++ {
		block, ok := f.blocks.get(f.key(n))
		if !ok {
			have = nil
			break
		}
		have = append(have, block...)
	}
	if have == nil {
		have = make([]byte, min((last+1)*size, f.of.Bytes)-first*size)
		if err := f.from.ReadAt(ctx, have, first*size); err != nil {
			return err
		}
		for n := first; n <= last; n++ {
			block := have[(n-first)*size : min((n-first+1)*size, int64(len(have)))]
			f.blocks.put(f.key(n), bytes.Clone(block), int64(len(block))+blockOverhead)
		}
	}
	copy(p, have[off-first*size:])
	return nil
}

// blockOverhead is about what a kept block needs besides its bytes.
const blockOverhead = 512

func (f filters) key(block int64) string { return keyOf(f.of) + " " + strconv.FormatInt(block, 10) }

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
	blocks   latestUsed[[]byte] // of long filters
	opening  flights[*columnar.File]
}

func newEnds() *ends {
	return &ends{outlines: latestUsed[*columnar.Outline]{most: mostOutlines}, files: latestUsed[*columnar.File]{most: mostFiles}, blocks: latestUsed[[]byte]{most: mostBlocks}}
}

// open opens a file, or returns it from memory. Questions at the same time share the reading.
func (e *ends) open(ctx context.Context, at located) (*columnar.File, error) {
	if f, ok := e.files.get(keyOf(at.of)); ok {
		return f, nil
	}
	return e.opening.do(ctx, at.of.Name, func(ctx context.Context) (*columnar.File, error) {
		f, err := columnar.OpenWithin(ctx, e.reader(at), at.of.Bytes, at.most)
		if err != nil {
			return nil, err
		}
		e.files.put(keyOf(at.of), f, f.Bytes())
		e.outlines.put(keyOf(at.of), f.Outline(), f.Outline().Bytes())
		return f, nil
	})
}

// find passes the rows of a file with an id to emit, until that wants no more. If its filters are in memory and rule the
// id out, it is not opened.
func (e *ends) find(ctx context.Context, at located, id string, emit func(columnar.Row) (more bool, err error)) error {
	outline, ok := e.outlines.get(keyOf(at.of))
	if !ok {
		f, err := e.open(ctx, at)
		if err != nil {
			return err
		}
		outline = f.Outline()
	}
	groups, err := outline.Groups(ctx, e.reader(at), id)
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
	all   map[string]*list.Element // by name and SHA-256 of the file
	order list.List                // of used[V], the last used one first
	bytes int64
}

type used[V any] struct {
	key   string
	value V
	bytes int64
}

func keyOf(of archive.File) string { return of.Name + " " + of.SHA256 }

func (l *latestUsed[V]) get(key string) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.all[key]
	if at == nil {
		return value, false
	}
	l.order.MoveToFront(at)
	one, _ := at.Value.(used[V])
	return one.value, true
}

// put keeps a value. One that has more than all may have is not kept.
func (l *latestUsed[V]) put(key string, value V, size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all[key] != nil || size > l.most {
		return
	}
	if l.all == nil {
		l.all = map[string]*list.Element{}
	}
	l.all[key] = l.order.PushFront(used[V]{key, value, size})
	for l.bytes += size; l.bytes > l.most; {
		last := l.order.Back()
		one, _ := l.order.Remove(last).(used[V])
		delete(l.all, one.key)
		l.bytes -= one.bytes
	}
}
