package cold

import (
	"context"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/history/archive/columnar"
	"docket/internal/history/reader"
)

// columns is an archive of Parquet files. A question reads the end of each file, which is kept, and then only the
// parts that filters and bounds do not rule out.
type columns struct {
	shelf    archive.Shelf
	manifest *archive.Manifest
	most     int64 // bytes of a line
	ends     *ends
}

func (c *columns) Fast() bool { return true }

// filesAtOnce limits the files of one archive that are asked at once.
const filesAtOnce = 4

// Find asks all files, several at once. Each of them may have [mostOfID].
func (c *columns) Find(ctx context.Context, of Sought) (found []reader.Decision, more bool, err error) {
	files := make([][]reader.Decision, len(c.manifest.Files))
	var cut atomic.Bool
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(filesAtOnce)
	for i, file := range c.manifest.Files {
		work.Go(func() error {
			for _, id := range of.ids() {
				n := 0
				err := c.ends.find(ctx, c.at(file), id, func(r columnar.Row) (bool, error) {
					switch {
					case ctx.Err() != nil:
						return false, ctx.Err()
					case !of.wants(reader.Spot{Time: r.Time, ID: id}):
						return true, nil
					case n == mostOfID:
						cut.Store(true)
						return false, nil
					}
					d, err := c.decision(r, file.Name)
					n, files[i] = n+1, append(files[i], d)
					return true, err
				})
				if err != nil {
					return c.failed(file.Name, err)
				}
			}
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return nil, false, err
	}
	return slices.Concat(files...), cut.Load(), nil
}

// Search asks one file after another in the order of the question, as they are in the order of their rows.
func (c *columns) Search(ctx context.Context, q Query) ([]reader.Decision, bool, error) {
	files := slices.Clone(c.manifest.Files)
	if !q.Oldest {
		slices.Reverse(files)
	}
	asked := columnar.Question{Since: q.Filter.Since, Until: q.Filter.Until, Paths: q.Filter.Paths, Services: q.Filter.Services, Verdicts: q.Filter.Verdicts, Oldest: q.Oldest}
	if !q.After.IsZero() {
		asked.After = &columnar.Place{Time: q.After.Time, ID: q.After.ID}
	}
	var found []reader.Decision
	size, more := 0, false
	for _, of := range files {
		f, err := c.ends.open(ctx, c.at(of))
		if err != nil {
			return nil, false, c.failed(of.Name, err)
		}
		c.at(of).asked()
		asked.Subject, asked.By = q.Filter.SubjectBy(f.SubjectBy())
		err = f.Search(ctx, asked, func(r columnar.Row) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			d, err := c.decision(r, of.Name)
			if err != nil {
				return false, err
			}
			if !q.behind(d) || !q.Filter.Fits(d) {
				return true, nil
			}
			if len(found) >= q.Limit || size > mostKept {
				more = true
				return false, nil
			}
			if !q.Payload {
				d.Raw = nil
			}
			found, size = append(found, d), size+sizeOf(d)
			return true, nil
		})
		if err != nil {
			return nil, false, c.failed(of.Name, err)
		}
		if more {
			break
		}
	}
	return found, more, nil
}

// decision reads the line of a row, which belongs to it.
func (c *columns) decision(r columnar.Row, file string) (reader.Decision, error) {
	columns := row{}
	d, err := reader.Decision{}, parseRow(r.Line, columns)
	if err == nil {
		d, err = columns.decision()
	}
	if err != nil {
		return d, &archive.BrokenError{Archive: c.manifest.Name(), Problem: err.Error()}
	}
	d.Archived = &reader.ArchivedIn{Day: c.manifest.Day, Archive: c.manifest.Name(), File: file}
	return owned(d, true), nil
}

// at is a file of the archive.
func (c *columns) at(of archive.File) located { return located{c.shelf, of, c.most} }

// failed names the file of an error.
func (c *columns) failed(file string, err error) error {
	if said := archive.FileError(c.manifest.Name(), file, err); said != nil {
		return said
	}
	return err
}
