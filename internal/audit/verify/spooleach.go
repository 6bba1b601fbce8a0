package verify

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrSpoolBound says that a spool has more bytes than may be read.
var ErrSpoolBound = errors.New("the spool holds more than may be read")

// EachSpooled passes on the records of a spool directory file by file, with one record in memory. It counts the data
// files, and names the broken ones and those in corrupt/. At most left more inflated bytes are read. A file that
// disappears meanwhile was published. It ends with its context.
func EachSpooled(ctx context.Context, fsys fs.FS, left *int64, each func(file string, r *kgo.Record)) (files int, broken []string, err error) {
	for _, sub := range []string{".", "corrupt"} {
		entries, err := fs.ReadDir(fsys, sub)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, broken, err
		}
		for _, entry := range entries {
			if kind, _ := spoolName(entry.Name()); kind != nameData || !entry.Type().IsRegular() {
				continue
			}
			if err := ctx.Err(); err != nil {
				return files, broken, err
			}
			name := path.Join(sub, entry.Name())
			err := eachOf(ctx, fsys, name, left, each)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				continue
			case errors.Is(err, ErrSpoolBound), err != nil && ctx.Err() != nil:
				return files, broken, err
			case err != nil || sub != ".":
				broken = append(broken, name)
			}
			files++
		}
	}
	return files, broken, nil
}

func eachOf(ctx context.Context, fsys fs.FS, name string, left *int64, each func(string, *kgo.Record)) error {
	file, err := fsys.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	b := &bounded{ctx: ctx, left: left}
	err = eachSpoolLine(file, b.within, func(r *kgo.Record) { each(name, r) })
	if b.over != nil {
		return b.over
	}
	return err
}

// bounded ends a reader with its context, or at its limit.
type bounded struct {
	ctx  context.Context
	from io.Reader
	left *int64
	over error
}

func (b *bounded) within(from io.Reader) io.Reader {
	b.from = from
	return b
}

func (b *bounded) Read(p []byte) (int, error) {
	switch {
	case b.ctx.Err() != nil:
		b.over = b.ctx.Err()
	case *b.left <= 0:
		b.over = ErrSpoolBound
	}
	if b.over != nil {
		return 0, b.over
	}
	n, err := b.from.Read(p[:min(int64(len(p)), *b.left)])
	*b.left -= int64(n)
	return n, err
}
