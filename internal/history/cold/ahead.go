package cold

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"docket/internal/history/archive"
	"docket/internal/history/claims"
	"docket/internal/history/reader"
)

// An archive without an index is read whole for each question. So a question takes more than its page, and the pages
// behind it come from memory. Archives never change, so what is kept stays true.
const (
	leastAhead = 200      // decisions of a question
	mostRuns   = 16       // kept, over all questions
	mostAhead  = 64 << 20 // bytes kept, over all questions
)

// ahead keeps what was read beyond the pages that were asked for.
type ahead struct {
	once    *claims.Once // has one of several processes read; nil: each reads
	results results      // where they find what was read
	where   string       // the place of the archives

	mu    sync.Mutex
	runs  []run                    // the last used one first
	reads map[string]chan struct{} // those in progress; each is closed at its end
}

// run is a part of an archive's decisions that fit, without a gap.
type run struct {
	of       string      // archive, filter and order
	after    reader.Spot // it begins behind it
	found    []reader.Decision
	more     bool
	bytes    int
	payloads bool
}

// search answers from memory where that has the answer, and else asks the archive.
func (h *ahead) search(ctx context.Context, p part, q Query, of archive.Day) ([]reader.Decision, bool, error) {
	if p.Fast() {
		return p.Search(ctx, q)
	}
	f := q.Filter
	if f.Since.Before(of.Time) {
		f.Since = of.Time // all of an archive is of its day
	}
	if next := of.Next().Time; f.Until.IsZero() || f.Until.After(next) {
		f.Until = next
	}
	text, err := json.Marshal(struct {
		Archive string
		Filter  reader.Filter
		Oldest  bool
	}{p.name, f, q.Oldest})
	if err != nil {
		return nil, false, err
	}
	for {
		if found, more, ok := h.known(string(text), q); ok {
			return found, more, nil
		}
		done, mine := h.begin(string(text))
		if mine {
			defer h.end(string(text))
			break
		}
		select {
		case <-done: // then it is known, or this question reads
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
	if found, more, ok := h.known(string(text), q); ok { // another question read it just now
		return found, more, nil
	}
	wide := q
	wide.Limit = max(q.Limit, leastAhead)
	r := run{of: string(text), after: q.After, payloads: q.Payload}
	err = h.shared(ctx, p.name, &r, wide.Limit, func(ctx context.Context) (err error) {
		r.found, r.more, err = p.Search(ctx, wide)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	h.keep(r)
	return cut(r.found, r.more, q)
}

// find looks for decisions in an archive. One that has no index is read by one of the processes.
func (h *ahead) find(ctx context.Context, p part, of Sought) (r run, err error) {
	if p.Fast() {
		r.found, r.more, err = p.Find(ctx, of)
		return r, err
	}
	r = run{of: p.name + "\n" + of.key(), payloads: true}
	err = h.shared(ctx, p.name, &r, 0, func(ctx context.Context) (err error) {
		r.found, r.more, err = p.Find(ctx, of)
		return err
	})
	return r, err
}

// shared has one of the processes that share results read an archive for a run. Without a shared directory a claim would
// only let processes wait for each other, so then none is made.
func (h *ahead) shared(ctx context.Context, archive string, r *run, limit int, read func(ctx context.Context) error) error {
	id, ok := h.results.id()
	if h.once == nil || !ok {
		return read(ctx)
	}
	key, ok := key(id+" "+h.where, *r, limit)
	if !ok {
		return read(ctx)
	}
	for {
		done, mine := h.begin(key)
		if mine {
			defer h.end(key)
			break
		}
		select {
		case <-done: // then its result is there
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return h.once.Do(ctx, archive+"/"+key, claims.High,
		func() bool { return h.results.load(key, r) },
		func(ctx context.Context) error {
			err := read(ctx)
			if err == nil {
				h.results.save(key, *r)
			}
			return err
		})
}

// begin takes a reading, of which this process has one at a time. The others wait, and mostly find their answer
// in memory then. A call of singleflight would end with the question that began it, and they would have its error.
func (h *ahead) begin(reading string) (done chan struct{}, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if done = h.reads[reading]; done != nil {
		return done, false
	}
	if h.reads == nil {
		h.reads = map[string]chan struct{}{}
	}
	done = make(chan struct{})
	h.reads[reading] = done
	return done, true
}

func (h *ahead) end(reading string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.reads[reading])
	delete(h.reads, reading)
}

// cut makes a page of decisions; the kept ones stay as they are.
func cut(found []reader.Decision, more bool, q Query) ([]reader.Decision, bool, error) {
	if len(found) > q.Limit {
		found, more = found[:q.Limit], true
	}
	found = slices.Clone(found)
	if !q.Payload {
		for i := range found {
			found[i].Raw = nil
		}
	}
	return found, more, nil
}

// known looks for a kept run that has the page, or all that is left.
func (h *ahead) known(of string, q Query) (found []reader.Decision, more, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, r := range h.runs {
		if r.of != of || q.Payload && !r.payloads || !r.reaches(q.After, q.Oldest) {
			continue
		}
		rest := r.found[slices.IndexFunc(append(slices.Clone(r.found), reader.Decision{}), func(d reader.Decision) bool { return d.ID == "" || q.behind(d) }):]
		if r.more && len(rest) < q.Limit {
			continue
		}
		h.runs = append([]run{r}, slices.Delete(h.runs, i, i+1)...)
		found, more, _ = cut(rest, r.more, q)
		return found, more, true
	}
	return nil, false, false
}

// reaches reports whether the run has all behind a place up to its own end.
func (r run) reaches(after reader.Spot, oldest bool) bool {
	switch {
	case after == r.after:
		return true
	case after.IsZero():
		return false
	}
	return r.after.IsZero() || earlier(r.after, after, oldest)
}

// keep adds a run, and drops those that were not used for the longest time.
func (h *ahead) keep(r run) {
	for _, d := range r.found {
		r.bytes += sizeOf(d)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs = append([]run{r}, h.runs...)
	total := 0
	for i, one := range h.runs {
		if total += one.bytes; i > 0 && (total > mostAhead || i >= mostRuns) {
			h.runs = slices.Clip(h.runs[:i])
			return
		}
	}
}
