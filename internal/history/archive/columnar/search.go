package columnar

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"docket/internal/record/decision"
	"docket/internal/record/subject"
	"docket/internal/record/verdict"
)

// Place is a place in the order of (ts, decision_id).
type Place struct {
	Time time.Time
	ID   string
}

// Question chooses rows. Fields are joined by and, the values of one field by or. The zero value chooses all.
type Question struct {
	Since, Until time.Time // Since <= ts < Until; zero: no limit
	// Paths are whole paths, or all below one if it ends in "/*".
	Paths    []string
	Services []string
	Verdicts []verdict.Verdict
	// Subject is the subject by By; empty: any. If the file's subjects were found by another setting, payloads are read.
	Subject string
	By      subject.Spec
	// Oldest is the order: false is newest first.
	Oldest bool
	// After continues behind a place in that order; nil: from the beginning.
	After *Place
}

// Search passes the rows that a question chooses, in its order, until emit returns false or an error. It skips groups
// of rows and pages whose bounds or filters rule them out, and reads the columns of the question before any other.
func (f *File) Search(ctx context.Context, q Question, emit func(Row) (more bool, err error)) (err error) {
	defer guard(&err)
	s := newSearch(f, q, emit)
	for i := range f.groups {
		g := f.groups[i]
		if !q.Oldest {
			g = f.groups[len(f.groups)-1-i]
		}
		if more, err := s.group(ctx, g); err != nil || !more {
			return err
		}
	}
	return nil
}

// search is one search of a file.
type search struct {
	f        *File
	q        Question
	emit     func(Row) (bool, error)
	all      []condition
	payloads bool // the subject is read from payloads

	wait, size int // how many rows are waited for before they are read whole, and how many are read at once
}

// Rows that fit are read whole in portions that grow. A page is read again for each portion that has rows of it. The first row
// is not waited for, as it may be all that is wanted.
const (
	firstWait = 1
	firstSize = 16
)

func newSearch(f *File, q Question, emit func(Row) (bool, error)) *search {
	s := &search{f: f, q: q, emit: emit, wait: firstWait, size: firstSize}
	s.conditions()
	return s
}

// condition is what a question wants of one column.
type condition struct {
	column int
	// may reports whether values between two bounds can be wanted.
	may func(least, greatest parquet.Value) bool
	// is reports whether a value is wanted.
	is func(v parquet.Value) bool
}

func (s *search) conditions() {
	l := s.f.layout
	if since, until := s.q.between(); since != minTime || until != maxTime {
		s.all = append(s.all, condition{l.ts, func(a, b parquet.Value) bool { return b.Int64() >= since && a.Int64() < until },
			func(v parquet.Value) bool { return v.Int64() >= since && v.Int64() < until }})
	}
	s.words("path", s.q.Paths)
	s.words("service", s.q.Services)
	if len(s.q.Verdicts) > 0 {
		var texts []string
		for _, v := range s.q.Verdicts {
			texts = append(texts, string(v))
		}
		s.all = append(s.all, wordsOf(l.added[Verdict], texts))
	}
	if s.q.Subject == "" {
		return
	}
	if s.payloads = s.f.subject != s.q.By.String(); !s.payloads {
		c := wordsOf(l.added[Subject], []string{s.q.Subject})
		c.is = func(v parquet.Value) bool { return !v.IsNull() && string(v.ByteArray()) == s.q.Subject }
		s.all = slices.Insert(s.all, 0, c) // first, as it leaves the fewest rows for the others
	}
}

const minTime, maxTime = -1 << 63, 1<<63 - 1

// between are the limits in microseconds. A time between two microseconds is after the first.
func (q Question) between() (since, until int64) {
	up := func(t time.Time) int64 { return t.Add(time.Microsecond - time.Nanosecond).UnixMicro() }
	since, until = minTime, maxTime
	if !q.Since.IsZero() {
		since = up(q.Since)
	}
	if !q.Until.IsZero() {
		until = up(q.Until)
	}
	if q.After == nil {
		return since, until
	}
	if at := q.After.Time.UnixMicro(); q.Oldest {
		since = max(since, at)
	} else {
		until = min(until, at+1)
	}
	return since, until
}

// words wants texts of a column of the table. A table without it has no such rows.
func (s *search) words(name string, texts []string) {
	if len(texts) == 0 {
		return
	}
	for i, c := range s.f.layout.columns {
		if c.Name == name && c.kind == asText {
			s.all = append(s.all, wordsOf(i, texts))
			return
		}
	}
	never := func(parquet.Value) bool { return false }
	s.all = append(s.all, condition{s.f.layout.id, func(_, _ parquet.Value) bool { return false }, never})
}

// wordsOf wants texts, or all below one that ends in "/*".
func wordsOf(column int, texts []string) condition {
	return condition{
		column: column,
		may: func(a, b parquet.Value) bool {
			return slices.ContainsFunc(texts, func(text string) bool {
				below, open := strings.CutSuffix(text, "*")
				if open = open && strings.HasSuffix(below, "/"); !open {
					return string(a.ByteArray()) <= text && text <= string(b.ByteArray())
				}
				least, greatest := string(a.ByteArray()), string(b.ByteArray())
				return greatest >= below && (least <= below || strings.HasPrefix(least, below))
			})
		},
		is: func(v parquet.Value) bool {
			if v.IsNull() {
				return false
			}
			value := v.ByteArray()
			return slices.ContainsFunc(texts, func(text string) bool {
				if below, open := strings.CutSuffix(text, "*"); open && strings.HasSuffix(below, "/") {
					return bytes.HasPrefix(value, []byte(below))
				}
				return string(value) == text
			})
		},
	}
}

// span is rows of a group: from <= row < to.
type span struct{ from, to int64 }

// blockRows is how many rows are looked at at once, first. A page is read again for each block that has rows of it. So a block
// without a wanted row is followed by one twice as long, up to mostBlock.
const (
	blockRows = 16_384
	mostBlock = 8 * blockRows
)

// group searches a group. more is false once emit wants no more.
func (s *search) group(ctx context.Context, g rowGroup) (more bool, err error) {
	for _, c := range s.all {
		if least, greatest, ok := g.chunks[c.column].Bounds(); ok && !least.IsNull() && !greatest.IsNull() && !c.may(least, greatest) {
			return true, nil
		}
	}
	if s.q.Subject != "" && !s.payloads {
		may, err := g.subjects.may(s.f.view(ctx), []byte(s.q.Subject))
		if err != nil || !may {
			return true, damaged("cannot be read", err)
		}
	}
	v := s.f.view(ctx)
	spans, err := s.spans(v, g)
	if err != nil {
		return false, damaged("cannot be read", err)
	}
	var rows []int64 // that fit and were not read yet, in the order of the question
	for size := int64(blockRows); len(spans) > 0; {
		var one span
		one, spans = s.next(spans, size)
		if err := ctx.Err(); err != nil { // a block that is in memory asks nobody
			return false, err
		}
		found, err := s.block(v, g, one)
		if err != nil {
			return false, err
		}
		if len(found) == 0 {
			size = min(2*size, mostBlock)
		}
		if rows = append(rows, found...); len(rows) < s.wait && len(spans) > 0 {
			continue
		}
		if more, err := s.whole(v, g, rows); err != nil || !more {
			return false, err
		}
		rows = rows[:0]
	}
	return true, nil
}

// whole reads rows of a group whole, and passes those that are wanted.
func (s *search) whole(v *view, g rowGroup, rows []int64) (more bool, err error) {
	if len(rows) == 0 {
		return true, nil
	}
	most := s.f.together(g)
	for len(rows) > 0 {
		n := min(s.size, most, len(rows))
		if more, err := s.pass(v, g, slices.Clone(rows[:n])); err != nil || !more {
			return false, err
		}
		if n == s.size {
			s.size *= 2
		}
		rows = rows[n:]
	}
	s.wait = min(2*s.wait, firstSize)
	return true, nil
}

// spans are the rows that the bounds of pages do not rule out, in order.
func (s *search) spans(v *view, g rowGroup) ([]span, error) {
	spans := []span{{0, g.rows}}
	if len(s.all) == 0 {
		return spans, nil
	}
	if err := v.fetch(s.f.bounds(g)); err != nil {
		return nil, err
	}
	if err := s.f.places(v, g); err != nil {
		return nil, err
	}
	for _, c := range s.all {
		bounds, err := s.f.boundsOf(v, g, c.column)
		if err != nil {
			return nil, err
		}
		places, err := g.chunks[c.column].OffsetIndexFrom(v)
		if err != nil {
			return nil, err
		}
		var may []span
		for page := range places.NumPages() {
			to := g.rows
			if page+1 < places.NumPages() {
				to = places.FirstRowIndex(page + 1)
			}
			if s.pageMay(c, bounds, page) {
				may = append(may, span{places.FirstRowIndex(page), to})
			}
		}
		spans = both(spans, may)
	}
	return spans, nil
}

// boundsOf reads the bounds of a column's pages, which were fetched.
func (f *File) boundsOf(v *view, g rowGroup, column int) (*parquet.FileColumnIndex, error) {
	meta := &f.file.Metadata().RowGroups[g.meta].Columns[column]
	if err := f.checkIndex(v, g, column, Part{meta.ColumnIndexOffset, int64(meta.ColumnIndexLength)}); err != nil {
		return nil, err
	}
	return g.chunks[column].ColumnIndexFrom(v)
}

// unbounded reports whether a page has no bounds.
func unbounded(least, greatest parquet.Value) bool {
	return least.IsNull() || greatest.IsNull() || least.Kind() == parquet.ByteArray && len(greatest.ByteArray()) == 0
}

// pageMay reports whether a page can have a wanted row. Pages of columns without bounds can.
func (s *search) pageMay(c condition, bounds *parquet.FileColumnIndex, page int) bool {
	if page >= bounds.NumPages() {
		return true
	}
	if bounds.NullPage(page) {
		return false
	}
	least, greatest := bounds.MinValue(page), bounds.MaxValue(page)
	if unbounded(least, greatest) {
		return true
	}
	return c.may(least, greatest)
}

// both are the rows that two lists of spans have. Each is in order.
func both(a, b []span) (all []span) {
	for len(a) > 0 && len(b) > 0 {
		if from, to := max(a[0].from, b[0].from), min(a[0].to, b[0].to); from < to {
			all = append(all, span{from, to})
		}
		if a[0].to < b[0].to {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return all
}

// next cuts a block off spans, in the order of the question.
func (s *search) next(spans []span, size int64) (block span, rest []span) {
	at := len(spans) - 1
	if s.q.Oldest {
		at = 0
	}
	one := &spans[at]
	block = *one
	if block.to-block.from <= size {
		return block, slices.Delete(spans, at, at+1)
	}
	if s.q.Oldest {
		block.to = block.from + size
		one.from = block.to
	} else {
		block.from = block.to - size
		one.to = block.from
	}
	return block, spans
}

// block returns the rows whose columns fit, in the order of the question.
func (s *search) block(v *view, g rowGroup, one span) (rows []int64, err error) {
	rows = make([]int64, 0, one.to-one.from)
	for row := one.from; row < one.to; row++ {
		rows = append(rows, row)
	}
	for _, c := range s.all {
		if rows, err = s.keep(v, g, c, rows); err != nil {
			return nil, damaged("cannot be read", err)
		}
	}
	if !s.q.Oldest {
		slices.Reverse(rows)
	}
	return rows, nil
}

// keep returns those rows that a condition wants.
func (s *search) keep(v *view, g rowGroup, c condition, rows []int64) (kept []int64, err error) {
	if len(rows) == 0 {
		return nil, nil
	}
	if err := s.f.fetchPages(v, g, rows, []int{c.column}); err != nil {
		return nil, err
	}
	err = s.f.pick(v, g, c.column, rows, func(n int, value parquet.Value) error {
		if c.is(value) {
			kept = append(kept, rows[n])
		}
		return nil
	})
	return kept, err
}

// together is how many rows of a group are made at once: at most a thousand, and about 8 MiB.
func (f *File) together(g rowGroup) int {
	size := f.file.Metadata().RowGroups[g.meta].TotalByteSize / max(g.rows, 1)
	return int(min(max(8<<20/max(size, 1), 1), 1000))
}

// pass reads whole rows, and passes those that are wanted.
func (s *search) pass(v *view, g rowGroup, rows []int64) (more bool, err error) {
	if !s.q.Oldest {
		slices.Reverse(rows)
	}
	return s.f.batch(v, g, rows, !s.q.Oldest, func(found []Row) (bool, error) {
		if !s.q.Oldest {
			slices.Reverse(found)
		}
		for i := range found {
			if !s.wanted(&found[i]) {
				continue
			}
			if more, err := s.emit(found[i]); err != nil || !more {
				return false, err
			}
		}
		return true, nil
	})
}

// wanted looks at what no column tells.
func (s *search) wanted(r *Row) bool {
	if a := s.q.After; a != nil && r.Time.Equal(a.Time.Truncate(time.Microsecond)) {
		if s.q.Oldest && r.ID <= a.ID || !s.q.Oldest && r.ID >= a.ID {
			return false
		}
	}
	if !s.payloads {
		return true
	}
	for in := decision.Into(r.Line, 0); in.Next(); {
		if in.Is("raw") {
			who, ok := s.q.By.Of(r.Line[in.Value:in.End])
			return ok && who == s.q.Subject
		}
	}
	return false
}
