package api

import (
	"context"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
)

type statsInput struct {
	RangeQuery
	By   string `query:"by" enum:"path,service" default:"path" doc:"What lines are of"`
	Step string `query:"step" maxLength:"20" doc:"How much time is counted together: 5m, 1h, 1d; without it one that suits the range, or 1h if days left the table"`
}

// VerdictCounts counts decisions by verdict.
type VerdictCounts struct {
	Allowed   int64 `json:"allowed"`
	Denied    int64 `json:"denied"`
	Undefined int64 `json:"undefined"`
	Error     int64 `json:"error"`
	Other     int64 `json:"other"`
}

// RateLine has the counts of one path or service in one step.
type RateLine struct {
	Name     string        `json:"name" doc:"Empty: of decisions that have none. (other): of paths or services that have no line of their own; it comes last in its step, and with path or service it may contain decisions that match"`
	From     time.Time     `json:"from"`
	Counts   VerdictCounts `json:"counts"`
	DenyRate *float64      `json:"deny_rate,omitempty" doc:"Denied ones of those that were allowed or denied, 0 to 1; without it there was none"`
}

// Rates are counts over time. A step without decisions has no line.
type Rates struct {
	By          string     `json:"by" enum:"path,service"`
	Since       time.Time  `json:"since"`
	Until       *time.Time `json:"until,omitempty" doc:"Without it: now"`
	StepSeconds float64    `json:"step_seconds"`
	Lines       []RateLine `json:"lines" nullable:"false"`
	reader.Completeness
	Partly
}

type statsOutput struct{ Body Rates }

// defaultRange is the time range without a since.
const defaultRange = 24 * time.Hour

func (s *api) rates(ctx context.Context, _ caller, in *statsInput) (*statsOutput, error) {
	now := s.Now()
	since, until, err := in.between(now)
	if err != nil {
		return nil, err
	}
	if since.IsZero() {
		end := until
		if end.IsZero() {
			end = now
		}
		since = end.Add(-defaultRange)
	}
	q, err := reader.NewStatsQuery(since, until, in.Step, now)
	if err != nil {
		return nil, faulty("query.step", err.Error())
	}
	q.Paths, q.Services, q.ByPath = in.Path, in.Service, in.By == "path"
	counted, err := reader.CountStats(ctx, s.Decisions, q, in.Step != "", func(q reader.StatsQuery) complete.Begun {
		return s.Complete.Begin(ctx, complete.Range{Since: q.Since, Until: q.Until, Paths: q.Paths, Services: q.Services})
	})
	if err != nil {
		return nil, ofReader(err)
	}
	lines, q := counted.Lines, counted.Query
	out := Rates{By: in.By, Since: q.Since, Until: moment(q.Until), StepSeconds: q.Step.Seconds(), Lines: make([]RateLine, 0, len(lines))}
	for _, l := range lines {
		line := RateLine{Name: l.Name, From: l.From.UTC(), Counts: VerdictCounts{l.Counts[reader.Allowed], l.Counts[reader.Denied],
			l.Counts[reader.Undefined], l.Counts[reader.Error], l.Counts[reader.Other]}}
		if r, known := reader.DenyRate(l.Counts); known {
			line.DenyRate = &r
		}
		out.Lines = append(out.Lines, line)
	}
	out.Completeness = counted.Begun.End(complete.Facts{Found: len(lines) > 0})
	return &statsOutput{out}, nil
}
