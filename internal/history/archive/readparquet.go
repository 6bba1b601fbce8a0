package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"

	"docket/internal/history/archive/columnar"
)

// reading is one Parquet file of an archive while it is compared with its manifest.
type reading struct {
	archive string
	file    File
	most    int64 // bytes of a line
	total   *Total
	each    func([]byte) error
	own     bool

	stored, content hash.Hash
	blocks          summer
	bytes           counter
	inside          int64
	rows            int64
}

func checkParquet(ctx context.Context, shelf Shelf, m *Manifest, f File, how reads, total *Total) error {
	r := &reading{archive: m.Name(), file: f, most: how.most, total: total, each: how.each, own: how.own, stored: sha256.New(), content: sha256.New()}
	from := At(shelf, File{Name: f.Name}) // without sums, so that an error says what is wrong
	if err := r.size(ctx, shelf); err != nil {
		return err
	}
	file, err := columnar.OpenWithin(ctx, from, f.Bytes, how.most)
	if err == nil {
		rows := file.Rows
		if how.prove {
			rows = file.Prove
		}
		all := io.MultiWriter(r.stored, &r.blocks, &r.bytes)
		err = r.pass(func(line func([]byte) error) error { return rows(ctx, all, line) })
	}
	_, differs := r.blocks.differ(&f, 0)
	switch said := FileError(r.archive, f.Name, err); {
	case said != nil:
		return said
	case err != nil:
		return r.failed(err)
	case int64(r.bytes) != f.Bytes || hex.EncodeToString(r.stored.Sum(nil)) != f.SHA256:
		return r.broken("is not what was written: its size or checksum differs")
	case differs:
		return r.broken("does not have the sums of its manifest")
	case r.rows != f.Rows || r.inside != f.ContentBytes || hex.EncodeToString(r.content.Sum(nil)) != f.ContentSHA256:
		return r.broken("does not have the content that was written")
	}
	return nil
}

// pass takes the lines that read passes. Without a taker it hashes lines while the next ones are decoded. A taker may
// need to be called by the goroutine that reads.
func (r *reading) pass(read func(line func([]byte) error) error) error {
	if r.each != nil {
		return read(r.line)
	}
	return inPortions(writeRows, writeBytes, read, func(lines [][]byte) error {
		for _, line := range lines {
			if err := r.line(line); err != nil {
				return err
			}
		}
		return nil
	})
}

// SizeError says that a file of an archive asks for more memory than this program gives, and where. The archive may be
// intact, if its rows are longer than DOCKET_MAX_RECORD_BYTES allows.
type SizeError struct {
	Archive string
	Limit   *columnar.LimitError
	File    string
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s of archive %s cannot be read: %s", e.File, e.Archive, e.Limit)
}

func (e *SizeError) Unwrap() error { return e.Limit }

// Hint returns advice.
func (e *SizeError) Hint() string {
	return "raise DOCKET_MAX_RECORD_BYTES if such large decisions are yours; otherwise another program wrote the file, or it is damaged"
}

// FileError names archive and file of an error of package columnar; nil: it is another error.
func FileError(archive, file string, err error) error {
	var damage *columnar.DamageError
	var limit *columnar.LimitError
	switch {
	case errors.As(err, &damage):
		return &BrokenError{archive, file + " " + damage.Problem}
	case errors.As(err, &limit):
		return &SizeError{archive, limit, file}
	}
	return nil
}

func (r *reading) broken(problem string) error {
	return &BrokenError{r.archive, r.file.Name + " " + problem}
}

// failed passes errors of whoever takes the lines as they are.
func (r *reading) failed(err error) error {
	var broken *BrokenError
	var line *LineError
	var taker *takerError
	switch {
	case errors.As(err, &taker):
		return taker.err
	case errors.As(err, &broken), errors.As(err, &line):
		return err
	}
	return fmt.Errorf("read %s: %w", r.file.Name, err)
}

// takerError is an error of whoever takes the lines.
type takerError struct{ err error }

func (e *takerError) Error() string { return e.err.Error() }

// size reports a file that is missing, or longer than it was written. A shorter one shows while it is read.
func (r *reading) size(ctx context.Context, shelf Shelf) error {
	if r.file.Bytes < 1 {
		return r.broken("is empty by the manifest")
	}
	last, err := shelf.Range(ctx, r.file.Name, r.file.Bytes-1, 2)
	if errors.Is(err, fs.ErrNotExist) {
		return r.broken("is missing")
	}
	if err != nil {
		return r.failed(err)
	}
	n, err := io.Copy(io.Discard, last)
	if err := errors.Join(err, last.Close()); err != nil {
		return r.failed(err)
	}
	if n != 1 {
		return r.broken("is not what was written: its size or checksum differs")
	}
	return nil
}

// line takes the next line.
func (r *reading) line(line []byte) error {
	r.rows++
	r.inside += int64(len(line)) + 1
	switch {
	case r.rows > r.file.Rows:
		return r.broken("has more rows than were written")
	case r.inside > r.file.ContentBytes:
		return r.broken(fmt.Sprintf("has more content in line %d than was written", r.rows))
	case int64(len(line)) > r.most:
		return &LineError{r.file.Name, r.rows, r.most}
	}
	r.content.Write(line)
	r.content.Write(lineFeed)
	if !r.own {
		r.total.Add(line)
	}
	if r.each == nil {
		return nil
	}
	if err := r.each(line); err != nil {
		return &takerError{err}
	}
	return nil
}
