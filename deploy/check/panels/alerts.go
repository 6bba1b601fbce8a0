package panels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// poll is how often it is asked whether an alert has changed; rules are evaluated less often.
const poll = time.Second

// AwaitFiring waits until every one of these alerts is firing. Its error names those that are not.
func AwaitFiring(ctx context.Context, p Prometheus, patience time.Duration, names ...string) error {
	rules, err := p.Rules(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if !rules[name] {
			return fmt.Errorf("Prometheus has no alert %s", name)
		}
	}
	return await(ctx, p, patience, "not firing", func(states map[string]string) (left []string) {
		for _, name := range names {
			if states[name] != "firing" {
				left = append(left, strings.TrimSpace(name+" "+states[name]))
			}
		}
		return left
	})
}

// AwaitResolved waits until none of these alerts is pending or firing. Its error names those that are.
func AwaitResolved(ctx context.Context, p Prometheus, patience time.Duration, names ...string) error {
	return await(ctx, p, patience, "not resolved", func(states map[string]string) (left []string) {
		for _, name := range names {
			if states[name] != "" {
				left = append(left, name+" "+states[name])
			}
		}
		return left
	})
}

func await(ctx context.Context, p Prometheus, patience time.Duration, what string, left func(map[string]string) []string) error {
	deadline := time.Now().Add(patience)
	for {
		alerts, err := p.Alerts(ctx)
		if err != nil {
			return err
		}
		states := map[string]string{}
		for _, a := range alerts {
			if states[a.Name()] != "firing" { // one of several series is enough
				states[a.Name()] = a.State
			}
		}
		names := left(states)
		if len(names) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s after %v: %s", what, patience, strings.Join(names, ", "))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(poll):
		}
	}
}

// Fired are the names of all alerts that were firing at some moment of the run, and of those that are now.
func Fired(ctx context.Context, p Prometheus, r Run) (ever, now []string, err error) {
	series, err := p.Range(ctx, `max by (alertname) (ALERTS{alertstate="firing"})`, r.From, r.To, r.Scrape)
	if err != nil {
		return nil, nil, err
	}
	alerts, err := p.Alerts(ctx)
	if err != nil {
		return nil, nil, err
	}
	names, firing := map[string]bool{}, map[string]bool{}
	for _, s := range series {
		names[s.Labels["alertname"]] = true
	}
	for _, a := range alerts {
		if a.State == "firing" {
			firing[a.Name()] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(firing)), nil
}
