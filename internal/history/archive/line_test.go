package archive

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// endless is a storage whose only file has one good line, and a second that never ends. It counts the bytes read. The
// content is not compressed, so this is also the inflated size.
type endless struct {
	Shelf
	read int64
}

const goodLine = `{"n":1}`

func (e *endless) Get(context.Context, string) (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() {
		zip, err := gzip.NewWriterLevel(w, gzip.NoCompression)
		if err == nil {
			_, err = io.WriteString(zip, goodLine+"\n")
		}
		for text := []byte(strings.Repeat("x", 1<<10)); err == nil; {
			_, err = zip.Write(text)
		}
		_ = w.CloseWithError(err)
	}()
	return struct {
		io.Reader
		io.Closer
	}{readerFunc(func(b []byte) (int, error) {
		n, err := r.Read(b)
		if e.read += int64(n); e.read > 1<<26 {
			return n, errors.New("more was read than any bound allows")
		}
		return n, err
	}), r}, nil
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestEndlessLine_Bounded(t *testing.T) {
	t.Parallel()
	const most, buffers = 1 << 20, 1 << 18
	for name, content := range map[string]int64{"by the manifest": most, "by the caller": 1 << 40, "by a senseless manifest": -1} {
		m := &Manifest{Format: FormatLines, Table: "decision_logs", Day: "2026-03-04", Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "01234567", Rows: 1 << 30}
		total := totalOf()
		m.Hash = total.Hash()
		m.Files = []File{{Name: m.partName(1), Rows: 1 << 30, ContentBytes: content}}
		shelf := &endless{}
		err := CheckWithin(t.Context(), shelf, m, most, nil)
		if shelf.read > most+buffers {
			t.Errorf("%s: %d bytes were read", name, shelf.read)
		}
		var long *LineError
		switch {
		case content > most:
			if !errors.As(err, &long) || *long != (LineError{m.Files[0].Name, 2, most}) || !strings.Contains(err.Error(), m.Files[0].Name) || isBroken(err) {
				t.Errorf("%s: %v", name, err)
			}
		case !isBroken(err) || !strings.Contains(err.Error(), m.Files[0].Name) || content > 0 && !strings.Contains(err.Error(), "line 2"):
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRestore_LongLine(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	m := written(t, shelf, 3) // the longest line is of 140,017 bytes
	day, err := ParseDay(m.Day)
	if err != nil {
		t.Fatal(err)
	}
	for most, fits := range map[int64]bool{140_017: true, 140_016: false, 0: true} {
		table := &loading{}
		c := Carrier{Table: table, Shelf: shelf, By: "mara", Now: time.Now, LineBytes: most}
		_, err := c.Restore(t.Context(), day)
		var long *LineError
		if fits && (err != nil || len(table.lines) != 3) || !fits && (!errors.As(err, &long) || long.Line != 3 || len(table.lines) != 0) {
			t.Errorf("lines of %d: %v, %d stored", most, err, len(table.lines))
		}
	}
}
