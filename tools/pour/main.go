// Command pour pours decision logs into the Compose project, from outside, and
// accounts for every one of them.
//
//	go run ./tools/pour           the embedded sample, with fresh ids, and a few bad lines
//	go run ./tools/pour outage    load, Postgres frozen and stopped meanwhile; for build/e2e
//	go run ./tools/pour panels    every query of the dashboard, asked over the last quarter of an hour
//
// It finds the project by the variables that docker-compose.yml reads. It ends
// with 1 where the account does not add up.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"docket/deploy/check/panels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "pour: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	p, began := composeProject(), time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(out, "%6.1f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	if len(args) > 0 && args[0] == "outage" {
		flags := flag.NewFlagSet("pour outage", flag.ExitOnError)
		o := outage{project: p, say: say, out: out}
		flags.DurationVar(&o.frozen, "frozen", time.Minute, "how long Postgres is frozen")
		flags.DurationVar(&o.away, "away", 2*time.Minute, "how long Postgres is stopped")
		flags.DurationVar(&o.around, "around", 15*time.Second, "how long records are poured before, between and after the outages")
		flags.IntVar(&o.rate, "rate", 150, "Kafka records a second")
		alerts := flags.String("alerts", "", "names of alerts, by comma, that Prometheus has to raise meanwhile and to resolve afterwards; it has to have the rest of the run, too")
		_ = flags.Parse(args[1:]) // ExitOnError
		if *alerts != "" {
			o.observed = &observed{project: p, began: began, alerts: strings.Split(*alerts, ","), say: say}
		}
		return o.run(ctx)
	}
	if len(args) > 0 && args[0] == "panels" {
		flags := flag.NewFlagSet("pour panels", flag.ExitOnError)
		since := flags.Duration("since", 15*time.Minute, "how far back")
		_ = flags.Parse(args[1:]) // ExitOnError
		scrape, err := p.prometheus.ScrapeInterval(ctx)
		if err != nil {
			return err
		}
		o := observed{project: p, say: say}
		return o.asked(ctx, panels.Run{From: began.Add(-*since), To: began, Scrape: scrape})
	}
	flags := flag.NewFlagSet("pour", flag.ExitOnError)
	copies := flags.Int("copies", 3, "how many times the sample is poured")
	_ = flags.Parse(args) // ExitOnError
	return pourSample(ctx, p, *copies, say, out)
}
