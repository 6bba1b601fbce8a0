package console

import (
	"net/url"
	"slices"

	"docket/internal/desk/api"
	"docket/internal/history/reader"
)

// facetsPart are the values of columns, each with its count and the search that has it.
type facetsPart struct {
	Columns []facetColumn
	Sampled int  // decisions that were looked at; the counts are of these, unless a column was counted
	Whole   bool // these are all that fit
	Known   bool // there was time to look
}

// facetColumn has the most frequent values of a column.
type facetColumn struct {
	Name, Field string
	Values      []facetValue
	More        int  // values that are not shown
	Counted     bool // of all decisions of the chart, not of those that were looked at
}

type facetValue struct {
	Text  string // empty: decisions without a value
	Count int64
	To    string // the search with the value, or without it where it is asked for; empty: it cannot be asked for
	Is    bool   // the search asks for it
}

// maxFacets limits the values of a column.
const maxFacets = 8

// facetsOf makes facets of a look at the first decisions, and of counts of all of them. Either may be nil.
func facetsOf(s *search, sampled *api.Facets, counted *api.Rates) facetsPart {
	if sampled == nil {
		sampled = &api.Facets{}
		if counted == nil {
			return facetsPart{}
		}
	}
	part := facetsPart{Sampled: sampled.Decisions, Whole: sampled.Whole, Known: true}
	for _, c := range []struct {
		name, field string
		of          []api.FacetValue
	}{{"Verdict", "verdict", sampled.Verdict}, {"Path", "path", sampled.Path}, {"Service", "service", sampled.Service}, {"Requested by", "requested_by", sampled.RequestedBy}} {
		column := facetColumn{Name: c.name, Field: c.field}
		if counted != nil && !part.Whole {
			if of := countedValues(c.field, counted); of != nil {
				c.of, column.Counted = of, true
			}
		}
		column.fill(s, c.of)
		part.Columns = append(part.Columns, column)
	}
	return part
}

func (f *facetColumn) fill(s *search, of []api.FacetValue) {
	for _, v := range of {
		if len(f.Values) == maxFacets {
			f.More++
			continue
		}
		one := facetValue{Text: v.Name, Count: v.Count}
		if v.Name != "" && v.Name != reader.OtherPaths {
			one.To, one.Is = s.turned(f.Field, v.Name)
		}
		f.Values = append(f.Values, one)
	}
}

// countedValues are the values of a column in counts by path, the most frequent first; nil: the counts do not have it.
func countedValues(field string, r *api.Rates) (all []api.FacetValue) {
	sums := map[string]int64{}
	for _, l := range r.Lines {
		n := l.Counts
		switch field {
		case "verdict":
			for v, n := range map[reader.Verdict]int64{reader.Allowed: n.Allowed, reader.Denied: n.Denied, reader.Undefined: n.Undefined, reader.Error: n.Error, reader.Other: n.Other} {
				if n > 0 {
					sums[string(v)] += n
				}
			}
		case "path":
			sums[l.Name] += n.Allowed + n.Denied + n.Undefined + n.Error + n.Other
		default:
			return nil
		}
	}
	for name, n := range sums {
		all = append(all, api.FacetValue{Name: name, Count: n})
	}
	slices.SortFunc(all, func(a, b api.FacetValue) int {
		if a.Count != b.Count {
			return int(min(1, max(-1, b.Count-a.Count)))
		}
		return reader.CompareNames(a.Name, b.Name)
	})
	return all
}

// ranges are ranges of time that keep the other filters.
func (s *search) ranges() (all []choice) {
	for _, r := range [][2]string{{"15 min", "15m"}, {"1 h", "1h"}, {"24 h", "24h"}, {"7 d", "7d"}, {"30 d", "30d"}, {"any time", ""}} {
		all = append(all, choice{r[0], s.first("since", r[1], "until", ""), s.Since == r[1] && s.Until == ""})
	}
	return all
}

// ready are filters that many ask for.
func ready(s *search) (all []choice) {
	for _, f := range []struct {
		text string
		of   search
	}{
		{"Denied today", search{Verdict: []string{"denied"}, Since: "today"}}, {"Denied yesterday", search{Verdict: []string{"denied"}, Since: "yesterday", Until: "today"}},
		{"Errors, 24 h", search{Verdict: []string{"error"}, Since: "24h"}}, {"Undefined, 24 h", search{Verdict: []string{"undefined"}, Since: "24h"}},
		{"Neither allowed nor denied, 24 h", search{Verdict: []string{"undefined", "error", "other"}, Since: "24h"}},
	} {
		to := f.of.first()
		all = append(all, choice{f.text, to, to == s.first()})
	}
	return all
}

// ratesURL is the page of rates of the same range, paths and services.
func (s *search) ratesURL() string {
	q := url.Values{}
	for name, value := range map[string]string{"since": s.Since, "until": s.Until} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if len(s.Path) == 1 {
		q.Set("path", s.Path[0])
	}
	if len(s.Service) == 1 {
		q.Set("service", s.Service[0])
	}
	if len(q) == 0 {
		return "/rates"
	}
	return "/rates?" + q.Encode()
}
