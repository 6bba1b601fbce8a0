package panels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Prometheus is a server, by its HTTP address.
type Prometheus struct {
	URL string // such as http://127.0.0.1:9090
}

// Series is what a query found under one set of labels.
type Series struct {
	Labels  map[string]string
	Samples []Sample
}

// Sample is a value at a moment.
type Sample struct {
	At    time.Time
	Value float64
}

// Alert is one that is pending or firing now.
type Alert struct {
	Labels map[string]string
	State  string // pending or firing
	Since  time.Time
}

// Name of the rule.
func (a Alert) Name() string { return a.Labels["alertname"] }

// At asks for one moment.
func (p Prometheus) At(ctx context.Context, expr string, at time.Time) ([]Series, error) {
	return p.query(ctx, "query", url.Values{"query": {expr}, "time": {stamp(at)}})
}

// Range asks for a range. The server answers at most 11,000 moments.
func (p Prometheus) Range(ctx context.Context, expr string, from, to time.Time, step time.Duration) ([]Series, error) {
	return p.query(ctx, "query_range", url.Values{
		"query": {expr}, "start": {stamp(from)}, "end": {stamp(to)}, "step": {strconv.FormatFloat(step.Seconds(), 'f', -1, 64)},
	})
}

// Alerts are those that are pending or firing now.
func (p Prometheus) Alerts(ctx context.Context) ([]Alert, error) {
	var data struct {
		Alerts []struct {
			Labels   map[string]string
			State    string
			ActiveAt time.Time
		}
	}
	if err := p.get(ctx, "alerts", nil, &data); err != nil {
		return nil, err
	}
	alerts := make([]Alert, len(data.Alerts))
	for i, a := range data.Alerts {
		alerts[i] = Alert{Labels: a.Labels, State: a.State, Since: a.ActiveAt}
	}
	return alerts, nil
}

// Rules are the names of the alerts that the server evaluates.
func (p Prometheus) Rules(ctx context.Context) (map[string]bool, error) {
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Type string }
		}
	}
	if err := p.get(ctx, "rules", nil, &data); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			if r.Type == "alerting" {
				names[r.Name] = true
			}
		}
	}
	return names, nil
}

// ScrapeInterval is the longest of those of Docket's targets.
func (p Prometheus) ScrapeInterval(ctx context.Context) (time.Duration, error) {
	var data struct {
		ActiveTargets []struct {
			Labels         map[string]string
			ScrapeInterval string
		}
	}
	if err := p.get(ctx, "targets", url.Values{"state": {"active"}}, &data); err != nil {
		return 0, err
	}
	var longest time.Duration
	for _, t := range data.ActiveTargets {
		if !strings.HasPrefix(t.Labels["job"], "docket-") {
			continue
		}
		every, err := time.ParseDuration(t.ScrapeInterval) // days and weeks, which it could not read, are none
		if err != nil {
			return 0, fmt.Errorf("scrape interval of %s: %w", t.Labels["job"], err)
		}
		longest = max(longest, every)
	}
	if longest == 0 {
		return 0, errors.New("Prometheus scrapes no docket-… target")
	}
	return longest, nil
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

func (p Prometheus) query(ctx context.Context, path string, form url.Values) ([]Series, error) {
	var data struct {
		ResultType string
		Result     json.RawMessage
	}
	if err := p.get(ctx, path, form, &data); err != nil {
		return nil, err
	}
	if data.ResultType == "scalar" || data.ResultType == "string" {
		var one point
		if err := json.Unmarshal(data.Result, &one); err != nil {
			return nil, fmt.Errorf("read a scalar: %w", err)
		}
		return []Series{{Samples: []Sample{Sample(one)}}}, nil
	}
	var found []struct {
		Metric map[string]string
		Value  *point
		Values []point
	}
	if err := json.Unmarshal(data.Result, &found); err != nil {
		return nil, fmt.Errorf("read the series: %w", err)
	}
	series := make([]Series, len(found))
	for i, f := range found {
		series[i].Labels = f.Metric
		if f.Value != nil {
			f.Values = append(f.Values, *f.Value)
		}
		for _, v := range f.Values {
			series[i].Samples = append(series[i].Samples, Sample(v))
		}
	}
	return series, nil
}

// point is Prometheus's [seconds, "value"].
type point Sample

// UnmarshalJSON reads it.
func (p *point) UnmarshalJSON(b []byte) error {
	var at float64
	var value string
	if err := json.Unmarshal(b, &[]any{&at, &value}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(value, 64)
	whole, part := math.Modf(at)
	p.At, p.Value = time.Unix(int64(whole), int64(part*1e9)), v
	return err
}

func (p Prometheus) get(ctx context.Context, path string, form url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(p.URL, "/")+"/api/v1/"+path+"?"+form.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ask Prometheus: %w", err)
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("ask Prometheus: HTTP %d, and no JSON: %w", resp.StatusCode, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("Prometheus refuses: %s", answer.Error)
	}
	return nil
}
