package columnar

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/parquet-go/parquet-go/bloom"
	"golang.org/x/sync/errgroup"
)

// mostKeptFilter limits a filter that is read whole and kept. Of a longer one a question reads a block of 32 bytes. The
// reader may keep what it reads.
const mostKeptFilter = 16 << 10

// Outline has the filters of ids of a file, and tells without its description which groups of rows may have an id. It
// may be used by several goroutines.
type Outline struct {
	size    int64
	filters []*filter
}

// filter is the filter of a column in a group of rows.
type filter struct {
	blocks Part // empty: there is none, and each value may be there
	kept   atomic.Pointer[[]byte]
}

// Outline returns the filters of ids.
func (f *File) Outline() *Outline { return f.outline }

// Bytes is about what it keeps in memory.
func (o *Outline) Bytes() int64 {
	n := int64(64)
	for _, one := range o.filters {
		if n += 64; one.blocks.Length <= mostKeptFilter {
			n += one.blocks.Length
		}
	}
	return n
}

// Groups returns the groups of rows whose filter does not rule an id out, in order.
func (o *Outline) Groups(ctx context.Context, from ReaderAt, id string) (groups []int, err error) {
	var mu sync.Mutex
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(requests)
	for n, one := range o.filters {
		work.Go(func() (err error) {
			defer guard(&err)
			may, err := one.may(&view{ctx: ctx, from: from, size: o.size}, []byte(id))
			if may && err == nil {
				mu.Lock()
				defer mu.Unlock()
				groups = append(groups, n)
			}
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return nil, damaged("cannot be read", err)
	}
	slices.Sort(groups)
	return groups, nil
}

// filter finds the filter of a column. Its length tells where its blocks of 32 bytes begin, as its header is shorter
// than a block.
func (f *File) filter(g rowGroup, column int) *filter {
	c := &f.file.Metadata().RowGroups[g.meta].Columns[column].MetaData
	length := int64(c.BloomFilterLength)
	if c.BloomFilterOffset <= 0 || length < bloom.BlockSize {
		return &filter{}
	}
	head := length % bloom.BlockSize
	return &filter{blocks: Part{c.BloomFilterOffset + head, length - head}}
}

// may reports whether a value can be there.
func (f *filter) may(v *view, value []byte) (bool, error) {
	if f.blocks.Length == 0 {
		return true, nil
	}
	hash := bloom.XXH64{}.Sum64(value)
	if f.blocks.Length > mostKeptFilter {
		return bloom.CheckSplitBlock(&section{v, f.blocks.Offset}, f.blocks.Length, hash)
	}
	kept := f.kept.Load()
	if kept == nil {
		if err := v.fetch(f.blocks); err != nil {
			return false, err
		}
		blocks := v.parts[len(v.parts)-1].data
		kept = &blocks
		f.kept.Store(kept)
	}
	return bloom.CheckSplitBlock(bytes.NewReader(*kept), f.blocks.Length, hash)
}
