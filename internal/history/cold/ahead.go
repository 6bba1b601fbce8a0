package cold

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"docket/internal/history/archive"
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
		done, mine := h.begin(p.name)
		if mine {
			defer h.end(p.name)
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
	found, more, err := p.Search(ctx, wide)
	if err != nil {
		return nil, false, err
	}
	h.keep(run{of: string(text), after: q.After, found: found, more: more, payloads: q.Payload})
	return cut(found, more, q)
}

// begin takes the reading of an archive, of which there is one at a time. The others wait, and mostly find their answer
// in memory then. A call of singleflight would end with the question that began it, and they would have its error.
func (h *ahead) begin(archive string) (done chan struct{}, mine bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if done = h.reads[archive]; done != nil {
		return done, false
	}
	if h.reads == nil {
		h.reads = map[string]chan struct{}{}
	}
	done = make(chan struct{})
	h.reads[archive] = done
	return done, true
}

func (h *ahead) end(archive string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.reads[archive])
	delete(h.reads, archive)
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
