package cache

import (
	"context"
	"errors"
	"io"
	"os"

	"docket/internal/history/archive"
)

// Shelf is the files of one archive, from the cache where it has them. Other files come from the shelf alone.
type Shelf struct {
	archive.Shelf
	cache *Cache
	day   string
	files map[string]archive.File
}

// Over puts the cache before a shelf, for the files of an archive.
func (c *Cache) Over(shelf archive.Shelf, m *archive.Manifest) *Shelf {
	s := &Shelf{Shelf: shelf, cache: c, day: m.Day, files: make(map[string]archive.File, len(m.Files))}
	for _, f := range m.Files {
		s.files[f.Name] = f
	}
	return s
}

// Asked notes that a question needs rows of a file. A look into its filters does not count.
func (s *Shelf) Asked(name string) {
	if of, ok := s.files[name]; ok {
		s.cache.asked(s.Shelf, of, s.day)
	}
}

// Get opens a whole file. A file of the shelf is kept on its way, if it is read to its end.
func (s *Shelf) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	of, ok := s.files[name]
	if !ok {
		return s.Shelf.Get(ctx, name)
	}
	s.Asked(name)
	if r := s.cached(ctx, of, 0, of.Bytes); r != nil {
		return r, nil
	}
	// The question waits for nobody. A fetch of the file stops, so that it does not come twice at the same time.
	_, release, _ := s.cache.claim(ctx, s.day, name, true)
	r, err := s.Shelf.Get(ctx, name)
	if err != nil {
		release()
		return nil, err
	}
	k := s.cache.through(r, of)
	k.release = release
	return k, nil
}

// Range opens a part of a file.
func (s *Shelf) Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	if of, ok := s.files[name]; ok && offset >= 0 && length >= 0 {
		if r := s.cached(ctx, of, offset, min(length, max(of.Bytes-offset, 0))); r != nil {
			return r, nil
		}
	}
	return s.Shelf.Range(ctx, name, offset, length)
}

// cached opens a part of a cached file; nil: it is not there.
func (s *Shelf) cached(ctx context.Context, of archive.File, offset, length int64) io.ReadCloser {
	path, ok := s.cache.path(of)
	if !ok {
		return nil
	}
	o, err := open(path, of)
	if errors.Is(err, errDamaged) {
		s.cache.remove(of)
	}
	if err != nil {
		s.cache.misses.Add(1)
		return nil
	}
	s.cache.hits.Add(1)
	return &reader{ctx: ctx, shelf: s, from: o, of: of, at: offset, end: offset + length}
}

// reader reads a part of a cached file. From a damaged block on it reads the shelf, so that nobody notices.
type reader struct {
	ctx     context.Context
	shelf   *Shelf
	from    *opened
	of      archive.File
	at, end int64
	left    []byte        // of the present block
	instead io.ReadCloser // the rest comes from the shelf
}

func (r *reader) Read(p []byte) (int, error) {
	if r.instead != nil {
		return r.instead.Read(p)
	}
	if r.at >= r.end {
		return 0, io.EOF
	}
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.left) == 0 {
		n := r.at / blockSize
		data, err := r.from.block(n)
		if err != nil {
			r.shelf.cache.remove(r.of)
			if r.instead, err = r.shelf.Shelf.Range(r.ctx, r.of.Name, r.at, r.end-r.at); err != nil {
				return 0, err
			}
			return r.instead.Read(p)
		}
		r.left = data[r.at-n*blockSize : min(int64(len(data)), r.end-n*blockSize)]
	}
	k := copy(p, r.left)
	r.left, r.at = r.left[k:], r.at+int64(k)
	r.shelf.cache.hitBytes.Add(int64(k))
	return k, nil
}

func (r *reader) Close() error {
	err := r.from.file.Close()
	if r.instead != nil {
		err = errors.Join(err, r.instead.Close())
	}
	return err
}

// through keeps a file while it is read from the shelf. If there is no room, it only reads.
func (c *Cache) through(r io.ReadCloser, of archive.File) *keeping {
	k := &keeping{ReadCloser: r, cache: c, of: of}
	if f, err := c.begin(of); err == nil {
		k.file, k.to = f, newWriter(f, of)
	}
	return k
}

// keeping writes what is read into a temporary file.
type keeping struct {
	io.ReadCloser
	cache *Cache
	of    archive.File
	file  *os.File // nil: nothing is kept
	to    *writer
	// release ends the claim of a question; nil: it is a fetch, which ends its own.
	release func()
}

func (k *keeping) Read(p []byte) (int, error) {
	n, err := k.ReadCloser.Read(p)
	if k.file == nil {
		return n, err
	}
	if _, failed := k.to.Write(p[:n]); failed != nil {
		k.giveUp()
	} else if errors.Is(err, io.EOF) {
		if k.to.end() != nil || k.cache.finish(k.file, k.of) != nil {
			k.giveUp()
		} else {
			_ = k.file.Close() // it is synced
			k.file = nil
		}
	} else if err != nil {
		k.giveUp()
	}
	return n, err
}

func (k *keeping) drain() (int64, error) {
	if k.file == nil {
		return 0, errFull
	}
	return io.Copy(io.Discard, struct{ io.Reader }{k})
}

func (k *keeping) giveUp() {
	_ = os.Remove(k.file.Name()) // the next process that needs room removes it, too
	_ = k.file.Close()
	k.file = nil
}

// Close ends the reading. A file that was not read to its end is not kept.
func (k *keeping) Close() error {
	if k.release != nil {
		defer k.release()
	}
	if k.file != nil {
		k.giveUp()
	}
	return k.ReadCloser.Close()
}
