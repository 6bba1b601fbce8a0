package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"

	"docket/internal/history/archive/columnar"
)

// sumBlock is the length of a block that has a sum. A question that reads a part of it reads all of it.
const sumBlock = 16 << 10

// BlockBytes is how much a question reads at least of a part that has sums. Blocks begin at its multiples.
const BlockBytes = sumBlock

// Sums are the checksums (CRC-32C) of consecutive blocks of a Parquet file. The blocks are of 16 KiB from the file's
// beginning on, and the last one is shorter. Those have sums that contain filters, bounds and places of pages, or the
// description: a bit that turned there could hide a decision, and the file itself has no checksums of them.
type Sums struct {
	Block int64 `json:"block"` // the first one, from 0
	// CRC32C has four bytes for each block, the highest first.
	CRC32C []byte `json:"crc32c"`
}

// end is the block behind the last one.
func (s Sums) end() int64 { return s.Block + int64(len(s.CRC32C)/4) }

// proper reports whether sums are of blocks that the file has, in order.
func (f *File) proper() bool {
	behind := int64(0)
	for _, s := range f.Sums {
		if s.Block < behind || len(s.CRC32C) == 0 || len(s.CRC32C)%4 != 0 {
			return false
		}
		behind = s.end()
	}
	return behind <= blocksOf(f.Bytes)
}

// sum returns the sum of a block, if it has one.
func (f *File) sum(block int64) (sum uint32, ok bool) {
	for _, s := range f.Sums {
		if block >= s.Block && block < s.end() {
			return binary.BigEndian.Uint32(s.CRC32C[4*(block-s.Block):]), true
		}
	}
	return 0, false
}

// blocksOf is the number of blocks of so many bytes.
func blocksOf(bytes int64) int64 { return (bytes + sumBlock - 1) / sumBlock }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// summer takes the bytes of a file from the beginning of a block on, and calculates the sum of each block.
type summer struct {
	sums []uint32 // of blocks that have ended
	sum  uint32   // of the present one
	n    int      // its bytes
}

func (s *summer) Write(b []byte) (int, error) {
	for all := b; len(all) > 0; {
		part := all[:min(len(all), sumBlock-s.n)]
		s.sum = crc32.Update(s.sum, castagnoli, part)
		if s.n += len(part); s.n == sumBlock {
			s.end()
		}
		all = all[len(part):]
	}
	return len(b), nil
}

// end ends a block. The last one may be shorter than the others.
func (s *summer) end() {
	if s.n > 0 {
		s.sums, s.sum, s.n = append(s.sums, s.sum), 0, 0
	}
}

// of returns the sums of the blocks that have bytes of the parts, which ascend. All of the file has been written.
func (s *summer) of(parts []columnar.Part) (all []Sums) {
	s.end()
	for _, p := range parts {
		for block := p.Offset / sumBlock; block < blocksOf(p.Offset+p.Length); block++ {
			n := len(all)
			switch {
			case n > 0 && block < all[n-1].end():
				continue
			case n == 0 || block > all[n-1].end():
				all = append(all, Sums{Block: block})
				n++
			}
			all[n-1].CRC32C = binary.BigEndian.AppendUint32(all[n-1].CRC32C, s.sums[block])
		}
	}
	return all
}

// differ returns the first block whose sum is not that of the file, if all bytes from a place on have been written. Where
// that is inside a block, this one has no sum.
func (s *summer) differ(f *File, from int64) (block int64, differs bool) {
	s.end()
	for i, sum := range s.sums {
		block := from/sumBlock + int64(i)
		if want, ok := f.sum(block); ok && want != sum {
			return block, true
		}
	}
	return 0, false
}

// At makes a stored file readable in parts. A block that does not have its sum is a [*columnar.DamageError].
func At(shelf Shelf, of File) columnar.ReaderAt { return &stored{shelf, of} }

// stored is a stored file.
type stored struct {
	shelf Shelf
	of    File
}

// ReadAt reads all of p, or returns an error.
func (a *stored) ReadAt(ctx context.Context, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	from, end := off, off+int64(len(p))
	if _, ok := a.of.sum(off / sumBlock); ok {
		from -= off % sumBlock
	}
	last := (end - 1) / sumBlock
	if _, ok := a.of.sum(last); ok {
		end = max(end, min((last+1)*sumBlock, a.of.Bytes))
	}
	r, err := a.shelf.Range(ctx, a.of.Name, from, end-from)
	if errors.Is(err, fs.ErrNotExist) {
		return &columnar.DamageError{Problem: "is missing"}
	}
	if err != nil {
		return err
	}
	s := summer{n: int(from % sumBlock)}
	// p is read in place: it can have many megabytes.
	for _, part := range [][]byte{make([]byte, off-from), p, make([]byte, end-off-int64(len(p)))} {
		if len(part) == 0 || err != nil {
			continue
		}
		if _, err = io.ReadFull(r, part); err == nil && len(a.of.Sums) > 0 {
			_, err = s.Write(part)
		}
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	if block, differs := s.differ(&a.of, from); differs {
		return &columnar.DamageError{Problem: fmt.Sprintf("is not what was written, between byte %d and %d", block*sumBlock, min((block+1)*sumBlock, a.of.Bytes))}
	}
	return nil
}
