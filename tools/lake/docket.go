package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/history/archive/columnar"
	"docket/internal/record/decision"
	"docket/internal/record/verdict"
)

// askDocket answers every question with Docket's own reader, in one reading of the archive.
func askDocket(ctx context.Context, dir string) (*answers, error) {
	start := time.Now()
	shelf := archive.Dir(dir)
	all, err := archive.Whole(ctx, shelf, "decision_logs", nil)
	if err != nil {
		return nil, fmt.Errorf("list the archive: %w", err)
	}
	superseded := archive.Superseded(all)
	a := &auditor{rates: map[[2]string]*rate{}, last: map[string]string{}, flips: map[string]*flips{}, rules: map[string]*rule{}}
	var files []archive.File
	for _, m := range all {
		if !superseded[m.Name()] {
			files = append(files, m.Files...)
		}
	}
	if err := a.files(ctx, shelf, files); err != nil {
		return nil, err
	}
	return a.answers(time.Since(start)), nil
}

// files reads several files at a time, as many as there are processors, and adds their rows up in order.
func (a *auditor) files(ctx context.Context, shelf archive.Shelf, files []archive.File) error {
	reading, ctx := errgroup.WithContext(ctx)
	room := make(chan struct{}, runtime.NumCPU()+1) // files that are read and not added up
	read := make([]chan []seen, len(files))
	for i := range read {
		read[i] = make(chan []seen, 1)
	}
	reading.Go(func() error {
		for i, file := range files {
			select {
			case room <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			reading.Go(func() error {
				rows, err := readRows(ctx, shelf, file)
				read[i] <- rows
				if err != nil {
					return fmt.Errorf("read %s: %w", file.Name, err)
				}
				return nil
			})
		}
		return nil
	})
	reading.Go(func() error {
		for i := range files {
			select {
			case rows := <-read[i]:
				for k := range rows {
					if err := a.row(&rows[k]); err != nil {
						return err
					}
				}
				<-room
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return reading.Wait()
}

// seen is what the questions need of a row.
type seen struct {
	id, subject, verdict string
	at                   time.Time
	cells
}

// readRows returns the rows of a file in its order.
func readRows(ctx context.Context, shelf archive.Shelf, of archive.File) ([]seen, error) {
	file, err := columnar.Open(ctx, archive.At(shelf, of), of.Bytes)
	if err != nil {
		return nil, err
	}
	var rows []seen
	one := map[string]string{} // many rows say the same
	err = file.Search(ctx, columnar.Question{Oldest: true}, func(r columnar.Row) (bool, error) {
		s := seen{r.ID, r.Subject, r.Verdict, r.Time, cellsOf(r.Line)}
		for _, text := range []*string{&s.path, &s.method} {
			if same, ok := one[*text]; ok {
				*text = same
			} else {
				one[*text] = *text
			}
		}
		rows = append(rows, s)
		return true, nil
	})
	return rows, err
}

// auditor adds rows up. They come in the order of ts and decision_id.
type auditor struct {
	days    []*day
	rates   map[[2]string]*rate // by path and month
	last    map[string]string   // the verdict, by subject and path
	flips   map[string]*flips
	rules   map[string]*rule
	methods map[string]int64 // of the last day; the key is JSON
	key     []byte
}

type day struct {
	name            string
	rows, offsets   int64
	least, greatest string // decision_id
}

type rate struct{ rows, denied int64 }

type flips struct{ count, first, last int64 }

type rule struct {
	denials, first, last int64
	subjects             map[string]bool
}

// cells are the parts of a row's line that the questions need.
type cells struct {
	path   string // JSON; null: none
	offset json.Number
	method string // JSON of raw.input.method; null: none
}

func cellsOf(line []byte) cells {
	c := cells{path: "null", method: "null"}
	for in := decision.Into(line, 0); in.Next(); {
		switch {
		case in.Is("path"):
			c.path = string(line[in.Value:in.End])
		case in.Is("source_offset"):
			c.offset = json.Number(line[in.Value:in.End])
		case in.Is("raw"):
			if v := member(member(line[in.Value:in.End], "input"), "method"); v != nil {
				c.method = string(v)
			}
		}
	}
	return c
}

// member returns a member of an object, or nil.
func member(object []byte, name string) []byte {
	if len(object) == 0 || object[0] != '{' {
		return nil
	}
	for in := decision.Into(object, 0); in.Next(); {
		if in.Is(name) {
			return object[in.Value:in.End]
		}
	}
	return nil
}

func (a *auditor) row(r *seen) error {
	name, micros := r.at.Format(time.DateOnly), r.at.UnixMicro()
	if len(a.days) == 0 || a.days[len(a.days)-1].name != name {
		a.days, a.methods = append(a.days, &day{name: name, least: r.id, greatest: r.id}), map[string]int64{}
	}
	d := a.days[len(a.days)-1]
	offset, err := r.offset.Int64()
	if err != nil {
		return fmt.Errorf("source_offset of %s: %w", r.id, err)
	}
	d.rows++
	d.offsets += offset
	d.least, d.greatest = min(d.least, r.id), max(d.greatest, r.id)
	a.methods[r.method]++

	denied := r.verdict == string(verdict.Denied)
	month := of(a.rates, [2]string{r.path, name[:len("2006-01")]})
	month.rows++
	if denied {
		month.denied++
		a.deny(of(a.rules, r.path), r.subject, micros)
	}
	if r.subject != "" {
		a.flip(r, micros)
	}
	return nil
}

func (a *auditor) deny(r *rule, subject string, micros int64) {
	if r.subjects == nil {
		r.first, r.subjects = micros, map[string]bool{}
	}
	r.denials++
	r.last = micros
	if subject != "" {
		r.subjects[subject] = true
	}
}

// flip counts a verdict that differs from the one before, of the same subject and path.
func (a *auditor) flip(r *seen, micros int64) {
	a.key = append(append(append(a.key[:0], r.subject...), 0), r.path...)
	before, seen := a.last[string(a.key)]
	if before == r.verdict {
		return
	}
	a.last[string(a.key)] = r.verdict
	if !seen {
		return
	}
	f := of(a.flips, r.subject)
	if f.count == 0 {
		f.first = micros
	}
	f.count++
	f.last = micros
}

// of returns the value of a key, a new one if there is none.
func of[K comparable, V any](all map[K]*V, key K) *V {
	v := all[key]
	if v == nil {
		v = new(V)
		all[key] = v
	}
	return v
}

// most is how many rules are named.
const most = 10

func (a *auditor) answers(took time.Duration) *answers {
	r := &answers{Engine: "Docket", rows: map[string][]string{}, took: took}
	for _, d := range a.days {
		r.add("days", d.name, d.rows, d.offsets, d.least, d.greatest)
	}
	for key, n := range a.rates {
		r.add("rates", json.RawMessage(key[0]), key[1], n.rows, n.denied)
	}
	for subject, f := range a.flips {
		r.add("flips", subject, f.count, f.first, f.last)
	}
	var paths []string
	for path := range a.rules {
		if path != "null" {
			paths = append(paths, path)
		}
	}
	slices.SortFunc(paths, func(x, y string) int {
		return cmp.Or(cmp.Compare(a.rules[y].denials, a.rules[x].denials), cmp.Compare(x, y))
	})
	for _, path := range paths[:min(len(paths), most)] {
		of := a.rules[path]
		r.add("rules", json.RawMessage(path), of.denials, len(of.subjects), of.first, of.last)
	}
	for method, n := range a.methods {
		r.add("payloads", json.RawMessage(method), n)
	}
	r.sort()
	return r
}
