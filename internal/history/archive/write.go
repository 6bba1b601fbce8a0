package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/klauspost/compress/gzip"
)

// Largest size of a part. It is sent again after a broken upload, and read to find a broken file.
const (
	partRows  = 1_000_000
	partBytes = 256 << 20 // uncompressed
)

// writer writes lines to the storage, part by part, and keeps none of them.
type writer struct {
	ctx   context.Context
	shelf Shelf
	name  string

	rows, bytes int64 // limits of a part
	files       []File
	total       Total
	part        *part
}

// part is a file that is being written.
type part struct {
	name    string
	pipe    *io.PipeWriter
	zip     *gzip.Writer
	stored  hash.Hash
	content hash.Hash
	file    File
	put     chan error
}

func newWriter(ctx context.Context, shelf Shelf, name string) *writer {
	return &writer{ctx: ctx, shelf: shelf, name: name, rows: partRows, bytes: partBytes}
}

// line writes one row.
func (w *writer) line(line []byte) error {
	if p := w.part; p != nil && (p.file.Rows >= w.rows || p.file.ContentBytes+int64(len(line)) >= w.bytes) {
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.part == nil {
		w.part = w.begin()
	}
	p := w.part
	for _, b := range [][]byte{line, {'\n'}} {
		p.content.Write(b)
		p.file.ContentBytes += int64(len(b))
		if _, err := p.zip.Write(b); err != nil {
			return w.broken(err)
		}
	}
	p.file.Rows++
	w.total.Add(line)
	return nil
}

func (w *writer) begin() *part {
	r, pipe := io.Pipe()
	p := &part{name: partName(w.name, len(w.files)+1), pipe: pipe, stored: sha256.New(), content: sha256.New(), put: make(chan error, 1)}
	p.file.Name = p.name
	p.zip = gzip.NewWriter(io.MultiWriter(pipe, p.stored, (*counter)(&p.file.Bytes)))
	go func() {
		err := w.shelf.Put(w.ctx, p.name, r)
		if err == nil {
			err = io.ErrClosedPipe // for a writer that continues
			_ = r.CloseWithError(err)
			p.put <- nil
			return
		}
		_ = r.CloseWithError(err)
		p.put <- err
	}()
	return p
}

// end finishes the present part.
func (w *writer) end() error {
	p := w.part
	if p == nil {
		return nil
	}
	if err := p.zip.Close(); err != nil {
		return w.broken(err)
	}
	_ = p.pipe.Close()
	w.part = nil
	if err := <-p.put; err != nil {
		return fmt.Errorf("write %s: %w", p.name, err)
	}
	p.file.SHA256, p.file.ContentSHA256 = hex.EncodeToString(p.stored.Sum(nil)), hex.EncodeToString(p.content.Sum(nil))
	w.files = append(w.files, p.file)
	return nil
}

// broken gives up the present part and returns the storage's error if there is one.
func (w *writer) broken(err error) error {
	p := w.part
	w.part = nil
	_ = p.pipe.CloseWithError(err)
	if said := <-p.put; said != nil {
		err = said
	}
	return fmt.Errorf("write %s: %w", p.name, err)
}

// abandon ends the present part, so that nothing of it is stored under its name.
func (w *writer) abandon() {
	if w.part != nil {
		_ = w.broken(errAbandoned)
	}
}

var errAbandoned = errors.New("given up")

// counter counts bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// seal writes the manifest, which completes the archive.
func seal(ctx context.Context, shelf Shelf, m *Manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("make the manifest: %w", err)
	}
	if err := shelf.Put(ctx, m.Name()+manifestSuffix, bytes.NewReader(append(b, '\n'))); err != nil {
		return fmt.Errorf("write %s%s: %w", m.Name(), manifestSuffix, err)
	}
	return nil
}
