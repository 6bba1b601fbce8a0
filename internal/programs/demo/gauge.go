package demo

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// gauge reads the metrics of a program over HTTP. It is for the progress line alone: the account does not use it.
type gauge struct {
	url    string
	client *http.Client
}

func newGauge(url string) *gauge {
	return &gauge{url: url, client: &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{MaxIdleConns: 1}}}
}

func (g *gauge) close() { g.client.CloseIdleConnections() }

// reading is what the metrics said.
type reading struct {
	homes   map[string]int // decisions by home
	retries int
	hold    string // reason, empty where it does not hold
}

func (g *gauge) get(ctx context.Context, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		return nil, err
	}
	return g.client.Do(req)
}

func (g *gauge) ready(ctx context.Context) bool {
	resp, err := g.get(ctx, "/readyz")
	if err != nil {
		return false
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
}

func (g *gauge) read(ctx context.Context) (reading, error) {
	resp, err := g.get(ctx, "/metrics")
	if err != nil {
		return reading{}, fmt.Errorf("read metrics: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	return parseMetrics(resp.Body)
}

// parseMetrics picks the few metrics that the progress line shows.
func parseMetrics(r io.Reader) (reading, error) {
	out := reading{homes: make(map[string]int)}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		series, number, ok := strings.Cut(lines.Text(), " ")
		name, label, _ := strings.Cut(series, "{")
		value, err := strconv.ParseFloat(number, 64)
		if !ok || err != nil {
			continue // a comment, or a label with a space in it, which Docket does not have
		}
		_, label, _ = strings.Cut(label, `="`)
		label, _, _ = strings.Cut(label, `"`)
		switch name {
		case "docket_records_total":
			out.homes[label] += int(value)
		case "docket_store_retries_total":
			out.retries = int(value)
		case "docket_hold":
			if value > 0 {
				out.hold = label
			}
		}
	}
	if err := lines.Err(); err != nil {
		return out, fmt.Errorf("read metrics: %w", err)
	}
	return out, nil
}
