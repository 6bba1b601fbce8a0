package console

import (
	"slices"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
	"docket/internal/history/state"
)

// pageSize is the number of lines of a list.
const pageSize = 50

// decisionsPage is the content of the page of decisions.
type decisionsPage struct {
	Search   search
	Line     string
	Verdicts []reader.Verdict
	Wrong    []api.Fault
	Hint     string
	Found    *api.DecisionPage
	Chart    *histogram
	Partial  []string // filters that the chart does not have
	Command  string
	Older    string // the page that follows in the order of the search
	Newer    string // the page before it
	First    string // the first page; empty: this is it
	Missing  []string
	Opened   bool
	Facets   facetsPart
	Ranges   []choice
	Ready    []choice // filters that many ask for
	Lasting  string   // the same range as times
	Exports  []choice
	Rates    string
	Views    viewsPart
	Live     *liveView // nil: this desk cannot follow
}

// choice is a link among several.
type choice struct {
	Text, To string
	Is       bool // it is what the page shows
}

func (c *Console) decisions(in *request) (page, error) {
	q := in.URL.Query()
	if q.Get("id") != "" {
		return c.why(in)
	}
	if q.Has("q") {
		s, err := parseLine(q.Get("q"))
		if err == nil {
			return page{to: s.with()}, nil
		}
		return c.wrongSearch(s, q.Get("q"), err)
	}
	s, err := searchOf(q)
	if err != nil {
		return c.wrongSearch(s, s.line(), err)
	}
	live := c.liveOf(in, &s)
	ask := api.PageQuery{SearchQuery: s.question(pageSize)}
	if s.Before != "" {
		ask.After, ask.Back = s.Before, true
	}
	found, err := c.ask.Page(in.ctx(), in.who, ask)
	if err != nil {
		return c.wrongSearch(s, s.line(), err)
	}
	body := decisionsPage{Search: s, Line: s.line(), Verdicts: reader.Verdicts(), Found: &found, Command: s.commandLine(), Missing: missingOf(&found.DecisionList), Live: live}
	if found.Next != "" {
		body.Older = s.first("after", found.Next)
	}
	if found.Back != "" {
		body.Newer = s.first("before", found.Back)
	}
	if s.After != "" || s.Before != "" {
		body.First = s.first()
	}
	for name, set := range map[string]bool{"verdict": len(s.Verdict) > 0, "requested_by": len(s.RequestedBy) > 0, "label": len(s.Label) > 0, "match": len(s.Match) > 0} {
		if set {
			body.Partial = append(body.Partial, name)
		}
	}
	slices.Sort(body.Partial)
	if body.First == "" {
		body.Chart, body.Facets = c.beside(in, &s, &found.DecisionList, body.Partial)
	}
	if body.Chart != nil {
		for _, lack := range body.Chart.Lacks {
			if !slices.Contains(body.Missing, lack) {
				body.Missing = append(body.Missing, "The bars lack a part. "+lack)
			}
		}
	}
	body.Ranges, body.Ready, body.Lasting, body.Exports, body.Rates = s.ranges(), ready(&s), s.lasting(in.now), s.exports(in.who.Role), s.ratesURL()
	body.Views = c.viewsOf(in, &s)
	return page{name: "decisions", title: "Decisions", body: body}, nil
}

// wrongSearch shows what was asked, with what is wrong with it.
func (c *Console) wrongSearch(s search, line string, err error) (page, error) {
	p, is := asProblem(err)
	if !is || len(p.Faults) == 0 && p.Status != 403 || p.Status >= 500 {
		return page{}, err
	}
	body := decisionsPage{Search: s, Line: line, Verdicts: reader.Verdicts(), Wrong: p.Faults, Hint: sentence(p.Hint), Opened: false}
	if len(p.Faults) == 0 {
		body.Wrong = []api.Fault{{Message: p.Detail}}
	}
	return page{name: "decisions", title: "Decisions", status: p.Status, body: body}, nil
}

// beside is what the first page has beside its list: the chart, and the facets.
func (c *Console) beside(in *request, s *search, first *api.DecisionList, partial []string) (*histogram, facetsPart) {
	sampled, err := c.ask.Facets(in.ctx(), in.who, s.question(pageSize), first)
	if err != nil {
		sampled = nil // the list of the same question was answered
	}
	chart, counted := c.chart(in, s)
	if len(partial) > 0 {
		counted = nil
	}
	return chart, facetsOf(s, sampled, counted)
}

// chart counts the decisions of the range by step; nil where they cannot be counted. It knows paths and services alone.
func (c *Console) chart(in *request, s *search) (*histogram, *api.Rates) {
	since, until := s.between(in.now)
	q := api.StatsQuery{By: "path"}
	q.Since, q.Path, q.Service = since.Format(time.RFC3339), s.Path, s.Service
	if s.Until != "" {
		q.Until = until.Format(time.RFC3339)
	}
	r, err := c.ask.Rates(in.ctx(), in.who, q)
	if err != nil {
		return nil, nil
	}
	h := histogramOf(r, in.now, func(from, to time.Time) string {
		return s.first("since", from.UTC().Format(time.RFC3339), "until", to.UTC().Format(time.RFC3339))
	})
	h.Lacks = lacking(nil, r.Partly)
	return &h, &r
}

// missingOf says what may be missing from a list, one sentence each.
func missingOf(l *api.DecisionList) (all []string) {
	if l.Later != nil {
		all = append(all, "Decisions dated from "+timeText(*l.Later)+" UTC on, more than an hour ahead, are left out. Ask with since for them.")
	}
	if l.Reached != nil {
		all = append(all, "Time was over at "+timeText(*l.Reached)+" UTC. Go on with older ones.")
	}
	if l.EditsUnknown != "" {
		all = append(all, sentence(l.EditsUnknown))
	}
	return append(all, lacking(l.NotLooked, l.Partly)...)
}

// lacking names places and shards that were not looked at.
func lacking(notLooked []string, p api.Partly) (all []string) {
	for _, place := range append(append([]string{}, notLooked...), p.NotRead...) {
		all = append(all, "Not looked at: "+place)
	}
	for _, shard := range p.ShardsNotAsked {
		all = append(all, "Shard not asked: "+shard)
	}
	return all
}

// ratesPage is the content of the page of rates.
type ratesPage struct {
	By, Since, Until, Step string
	Path, Service          string
	Rows                   []rateRow
	Chart                  histogram
	Rates                  api.Rates
	Missing                []string
	Command                string
	Other                  bool
	Kept                   bool // the desk counts revisions
	Revisions              *api.RevisionRates
}

// rateRow sums up one path or service.
type rateRow struct {
	Name          string
	Total, Denied int64
	Errors        int64
	Rate          float64
	Known         bool // any was allowed or denied
	Spark         histogram
	To            string
}

// maxRates limits the paths or services of a page.
const maxRates = 100

func (c *Console) rates(in *request) (page, error) {
	q := in.URL.Query()
	body := ratesPage{By: q.Get("by"), Since: q.Get("since"), Until: q.Get("until"), Step: q.Get("step"), Path: q.Get("path"), Service: q.Get("service")}
	body.Kept = c.ask.Has("list-revisions")
	if body.By == "revision" && body.Kept {
		return c.revisions(in, body)
	}
	if body.By != "service" {
		body.By = "path"
	}
	ask := api.StatsQuery{By: body.By, Step: body.Step}
	ask.Since, ask.Until = body.Since, body.Until
	if len(body.Since) > maxTime || len(body.Until) > maxTime || len(body.Step) > 20 {
		return page{}, asking("since, until, step", "a shorter text")
	}
	if body.Path != "" {
		ask.Path = []string{body.Path}
	}
	if body.Service != "" {
		ask.Service = []string{body.Service}
	}
	r, err := c.ask.Rates(in.ctx(), in.who, ask)
	if err != nil {
		return page{}, err
	}
	body.Rates, body.Missing = r, lacking(nil, r.Partly)
	s := search{Since: body.Since, Until: body.Until}
	if body.Path != "" {
		s.Path = []string{body.Path}
	}
	if body.Service != "" {
		s.Service = []string{body.Service}
	}
	link := func(from, to time.Time) string {
		return s.with("since", from.UTC().Format(time.RFC3339), "until", to.UTC().Format(time.RFC3339))
	}
	body.Chart = histogramOf(r, in.now, link)
	body.Rows, body.Other = rateRows(r, in.now, &s)
	command := search{Since: s.Since, Until: s.Until, Path: s.Path, Service: s.Service}
	body.Command = "docket stats --by " + body.By + command.commandLine()[len("docket logs"):]
	return page{name: "rates", title: "Rates", body: body}, nil
}

// revisions is the page of rates by revision. It has no chart: revisions are counted without times between.
func (c *Console) revisions(in *request, body ratesPage) (page, error) {
	if len(body.Path) > maxID {
		return page{}, asking("path", "a shorter text")
	}
	var paths []string
	if body.Path != "" {
		paths = []string{body.Path}
	}
	found, err := c.ask.Revisions(in.ctx(), in.who, paths)
	if err != nil {
		return page{}, err
	}
	body.Revisions, body.Rates.Completeness = &found, found.Completeness
	return page{name: "rates", title: "Rates", body: body}, nil
}

// revisionURL is the page of the decisions of a path from the first to the last of a revision.
func revisionURL(r *state.Rate) string {
	s := search{Path: []string{r.Path}, Since: r.First.Add(-time.Hour).UTC().Format(time.RFC3339), Until: r.Last.Add(time.Second).UTC().Format(time.RFC3339)}
	return s.with()
}

// rateRows sums up the lines of each name, the most denied first.
func rateRows(r api.Rates, now time.Time, s *search) (rows []rateRow, more bool) {
	lines := map[string][]api.RateLine{}
	for _, l := range r.Lines {
		lines[l.Name] = append(lines[l.Name], l)
	}
	for name, of := range lines {
		row := rateRow{Name: name}
		var allowed int64
		for _, l := range of {
			row.Total += l.Counts.Allowed + l.Counts.Denied + l.Counts.Undefined + l.Counts.Error + l.Counts.Other
			row.Denied, row.Errors, allowed = row.Denied+l.Counts.Denied, row.Errors+l.Counts.Error, allowed+l.Counts.Allowed
		}
		if n := allowed + row.Denied; n > 0 {
			row.Rate, row.Known = float64(row.Denied)/float64(n), true
		}
		if name != "" && name != reader.OtherPaths {
			row.To = s.with(r.By, name)
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b rateRow) int {
		if a.Denied != b.Denied {
			return int(min(1, max(-1, b.Denied-a.Denied)))
		}
		return reader.CompareNames(a.Name, b.Name)
	})
	if len(rows) > maxRates {
		rows, more = rows[:maxRates], true
	}
	for i := range rows {
		one := r
		one.Lines = lines[rows[i].Name]
		rows[i].Spark = histogramOf(one, now, func(time.Time, time.Time) string { return "" })
	}
	return rows, more
}
