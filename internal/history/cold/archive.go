package cold

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
)

// Archive is one archive of a day, in one of the formats. Its errors are safe to show.
type Archive interface {
	// Fast reports whether a question reads only parts of the files.
	Fast() bool
	// Find returns the sought decisions, with their payload. more says that there are others of an id: at least
	// [mostOfID] of it were found.
	Find(ctx context.Context, of Sought) (found []reader.Decision, more bool, err error)
	// Search returns decisions behind q.After that fit, in the order of the question. more says that there may be
	// others behind the last one: at least q.Limit were found, or together they have too many bytes.
	Search(ctx context.Context, q Query) (found []reader.Decision, more bool, err error)
}

// Query asks for decisions of one archive.
type Query struct {
	Filter reader.Filter
	After  reader.Spot
	Oldest bool
	Limit  int
	// Payload keeps Raw.
	Payload bool
}

// behind reports whether a decision comes after q.After.
func (q Query) behind(d reader.Decision) bool {
	if q.After.IsZero() {
		return true
	}
	order := reader.SpotOf(d).Compare(q.After)
	return q.Oldest && order > 0 || !q.Oldest && order < 0
}

// Format opens an archive by its manifest. mostLine limits a row, in bytes.
type Format func(shelf archive.Shelf, m *archive.Manifest, mostLine int64) Archive

// Formats opens archives of every format that this program reads. It keeps the ends of files in memory, and has questions
// to the same archive without an index share its reading.
func Formats() Format {
	e, together := newEnds(), &scans{}
	return func(shelf archive.Shelf, m *archive.Manifest, mostLine int64) Archive {
		if m.Format == archive.FormatParquet {
			return &columns{shelf: shelf, manifest: m, most: mostLine, ends: e}
		}
		return &lines{shelf: shelf, manifest: m, most: mostLine, scans: together}
	}
}

// mostOfID limits the decisions of one id in one file.
const mostOfID = 1000

// Sought are identities of decisions. One without a time means each decision of that id.
type Sought []reader.Spot

// ofIDs seeks all decisions of some ids.
func ofIDs(ids []string) Sought {
	of := make(Sought, len(ids))
	for i, id := range ids {
		of[i] = reader.Spot{ID: id}
	}
	return of
}

// ids returns the ids, each once.
func (s Sought) ids() []string {
	ids := make([]string, len(s))
	for i, at := range s {
		ids[i] = at.ID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (s Sought) wants(one reader.Spot) bool {
	return slices.ContainsFunc(s, func(at reader.Spot) bool { return at.ID == one.ID && (at.Time.IsZero() || at.Time.Equal(one.Time)) })
}

// key tells questions apart. JSON has no times of all years that an identity may have.
func (s Sought) key() string {
	var b strings.Builder
	for _, at := range s {
		fmt.Fprintf(&b, "%q %d\n", at.ID, at.Time.UnixMicro())
	}
	return b.String()
}
