package cold

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
)

// lines is an archive of gzip JSON lines. It has no index, so all of it is read for a question, or for several at once. Its
// answers are proved: size, checksums, count and hash are those of the manifest.
type lines struct {
	shelf    archive.Shelf
	manifest *archive.Manifest
	most     int64 // bytes of a line
	scans    *scans
}

func (l *lines) Fast() bool { return false }

// rows passes each row to a question, with the file that has it. The row is valid until take returns.
func (l *lines) rows(t *taker) error { return l.scans.join(l.manifest.Name(), t, l.read) }

// read passes each row to the takers that may need it.
func (l *lines) read(ctx context.Context, takers []*taker) error {
	into := row{}
	file, left := 0, int64(0)
	if len(l.manifest.Files) > 0 {
		left = l.manifest.Files[0].Rows
	}
	return archive.CheckWithin(ctx, l.shelf, l.manifest, l.most, func(line []byte) error {
		for left == 0 {
			file++
			left = l.manifest.Files[file].Rows
		}
		left--
		l.pass(line, l.manifest.Files[file].Name, into, takers)
		if !needed(takers) {
			return errTaken
		}
		return nil
	})
}

// needed reports whether a question needs a further row.
func needed(takers []*taker) bool {
	return slices.ContainsFunc(takers, func(t *taker) bool { return !t.ended() })
}

// errTaken ends a reading of which nobody needs more.
var errTaken = errors.New("no question needs another row")

// pass passes a row to the takers that may need it.
func (l *lines) pass(line []byte, file string, into row, takers []*taker) {
	parsed := false
	for _, t := range takers {
		if t.ended() || !t.maybe(line) {
			continue
		}
		if !parsed {
			if err := parseRow(line, into); err != nil {
				t.err = &archive.BrokenError{Archive: l.manifest.Name(), Problem: err.Error()}
				continue
			}
			parsed = true
		}
		t.err = t.take(into, file)
	}
}

// place notes where a decision came from.
func (l *lines) place(d reader.Decision, file string) reader.Decision {
	d.Archived = &reader.ArchivedIn{Day: l.manifest.Day, Archive: l.manifest.Name(), File: file}
	return d
}

// decoded turns a row into a decision.
func (l *lines) decoded(r row, file string) (reader.Decision, error) {
	d, err := r.decision()
	if err != nil {
		return d, &archive.BrokenError{Archive: l.manifest.Name(), Problem: err.Error()}
	}
	return l.place(d, file), nil
}

// Find reads all lines, and decodes those that contain an id.
func (l *lines) Find(ctx context.Context, of Sought) ([]reader.Decision, bool, error) {
	counts, ids := map[string]int{}, of.ids()
	var found []reader.Decision // after an error, a reading may still add to it
	more := false
	err := l.rows(&taker{ctx: ctx, weight: len(ids), maybe: mentions(ids), take: func(r row, file string) error {
		var id string
		if err := r.decode("decision_id", &id); err != nil || !slices.Contains(ids, id) {
			return err
		}
		d, err := l.decoded(r, file)
		if err != nil {
			return err
		}
		switch {
		case !of.wants(reader.SpotOf(d)):
		case counts[id] == mostOfID:
			more = true
		default:
			counts[id]++
			found = append(found, owned(d, true))
		}
		return nil
	}})
	if err != nil {
		return nil, false, err
	}
	return found, more, nil
}

// mentions makes a quick test whether a line may contain one of the values, which are strings in JSON. Values with
// characters that JSON may escape could be written in several ways, so then each line may.
func mentions(values []string) func(line []byte) bool {
	var quoted [][]byte
	for _, value := range values {
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' || c == '"' || c == '\\' || c == '/' }) {
			return func([]byte) bool { return true }
		}
		quoted = append(quoted, []byte(`"`+value+`"`))
	}
	return func(line []byte) bool {
		return slices.ContainsFunc(quoted, func(q []byte) bool { return bytes.Contains(line, q) })
	}
}

// mostKept limits the bytes of the decisions that one question keeps in memory. One decision is always kept.
const mostKept = 32 << 20

// Search reads all lines, as only then they are proved. The newest come last, so it keeps the last that fit.
func (l *lines) Search(ctx context.Context, q Query) ([]reader.Decision, bool, error) {
	k := keeper{q: q}
	maybe := func([]byte) bool { return !k.full() }
	err := l.rows(&taker{ctx: ctx, weight: searchWeight, patient: true, maybe: maybe, take: func(r row, file string) error {
		at, err := r.time()
		if err != nil {
			return &archive.BrokenError{Archive: l.manifest.Name(), Problem: err.Error()}
		}
		if f := q.Filter; !f.Since.IsZero() && at.Before(f.Since) || !f.Until.IsZero() && !at.Before(f.Until) {
			return nil
		}
		d, err := l.decoded(r, file)
		if err != nil {
			return err
		}
		if q.behind(d) && q.Filter.Fits(d) {
			k.keep(owned(d, q.Payload))
		}
		return nil
	}})
	if err != nil {
		return nil, false, err
	}
	return k.ordered(), k.more, nil
}

// keeper keeps the first decisions of a question. Rows come oldest first, so for the newest it drops the first again.
type keeper struct {
	q     Query
	kept  []reader.Decision
	first int // the dropped ones before it are removed together
	bytes int
	more  bool
}

// full reports whether later rows cannot be in the answer.
func (k *keeper) full() bool { return k.q.Oldest && k.more }

func (k *keeper) keep(d reader.Decision) {
	if k.full() {
		return
	}
	k.kept, k.bytes = append(k.kept, d), k.bytes+sizeOf(d)
	for n := len(k.kept) - k.first; n > k.q.Limit || n > 1 && k.bytes > mostKept; n-- {
		k.more = true
		if k.q.Oldest {
			k.kept = k.kept[:len(k.kept)-1]
			return
		}
		k.bytes -= sizeOf(k.kept[k.first])
		k.kept[k.first] = reader.Decision{}
		k.first++
	}
	if k.first > k.q.Limit {
		k.kept, k.first = slices.Delete(k.kept, 0, k.first), 0
	}
}

func (k *keeper) ordered() []reader.Decision {
	all := k.kept[k.first:]
	inOrder(all, k.q.Oldest)
	return all
}

func sizeOf(d reader.Decision) int { return len(d.Raw) + len(d.Labels) + len(d.Bundles) + 256 }

// inOrder sorts decisions as a search lists them.
func inOrder(all []reader.Decision, oldest bool) {
	slices.SortFunc(all, func(a, b reader.Decision) int {
		order := cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.ID, b.ID))
		if oldest {
			return order
		}
		return -order
	})
}
