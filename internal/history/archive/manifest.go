package archive

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"docket/internal/history/archive/columnar"
)

// The formats. A reader refuses others.
const (
	FormatLines   = 1 // JSON lines, compressed with gzip
	FormatParquet = 2 // see package columnar
)

// Column is a column of the table, in the table's order.
type Column = columnar.Column

// Source identifies the table of an archive.
type Source struct {
	// ID is the same for all archives of one database; six hexadecimal digits.
	ID string `json:"id"`
	// Partition stays the same while the day's partition exists.
	Partition string `json:"partition,omitempty"`
}

// File is a part of an archive.
type File struct {
	Name          string `json:"name"`
	Rows          int64  `json:"rows"`
	Bytes         int64  `json:"bytes"`
	SHA256        string `json:"sha256"`
	ContentBytes  int64  `json:"content_bytes"`
	ContentSHA256 string `json:"content_sha256"` // of the uncompressed content
	Sums          []Sums `json:"sums,omitempty"` // in the order of their blocks; none: gzip JSON lines, or an earlier release wrote it
}

// Manifest describes one archive of a day. It is written last: without it an archive does not count.
type Manifest struct {
	Format     int       `json:"format"`
	Docket     string    `json:"docket"` // version of the program
	Table      string    `json:"table"`
	Day        string    `json:"day"`
	Generation int       `json:"generation"`
	Source     Source    `json:"source"`
	Attempt    string    `json:"attempt"`              // eight hexadecimal digits: a process that was believed dead writes under names of its own
	Supersedes []string  `json:"supersedes,omitempty"` // names of archives whose rows are all in this one
	Columns    []Column  `json:"columns"`
	LeftOut    []Column  `json:"left_out,omitempty"` // generated columns, which Postgres computes again
	Rows       int64     `json:"rows"`
	Hash       string    `json:"hash"` // see Total
	FirstTS    string    `json:"first_ts,omitempty"`
	LastTS     string    `json:"last_ts,omitempty"`
	Files      []File    `json:"files"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
}

// Name returns the prefix of the archive's files.
func (m *Manifest) Name() string {
	return fmt.Sprintf("%s-%s-%03d-%s-%s", m.Table, m.Day, m.Generation, m.Source.ID, m.Attempt)
}

// Total returns its count and hash.
func (m *Manifest) Total() (Total, error) { return parseTotal(m.Rows, m.Hash) }

// Bytes returns its size in the storage, without the manifest.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Bytes
	}
	return n
}

const (
	manifestSuffix = ".manifest.json"
	linesSuffix    = ".jsonl.gz"
	parquetSuffix  = ".parquet"
	mostManifest   = 16 << 20
)

// BrokenError says that an archive is damaged. It contains no payload.
type BrokenError struct {
	Archive string
	Problem string
}

func (e *BrokenError) Error() string {
	if e.Archive == "" {
		return "the archive is broken: " + e.Problem
	}
	return "archive " + e.Archive + " is broken: " + e.Problem
}

// ErrNone says that there is no whole archive of that day.
var ErrNone = errors.New("there is no complete archive of that day")

var nameForm = regexp.MustCompile(`^([a-z_]+)-(\d{4}-\d{2}-\d{2})-(\d{3,})-([0-9a-f]{6})-[0-9a-f]{8}((?:\.\d{4,})?\.jsonl\.gz|\.\d{4,}\.parquet|\.manifest\.json)$`)

// Whole returns the archives with a manifest, by day and generation; day nil: of all days. An unreadable manifest is
// a [*BrokenError] besides the others.
func Whole(ctx context.Context, shelf Shelf, table string, day *Day) ([]*Manifest, error) {
	l, err := listed(ctx, shelf, table, day)
	if err != nil {
		return nil, err
	}
	var all []*Manifest
	var broken []error
	for _, of := range l.Days {
		var once Manifests
		some, err := once.Read(ctx, shelf, of)
		if some == nil && err != nil && !isBroken(err) {
			return nil, err
		}
		if err != nil {
			broken = append(broken, err)
		}
		all = append(all, some...)
	}
	return all, errors.Join(broken...)
}

func isBroken(err error) bool {
	var broken *BrokenError
	return errors.As(err, &broken)
}

func prefix(table string, day *Day) string {
	if day == nil {
		return table + "-"
	}
	return table + "-" + day.String() + "-"
}

// readManifest also returns its size in bytes.
func readManifest(ctx context.Context, shelf Shelf, name string) (*Manifest, int64, error) {
	archive := strings.TrimSuffix(name, manifestSuffix)
	r, err := shelf.Get(ctx, name)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	b, err := io.ReadAll(io.LimitReader(r, mostManifest))
	if err := errors.Join(err, r.Close()); err != nil {
		return nil, 0, fmt.Errorf("read %s: %w", name, err)
	}
	m := &Manifest{}
	d := json.NewDecoder(bytes.NewReader(b))
	if d.Decode(m) != nil {
		return nil, 0, &BrokenError{archive, "its manifest is not valid JSON, or incomplete"}
	}
	if m.Format != FormatLines && m.Format != FormatParquet {
		return nil, 0, &BrokenError{archive, fmt.Sprintf("its format is %d, and this program knows %d and %d: another version of docket wrote it", m.Format, FormatLines, FormatParquet)}
	}
	if m.Name() != archive {
		return nil, 0, &BrokenError{archive, "its manifest is of another archive"}
	}
	if _, err := m.Total(); err != nil {
		return nil, 0, &BrokenError{archive, "its manifest has no proper count and hash"}
	}
	var rows int64
	for i, f := range m.Files {
		rows += f.Rows
		if f.Name != m.partName(i+1) {
			return nil, 0, &BrokenError{archive, "its manifest names files that are not its own"}
		}
		if !f.proper() {
			return nil, 0, &BrokenError{archive, "its manifest has sums of blocks that a file does not have"}
		}
	}
	if rows != m.Rows {
		return nil, 0, &BrokenError{archive, "its manifest does not add up"}
	}
	return m, int64(len(b)), nil
}

// partName returns the name of a part, from 1. Parquet is in the folder of its day.
func (m *Manifest) partName(n int) string {
	if m.Format == FormatParquet {
		return fmt.Sprintf("%s/day=%s/%s.%04d%s", m.Table, m.Day, m.Name(), n, parquetSuffix)
	}
	return fmt.Sprintf("%s.%04d%s", m.Name(), n, linesSuffix)
}

// Superseded returns the names of archives that others of the same day replace.
func Superseded(all []*Manifest) map[string]bool {
	names := map[string]bool{}
	for _, m := range all {
		for _, name := range m.Supersedes {
			names[name] = true
		}
	}
	return names
}

// next returns the generation for a new archive of the day.
func next(ctx context.Context, shelf Shelf, table string, day Day) (generation int, err error) {
	generation = 1
	for _, start := range []string{prefix(table, &day), Folder(table, day) + prefix(table, &day)} {
		names, err := shelf.List(ctx, start)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			_, base := cutFolder(name)
			of := nameForm.FindStringSubmatch(base)
			if of == nil {
				continue
			}
			if n, err := strconv.Atoi(of[3]); err == nil {
				generation = max(generation, n+1)
			}
		}
	}
	return generation, nil
}

// archiveOf returns the archive of a file; empty: the name is not that of one.
func archiveOf(file string) string {
	_, base := cutFolder(file)
	of := nameForm.FindStringSubmatch(base)
	if of == nil {
		return ""
	}
	return strings.TrimSuffix(of[0], of[5])
}
