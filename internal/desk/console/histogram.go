package console

import (
	"time"

	"docket/internal/desk/api"
)

// bar is one step of a histogram. Heights are of 100.
type bar struct {
	X, Y, Height, DeniedY, Denied float64
	Title                         string
	To                            string // the decisions of the step; empty: no link
	From                          time.Time
	Count, DeniedCount            int64
}

// histogram is a chart of counts over time.
type histogram struct {
	Bars          []bar
	Width         int
	First, Last   time.Time
	Total, Denied int64
	Lacks         []string // places that were not counted, one sentence each
}

// maxBars limits the bars of a chart. It is the most steps that counts have, so no bar is left out of the sums.
const maxBars = 1000

// histogramOf draws counts. link names the page of a step.
func histogramOf(r api.Rates, now time.Time, link func(from, to time.Time) string) histogram {
	until := now
	if r.Until != nil {
		until = *r.Until
	}
	step := time.Duration(r.StepSeconds * float64(time.Second))
	h := histogram{First: r.Since, Last: until.Truncate(time.Second)}
	if step <= 0 {
		return h
	}
	type sum struct{ all, denied int64 }
	sums := map[int64]sum{}
	most := int64(1)
	for _, l := range r.Lines {
		s := sums[l.From.Unix()]
		s.denied += l.Counts.Denied
		s.all += l.Counts.Allowed + l.Counts.Denied + l.Counts.Undefined + l.Counts.Error + l.Counts.Other
		sums[l.From.Unix()] = s
		most = max(most, s.all)
	}
	for at := r.Since; at.Before(until) && len(h.Bars) < maxBars; at = at.Add(step) {
		s := sums[at.Unix()]
		h.Total, h.Denied = h.Total+s.all, h.Denied+s.denied
		height := heightOf(s.all, most)
		denied := min(height, heightOf(s.denied, most))
		h.Bars = append(h.Bars, bar{X: float64(len(h.Bars)*10 + 1), Y: 100 - height, Height: height, DeniedY: 100 - denied, Denied: denied,
			Title: timeText(at) + " UTC: " + count(s.all) + " decisions, " + count(s.denied) + " denied", To: link(at, at.Add(step)), From: at, Count: s.all, DeniedCount: s.denied})
	}
	h.Width = max(1, len(h.Bars)) * 10
	return h
}

// heightOf shows even one of many.
func heightOf(n, most int64) float64 {
	if n == 0 {
		return 0
	}
	return max(2, 100*float64(n)/float64(most))
}
