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

// mostText is the longest text that Postgres can make. No row has a longer line.
const mostText = 1 << 30

// MostLine limits the line of a row if the largest record has maxRecord bytes. Its columns repeat parts of the
// payload several times, and Postgres expands numbers and spaces.
func MostLine(maxRecord int64) int64 { return min(8*maxRecord, mostText) }

// LineError says that a line of an archive is longer than this program reads. The archive may be intact.
type LineError struct {
	File string
	Line int64 // from 1
	Most int64 // bytes
}

func (e *LineError) Error() string {
	return fmt.Sprintf("line %d of %s has more than %d bytes", e.Line, e.File, e.Most)
}

// Hint returns advice.
func (e *LineError) Hint() string {
	return "raise DOCKET_MAX_RECORD_BYTES if such large decisions are yours: a line may have 8 times that"
}

// Check is [CheckWithin] for the longest lines that Postgres can make.
func Check(ctx context.Context, shelf Shelf, m *Manifest, each func(line []byte) error) error {
	return CheckWithin(ctx, shelf, m, mostText, each)
}

// Prove is [ProveWithin] for the longest lines that Postgres can make.
func Prove(ctx context.Context, shelf Shelf, m *Manifest) error {
	return ProveWithin(ctx, shelf, m, mostText)
}

// ProveWithin is [CheckWithin], and also checks what answers from the archive rely on besides its rows: see
// [columnar.File.Prove]. Only Parquet has that.
func ProveWithin(ctx context.Context, shelf Shelf, m *Manifest, most int64) error {
	return checkAll(ctx, shelf, m, reads{most: most, prove: true})
}

// CheckWithin reads a whole archive and compares it with its manifest: size and checksum of each file and its
// content, count and hash of the rows. Unless each is nil, it gets every line without its line feed. The lines are
// proved only once CheckWithin has returned nil.
//
// A damaged archive is a [*BrokenError]. It keeps one line in memory. A line of more than most bytes is a
// [*LineError]. One that exceeds the file's content by the manifest is a [*BrokenError].
func CheckWithin(ctx context.Context, shelf Shelf, m *Manifest, most int64, each func(line []byte) error) error {
	return checkAll(ctx, shelf, m, reads{most: most, each: each})
}

// reads says how an archive is read.
type reads struct {
	most  int64                   // bytes of a line
	each  func(line []byte) error // gets each line; nil: nobody
	prove bool
	// own: this process wrote the archive, and summed up the hashes of the lines whose content it hashed. If the content is the
	// same, so is that sum.
	own bool
}

// proveOwn is [Prove] of an archive that was just written.
func proveOwn(ctx context.Context, shelf Shelf, m *Manifest) error {
	return checkAll(ctx, shelf, m, reads{most: mostText, prove: true, own: true})
}

func checkAll(ctx context.Context, shelf Shelf, m *Manifest, how reads) error {
	want, err := m.Total()
	if err != nil {
		return err
	}
	var got Total
	for _, f := range m.Files {
		if err := checkFile(ctx, shelf, m, f, how, &got); err != nil {
			return err
		}
	}
	if got != want && !how.own {
		return &BrokenError{m.Name(), "its rows do not match their count and hash"}
	}
	return nil
}

// batched reads an archive in portions. It reads the next one while each works.
func batched(ctx context.Context, shelf Shelf, m *Manifest, most int64, each func(lines [][]byte) error) error {
	return inPortions(loadRows, loadBytes, func(line func([]byte) error) error {
		return CheckWithin(ctx, shelf, m, most, line)
	}, each)
}

func checkFile(ctx context.Context, shelf Shelf, m *Manifest, f File, how reads, total *Total) error {
	if m.Format == FormatParquet {
		return checkParquet(ctx, shelf, m, f, how, total)
	}
	most, each := how.most, how.each
	broken := func(problem string) error { return &BrokenError{m.Name(), f.Name + " " + problem} }
	r, err := shelf.Get(ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return broken("is missing")
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name, err)
	}
	defer func() { _ = r.Close() }() // all was read, or there is an error already
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
	left := f.ContentBytes
	for {
		line, err := nextLine(lines, min(most, left-1))
		switch {
		case wire.err != nil:
			return fmt.Errorf("read %s: %w", f.Name, wire.err)
		case errors.Is(err, io.EOF) && len(line) == 0:
		case errors.Is(err, errLong) && left-1 <= most:
			return broken(fmt.Sprintf("has more content in line %d than was written", rows+1))
		case errors.Is(err, errLong):
			return &LineError{f.Name, rows + 1, most}
		case err != nil:
			return broken("is cut off or damaged")
		default:
			rows++
			if rows > f.Rows {
				return broken("has more rows than were written")
			}
			left -= int64(len(line)) + 1
			if !how.own {
				total.Add(line)
			}
			if each != nil {
				if err := each(line); err != nil {
					return err
				}
			}
			continue
		}
		break
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // bytes behind the end
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

var errLong = errors.New("the line is too long")

// nextLine reads up to a line feed, and keeps at most a buffer more than most bytes. The line is valid until the next
// call. io.EOF comes only with an empty line. A line without its end is io.ErrUnexpectedEOF, a longer one errLong.
func nextLine(r *bufio.Reader, most int64) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	var long []byte
	for errors.Is(err, bufio.ErrBufferFull) && int64(len(long)+len(line)) <= most {
		long = append(long, line...)
		line, err = r.ReadSlice('\n')
	}
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && int64(len(long)+len(line)-1) > most:
		return nil, errLong
	case len(long) > 0:
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

// taken remembers errors of the storage, so that a lost connection does not count as a broken file.
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
