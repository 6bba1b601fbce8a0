package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
)

// mostPicked limits the decisions that Docket is asked about one by one.
const mostPicked = 40

// picked is a decision of the archive that is asked about.
type picked struct {
	at      reader.Spot
	path    string
	subject string // empty: none
}

// pick picks decisions of some days, evenly.
func pick(rows *decisions) ([]picked, error) {
	const days = 8
	var all []picked
	for n := range min(days, rows.days) {
		of := (2*n + 1) * rows.days / (2 * min(days, rows.days))
		step, seen := max(rows.count(of)*days/mostPicked, 1), int64(0)
		err := rows.lines(rows.day(of), func(line []byte) error {
			if seen++; seen%step != step/2 || len(all) == mostPicked {
				return nil
			}
			one, err := pickedOf(line)
			if err == nil {
				all = append(all, one)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("pick a decision: %w", err)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("there are no decisions to ask about")
	}
	return all, nil
}

func pickedOf(line []byte) (picked, error) {
	var row struct {
		ID   string    `json:"decision_id"`
		TS   time.Time `json:"ts"`
		Path string    `json:"path"`
		Raw  struct {
			Input json.RawMessage `json:"input"`
		} `json:"raw"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return picked{}, err
	}
	var input struct {
		User string `json:"user"`
	}
	_ = json.Unmarshal(row.Raw.Input, &input) // another input has no user
	return picked{reader.Spot{Time: row.TS.UTC(), ID: row.ID}, row.Path, input.User}, nil
}

// counting is a shelf that counts the bytes that are read.
type counting struct {
	archive.Shelf
	read *atomic.Int64
}

// counted counts what is read of a file.
type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

func (c *counted) Read(p []byte) (n int, err error) {
	n, err = c.ReadCloser.Read(p)
	c.read.Add(int64(n))
	return n, err
}

func (c counting) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	r, err := c.Shelf.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	return &counted{r, c.read}, nil
}

func (c counting) Range(ctx context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	r, err := c.Shelf.Range(ctx, name, offset, length)
	if err != nil {
		return nil, err
	}
	return &counted{r, c.read}, nil
}

// asking is a kind of question to archived days. ask returns how many decisions it found. It is an error if these are not
// those that were asked for.
type asking struct {
	title string
	ask   func(ctx context.Context, days *cold.Days, of picked) (int, error)
}

// late is the answer of a search whose time was over.
const late = -1

// askings are the questions of a person who seeks one decision, or a few.
var askings = []asking{
	{"a decision by its id", func(ctx context.Context, days *cold.Days, of picked) (int, error) {
		return theOne(days.Find(ctx, []string{of.at.ID}), of)
	}},
	{"an id that no archive has", func(ctx context.Context, days *cold.Days, of picked) (int, error) {
		found := days.Find(ctx, []string{strings.ToUpper(of.at.ID)})
		if len(found.Decisions) > 0 {
			return 0, fmt.Errorf("%d decisions have it", len(found.Decisions))
		}
		return 0, gapsOf(found.Gaps)
	}},
	{"a decision by its id and time", func(ctx context.Context, days *cold.Days, of picked) (int, error) {
		return theOne(days.Having(ctx, []reader.Spot{of.at}), of)
	}},
	{"the newest page of a subject on a path, up to a time", func(ctx context.Context, days *cold.Days, of picked) (int, error) {
		f := reader.Filter{Until: of.at.Time.Add(time.Microsecond), Paths: []string{of.path}}
		if of.subject != "" {
			f.Matches = []reader.Match{{In: "input", Pointer: "/user", Value: compact(of.subject)}}
		}
		return page(ctx, days, f, &of)
	}},
	{"the newest denials of a path in a day", func(ctx context.Context, days *cold.Days, of picked) (int, error) {
		day := archive.DayOf(of.at.Time)
		f := reader.Filter{Since: day.Time, Until: day.Next().Time, Paths: []string{of.path}, Verdicts: []reader.Verdict{reader.Denied}}
		return page(ctx, days, f, nil)
	}},
}

// theOne returns an error unless a decision was found, it alone and with its payload.
func theOne(found cold.Found, of picked) (int, error) {
	if err := gapsOf(found.Gaps); err != nil {
		return 0, err
	}
	if len(found.Decisions) != 1 || reader.SpotOf(found.Decisions[0]).Compare(of.at) != 0 || len(found.Decisions[0].Raw) == 0 {
		return 0, fmt.Errorf("%d decisions were found, and not it alone", len(found.Decisions))
	}
	return 1, nil
}

// page asks for a page of a search. It must have the decision, unless that is nil.
func page(ctx context.Context, days *cold.Days, f reader.Filter, with *picked) (int, error) {
	found := days.Search(ctx, cold.Span{Query: cold.Query{Filter: f, Limit: 50, Payload: true}})
	if err := gapsOf(found.Gaps); err != nil {
		return 0, err
	}
	if found.Late { // more is on the next page
		return late, nil
	}
	for _, d := range found.Decisions {
		if !f.Fits(d) {
			return 0, fmt.Errorf("%s does not fit", d.ID)
		}
	}
	if with != nil && !slices.ContainsFunc(found.Decisions, func(d reader.Decision) bool { return reader.SpotOf(d).Compare(with.at) == 0 }) {
		return 0, errors.New("the decision is not on the page")
	}
	return len(found.Decisions), nil
}

func gapsOf(gaps []reader.Gap) error {
	for _, g := range gaps {
		return fmt.Errorf("%s: %s", g.Name, g.Why)
	}
	return nil
}

// goal is the longest that a person waits for a decision by its id, at p95.
const goal = 2 * time.Second

// cost is what a kind of question took.
type cost struct {
	title        string
	first, again []time.Duration // by a new process, and by one that asked before
	bytes        int64           // the most that a new process read for one
	found        int
	late         int // questions that did not end within the time of a page
}

// askCold asks Docket about single decisions of the archive: as a new process, which knows nothing of it, and as one
// that runs for long, as a desk. Every answer is checked.
func askCold(ctx context.Context, dir string, picks []picked) ([]cost, error) {
	var all []cost
	for _, a := range askings {
		c := cost{title: a.title}
		long, _ := daysIn(dir)
		for n, of := range append(picks[:1:1], picks...) { // the first is asked again, to know the archive
			fresh, read := daysIn(dir)
			start := time.Now()
			found, err := a.ask(ctx, fresh, of)
			took := time.Since(start)
			fresh.Close()
			start = time.Now()
			again, errAgain := a.ask(ctx, long, of)
			tookAgain := time.Since(start)
			if err := cmp.Or(err, errAgain); err != nil {
				long.Close()
				return nil, fmt.Errorf("%s: %s: %w", a.title, of.at.ID, err)
			}
			if n == 0 {
				continue
			}
			c.first, c.again = append(c.first, took), append(c.again, tookAgain)
			c.bytes, c.found = max(c.bytes, read.Load()), c.found+max(found, 0)
			if found == late || again == late {
				c.late++
			} else if found != again {
				long.Close()
				return nil, fmt.Errorf("%s: %s: %d decisions and then %d", a.title, of.at.ID, found, again)
			}
		}
		long.Close()
		all = append(all, c)
	}
	return all, nil
}

// daysIn reads the days of a folder, and counts the bytes.
func daysIn(dir string) (*cold.Days, *atomic.Int64) {
	var read atomic.Int64
	return cold.New(cold.Config{
		Where: dir, Table: "decision_logs", LineBytes: archive.MostLine(1 << 20),
		Shelf: func() (archive.Shelf, error) { return counting{archive.Dir(dir), &read}, nil },
	}), &read
}

// coldPage is a table in Markdown.
func coldPage(w *written, costs []cost) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Docket about single decisions, %d of each kind. A file has %s bytes on average.\n\n", len(costs[0].first), thousands(w.bytes/int64(max(w.files, 1))))
	fmt.Fprintf(&b, "| question | a new process: p50, p95 ms | a desk: p50, p95 ms | bytes read, at most | found, on average | p95 under %.0f s |\n|---|---|---|---|---|---|\n", goal.Seconds())
	for _, c := range costs {
		verdict := "yes"
		if quantile(c.first, 0.95) >= goal {
			verdict = "NO"
		}
		if c.late > 0 {
			verdict = fmt.Sprintf("NO: %d did not end within the time of a page", c.late)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %.1f | %s |\n", c.title, millis(c.first), millis(c.again), thousands(c.bytes), float64(c.found)/float64(len(c.first)), verdict)
	}
	return b.String()
}

func millis(of []time.Duration) string {
	ms := func(q float64) float64 { return float64(quantile(of, q).Microseconds()) / 1000 }
	return fmt.Sprintf("%.1f, %.1f", ms(0.5), ms(0.95))
}

// quantile returns the least of the times that a part q of them does not exceed.
func quantile(of []time.Duration, q float64) time.Duration {
	of = slices.Sorted(slices.Values(of))
	return of[min(int(q*float64(len(of))), len(of)-1)]
}
