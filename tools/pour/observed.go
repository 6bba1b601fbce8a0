package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"docket/deploy/check/panels"
)

// dashboard is what Grafana shows.
const dashboard = "deploy/grafana/docket.json"

// programs is how many are scraped: consumer, replayer, desk and collector.
const programs = 4

const (
	firing    = 4 * time.Minute // an alert has a `for` of its own, which begins when the programs hold
	resolving = 3 * time.Minute
)

// observed is what Prometheus has to have seen of a run.
type observed struct {
	project
	began time.Time
	// When the last record had its home. Queries for one moment use this one: later nothing moves.
	settled time.Time
	alerts  []string // that the outage has to set off
	say     func(format string, args ...any)
}

// fired waits, while Postgres is away, until the alerts are firing.
func (o *observed) fired(ctx context.Context) error {
	if err := panels.AwaitFiring(ctx, o.prometheus, firing, o.alerts...); err != nil {
		return fmt.Errorf("alerts of the outage: %w", err)
	}
	o.say("Prometheus: firing: %s", strings.Join(o.alerts, ", "))
	return nil
}

// check looks back at the whole run.
func (o *observed) check(ctx context.Context) error {
	if err := panels.AwaitResolved(ctx, o.prometheus, resolving, o.alerts...); err != nil {
		return fmt.Errorf("alerts of the outage: %w", err)
	}
	o.say("Prometheus: resolved: %s", strings.Join(o.alerts, ", "))
	scrape, err := o.prometheus.ScrapeInterval(ctx)
	if err != nil {
		return err
	}
	run := panels.Run{From: o.began, To: time.Now(), Now: o.settled, Scrape: scrape}
	ever, now, err := panels.Fired(ctx, o.prometheus, run)
	if err != nil {
		return err
	}
	o.say("Prometheus: fired in the run: %s; firing now: %s", names(ever), names(now))
	return errors.Join(o.never(ctx, run), o.asked(ctx, run))
}

// never is what must not have been so at any scrape.
func (o *observed) never(ctx context.Context, run panels.Run) error {
	var wrong []error
	for _, always := range []struct {
		expr string
		want float64
	}{
		{"docket_unaccounted_records", 0},
		{"docket_spool_dropped_records_total", 0},
		{`count(up{job=~"docket-.+"} == 1)`, programs},
	} {
		if always.want == programs {
			run.From = run.From.Add(2 * run.Scrape) // each has been scraped once by then
		}
		err := panels.Always(ctx, o.prometheus, always.expr, always.want, run)
		if err == nil {
			o.say("Prometheus: %s was %v at every moment of the run", always.expr, always.want)
		}
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

func (o *observed) asked(ctx context.Context, run panels.Run) error {
	d, err := panels.Read(dashboard)
	if err != nil {
		return err
	}
	printed, err := exec.CommandContext(ctx, "go", "run", "./deploy/check/dashboard", "-queries").Output()
	if err != nil {
		return fmt.Errorf("ask the dashboard's program what may be quiet: %w", err)
	}
	if err := d.MarkQuiet(string(printed)); err != nil {
		return err
	}
	result, err := panels.Check(ctx, o.prometheus, d, run)
	o.say("Prometheus: %v", result)
	return err
}

func names(of []string) string {
	if len(of) == 0 {
		return "none"
	}
	return strings.Join(of, ", ")
}
