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
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"

	"docket/internal/history/archive/columnar"
	"docket/internal/record/subject"
)

// Largest size of a part. It is sent again after a broken upload, and read to find a broken file.
const (
	partRows  = 1_000_000
	partBytes = 256 << 20 // of lines

	parquetRows  = 4_000_000
	parquetBytes = 4 << 30 // of lines
)

// Portions of lines that are encoded while the next ones are read.
const (
	writeRows  = 1000
	writeBytes = 1 << 20
)

// writer writes lines to the storage, part by part, and keeps none of them.
type writer struct {
	ctx   context.Context
	shelf Shelf

	file   func(n int) string                  // the name of a part, from 1
	encode func(to io.Writer) (encoder, error) // its form

	rows, bytes int64 // limits of a part
	marker      string
	marked      bool // it may be there
	files       []File
	total       Total
	part        *part
	stays       bool // nothing is removed: the archive may be complete, or the storage may store one more part of it
}

// part is a file that is being written.
type part struct {
	name    string
	pipe    *io.PipeWriter
	rows    encoder
	stored  hash.Hash
	content hash.Hash
	blocks  summer
	file    File
	put     chan error
}

// encoder writes lines in a format.
type encoder interface {
	Write(line []byte) error
	Close() error
}

// newWriter writes the parts of an archive in the format of its manifest. by says how the subject of a decision is
// found. Only Parquet has it.
func newWriter(ctx context.Context, shelf Shelf, m *Manifest, by subject.Spec) *writer {
	w := &writer{ctx: ctx, shelf: shelf, marker: m.Name() + startedSuffix, file: m.partName, rows: partRows, bytes: partBytes, encode: zipped}
	if m.Format == FormatParquet {
		w.rows, w.bytes = parquetRows, parquetBytes
		w.encode = func(to io.Writer) (encoder, error) {
			return columnar.NewWriter(to, columnar.Options{Columns: m.Columns, Subject: by, Program: "docket", Version: m.Docket})
		}
	}
	return w
}

// zip writes lines that are compressed with gzip.
type zip struct{ *gzip.Writer }

func zipped(to io.Writer) (encoder, error) { return zip{gzip.NewWriter(to)}, nil }

func (z zip) Write(line []byte) error {
	for _, b := range [][]byte{line, lineFeed} {
		if _, err := z.Writer.Write(b); err != nil {
			return err
		}
	}
	return nil
}

var lineFeed = []byte{'\n'}

// line writes one row.
func (w *writer) line(line []byte) error { return w.lines([][]byte{line}) }

// lines writes rows. Another goroutine hashes them meanwhile.
func (w *writer) lines(all [][]byte) error {
	for len(all) > 0 {
		if p := w.part; p != nil && w.full(p, all[0]) {
			if err := w.end(); err != nil {
				return err
			}
		}
		if w.part == nil {
			if err := w.begin(); err != nil {
				return err
			}
		}
		p := w.part
		n := 0
		for n < len(all) && (n == 0 || !w.full(p, all[n])) {
			p.file.Rows++
			p.file.ContentBytes += int64(len(all[n])) + 1
			n++
		}
		if err := w.write(p, all[:n]); err != nil {
			return w.broken(err)
		}
		all = all[n:]
	}
	return nil
}

// full reports whether a line goes into the next part.
func (w *writer) full(p *part, line []byte) bool {
	return p.file.Rows >= w.rows || p.file.ContentBytes+int64(len(line)) >= w.bytes
}

// write writes rows into a part.
func (w *writer) write(p *part, all [][]byte) error {
	var hashed sync.WaitGroup
	defer hashed.Wait()
	hashed.Go(func() {
		for _, line := range all {
			p.content.Write(line)
			p.content.Write(lineFeed)
			w.total.Add(line)
		}
	})
	for _, line := range all {
		if err := p.rows.Write(line); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) begin() error {
	if !w.marked {
		w.marked = true
		if err := w.shelf.Put(w.ctx, w.marker, strings.NewReader(startedText)); err != nil {
			return fmt.Errorf("write %s: %w", w.marker, err)
		}
	}
	r, pipe := io.Pipe()
	p := &part{name: w.file(len(w.files) + 1), pipe: pipe, stored: sha256.New(), content: sha256.New(), put: make(chan error, 1)}
	p.file.Name = p.name
	var err error
	if p.rows, err = w.encode(io.MultiWriter(pipe, p.stored, &p.blocks, (*counter)(&p.file.Bytes))); err != nil {
		return err
	}
	w.part = p
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
	return nil
}

// end finishes the present part.
func (w *writer) end() error {
	p := w.part
	if p == nil {
		return nil
	}
	if err := p.rows.Close(); err != nil {
		return w.broken(err)
	}
	_ = p.pipe.Close()
	w.part = nil
	if err := <-p.put; err != nil {
		w.stays = true
		return fmt.Errorf("write %s: %w", p.name, err)
	}
	if whole, ok := p.rows.(*columnar.Writer); ok {
		p.file.Sums = p.blocks.of(whole.Unchecked())
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
	if unfinished, ok := p.rows.(*columnar.Writer); ok {
		unfinished.Abandon()
	}
	if said := <-p.put; said != nil {
		err = said
	}
	return fmt.Errorf("write %s: %w", p.name, err)
}

// abandon ends an archive that was not sealed. The present part is not stored under its name. Then the other parts and the
// marker are removed. If that fails, the next run does it.
func (w *writer) abandon() {
	if w.part != nil {
		_ = w.broken(errAbandoned)
	}
	if w.stays || !w.marked {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.ctx), abandonTime)
	defer cancel()
	for _, f := range w.files {
		if w.shelf.Remove(ctx, f.Name) != nil {
			return
		}
	}
	_ = w.shelf.Remove(ctx, w.marker) // the next run removes one that stays
}

// abandonTime limits how long a run that failed removes its files.
const abandonTime = 5 * time.Second

var errAbandoned = errors.New("given up")

// seal writes the manifest, which completes the archive. Then it removes the marker. The archive may be relied upon when both
// are done: until then it may lose its files if its manifest is lost.
func (w *writer) seal(m *Manifest) error {
	w.stays = true
	if err := seal(w.ctx, w.shelf, m); err != nil {
		return err
	}
	if w.marked {
		if err := w.shelf.Remove(w.ctx, w.marker); err != nil {
			return fmt.Errorf("remove %s: %w", w.marker, err)
		}
	}
	return nil
}

// counter counts bytes.
type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

// seal writes the manifest.
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
