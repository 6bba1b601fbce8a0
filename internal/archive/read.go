package archive

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/gzip"
)

// Check reads an archive from the shelf, whole, and holds it against its manifest: sizes and checksums of each file and of
// what is inside, count and hash of the rows. each is given every line without its line feed, and may be nil; what it was
// given is proved only once Check has returned nil. An archive that is not what it should be is a [*BrokenError].
func Check(ctx context.Context, shelf Shelf, m *Manifest, each func(line []byte) error) error {
	want, err := m.Total()
	if err != nil {
		return err
	}
	var got Total
	for _, f := range m.Files {
		if err := checkFile(ctx, shelf, m, f, &got, each); err != nil {
			return err
		}
	}
	if got != want {
		return &BrokenError{m.Name(), "its rows do not match their count and hash"}
	}
	return nil
}

func checkFile(ctx context.Context, shelf Shelf, m *Manifest, f File, total *Total, each func([]byte) error) error {
	broken := func(problem string) error { return &BrokenError{m.Name(), f.Name + " " + problem} }
	r, err := shelf.Get(ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return broken("is missing")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	defer func() { _ = r.Close() }() // everything was read, or an error is told already
	wire := &taken{from: r, ctx: ctx}
	stored, content := sha256.New(), sha256.New()
	var bytes, inside counter
	raw := bufio.NewReaderSize(io.TeeReader(wire, io.MultiWriter(stored, &bytes)), 1<<16)
	zip, err := gzip.NewReader(raw)
	if wire.err != nil {
		return fmt.Errorf("read %s: %w", f.Name, wire.err)
	}
	if err != nil {
		return broken("is not gzip")
	}
	lines := bufio.NewReaderSize(io.TeeReader(zip, io.MultiWriter(content, &inside)), 1<<16)
	var rows int64
	for {
		line, err := nextLine(lines)
		switch {
		case wire.err != nil:
			return fmt.Errorf("read %s: %w", f.Name, wire.err)
		case errors.Is(err, io.EOF) && len(line) == 0:
		case err != nil:
			return broken("is cut off or damaged")
		default:
			rows++
			if rows > f.Rows {
				return broken("has more rows than were written")
			}
			total.Add(line)
			if each != nil {
				if err := each(line); err != nil {
					return err
				}
			}
			continue
		}
		break
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // what may lie behind the end
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	switch {
	case int64(bytes) != f.Bytes || hex.EncodeToString(stored.Sum(nil)) != f.SHA256:
		return broken("is not what was written: its size or checksum differs")
	case rows != f.Rows || int64(inside) != f.ContentBytes || hex.EncodeToString(content.Sum(nil)) != f.ContentSHA256:
		return broken("does not have the content that was written")
	}
	return nil
}

// nextLine reads up to a line feed. The line is good until the next one is read. io.EOF comes with an empty line only; a line without its
// end is io.ErrUnexpectedEOF.
func nextLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := append([]byte(nil), line...)
		line, err = r.ReadBytes('\n')
		line = append(long, line...)
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, io.EOF) && len(line) > 0:
		return nil, io.ErrUnexpectedEOF
	}
	return nil, err
}

// taken remembers what went wrong on the way from the shelf, so that a lost connection is not taken for a broken file.
type taken struct {
	from io.Reader
	ctx  context.Context
	err  error
}

func (t *taken) Read(b []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		t.err = err
		return 0, err
	}
	n, err := t.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		t.err = err
	}
	return n, err
}
