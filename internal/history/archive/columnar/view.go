package columnar

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"golang.org/x/sync/errgroup"
)

// ReaderAt reads a part of a file: all of p from off, or an error. It may be called from several goroutines.
type ReaderAt interface {
	ReadAt(ctx context.Context, p []byte, off int64) error
}

// Part is a piece of a file.
type Part struct{ Offset, Length int64 }

func (p Part) end() int64 { return p.Offset + p.Length }

// view is a file during one question. It serves parts that were fetched from memory. Anything else is read from the
// file.
type view struct {
	ctx   context.Context
	from  ReaderAt
	size  int64
	parts []fetched
	held  int64 // bytes of parts

	checked map[int64]int64 // sizes of pages that were checked, by their places
	made    int64           // bytes of the last one after decompression
	scratch []byte          // for what is decompressed and looked at once
}

// mostScratch limits the memory that is kept for the next page.
const mostScratch = 1 << 20

// keep keeps memory for the next page. The page in it is of no use any more then.
func (v *view) keep(page []byte) {
	if cap(page) <= mostScratch {
		v.scratch = page
	}
}

type fetched struct {
	Part
	data []byte
}

const (
	apart    = 64 << 10 // parts that are nearer to each other are one request
	requests = 8        // at once
	mostHeld = 32 << 20 // more is dropped before the next fetch
)

// fetch reads parts into memory: as few requests as are sensible, several at once.
func (v *view) fetch(parts ...Part) error {
	if v.held > mostHeld {
		v.forget()
	}
	parts = slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return p.Length <= 0 || v.has(p) })
	slices.SortFunc(parts, func(a, b Part) int { return cmp.Compare(a.Offset, b.Offset) })
	var all []fetched
	for _, p := range parts {
		if p.Offset < 0 || p.end() > v.size {
			return &DamageError{"points behind its end"}
		}
		if n := len(all); n > 0 && p.Offset-all[n-1].end() < apart {
			all[n-1].Length = max(all[n-1].Length, p.end()-all[n-1].Offset)
			continue
		}
		all = append(all, fetched{Part: p})
	}
	g, ctx := errgroup.WithContext(v.ctx)
	g.SetLimit(requests)
	for i := range all {
		g.Go(func() error {
			if n := all[i].Length; n > largeFetch {
				if err := v.from.ReadAt(ctx, make([]byte, 1), all[i].end()-1); err != nil {
					return err
				}
			}
			all[i].data = make([]byte, all[i].Length)
			return v.from.ReadAt(ctx, all[i].data, all[i].Offset)
		})
	}
	if err := g.Wait(); err != nil {
		return outside(err)
	}
	for _, p := range all {
		v.held += p.Length
	}
	v.parts = append(v.parts, all...)
	return nil
}

// has reports whether a part is in memory.
func (v *view) has(p Part) bool {
	return slices.ContainsFunc(v.parts, func(have fetched) bool { return have.Offset <= p.Offset && have.end() >= p.end() })
}

// forget drops what was fetched.
func (v *view) forget() { v.parts, v.held, v.checked = nil, 0, nil }

// bytes returns a part that was fetched.
func (v *view) bytes(p Part) (data []byte, ok bool) {
	for i := len(v.parts) - 1; i >= 0; i-- {
		if have := &v.parts[i]; p.Length >= 0 && have.Offset <= p.Offset && have.end() >= p.end() {
			from := p.Offset - have.Offset
			return have.data[from : from+p.Length : from+p.Length], true
		}
	}
	return nil, false
}

// ReadAt reads from memory, where fewer bytes than asked may be at once, else from the file.
func (v *view) ReadAt(p []byte, off int64) (int, error) {
	for i := len(v.parts) - 1; i >= 0; i-- {
		if part := &v.parts[i]; off >= part.Offset && off < part.end() {
			return copy(p, part.data[off-part.Offset:]), nil
		}
	}
	if off < 0 || off >= v.size {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), v.size-off)]
	if err := v.from.ReadAt(v.ctx, p, off); err != nil {
		return 0, outside(err)
	}
	return len(p), nil
}

// outside tells a file that is too short from a storage that fails.
func outside(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return &DamageError{"is cut off"}
	}
	return &sourceError{err}
}

// sourceError is an error of the storage. The file may be intact.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }

func (e *sourceError) Unwrap() error { return e.err }
