//go:build !nodemo

package democmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/audit/conservation"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
	"docket/internal/programs/demo"
	"docket/internal/programs/desk"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/sample"
)

// The defaults of the demo: on two busy cores all of it takes less than a minute.
const (
	demoRecords    = 50_000
	demoSpread     = 16 * time.Second
	demoOutage     = 8 * time.Second
	demoLedgerWait = 30 * time.Second
)

const usage = `Show Docket at work, without Docker, servers or setup.

The demo starts a stand-in for Kafka inside the process, a real Postgres (downloaded once, about
15 MB), the consumer, the replayer and the desk. It produces real OPA decision logs, bad ones among
them, and stops Postgres in the middle. It ends with the account: how many decisions were produced,
and where each of them is now. Then it prints docket commands that query the data. It takes about
half a minute.

It ignores all DOCKET_* variables but the two below, and never connects to your servers. At the end
it removes everything but the downloaded Postgres.

Usage:
  %[1]s demo [flags]

Examples:
  %[1]s demo
  %[1]s demo --records 1000 --keep=false

Flags:
  --records N   produce N Kafka records, at least %[2]d (default %[3]d)
  --keep        stay up until Ctrl-C (default on a terminal; --keep=false ends at once)

Environment:
  %[4]s
      bin directory of an installed Postgres; nothing is downloaded then
  %[5]s
      Maven repository to download Postgres from (default Maven Central)

Exit codes:
  0  each decision has a home and the ledger has each dead letter; or stopped by a signal
  1  a decision is missing or stored twice, the ledger is incomplete, or the demo failed
  2  wrong use
`

// run runs the demo until it ends. The first signal stops it, a second one ends the wait. A second signal
// within one second does not count, as some senders signal both a process and its group.
func run(env cli.Env, args []string) int {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- show(ctx, env, args) }()
	var stopping time.Time
	for {
		select {
		case <-env.Signals:
			if stopping.IsZero() {
				stopping = time.Now()
				stop()
			} else if time.Since(stopping) > time.Second {
				return cli.Failed
			}
		case status := <-ended:
			return status
		}
	}
}

// show runs the demo until it is done or ctx ends, and returns the exit code.
func show(ctx context.Context, env cli.Env, args []string) int {
	stdout, stderr := term.Under(env.Stdout), env.Stderr
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	records := flags.Int("records", demoRecords, "")
	keep := flags.Bool("keep", isTerminal(stdout), "")
	// Hidden, for tests: a check that cannot fail proves nothing.
	plantLoss := flags.Bool("plant-loss", false, "")
	noDesk := flags.Bool("no-desk", false, "")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(stdout, usage, env.Called(), conservation.MinRecords, demoRecords, demo.EnvPostgresBin, demo.EnvPostgresRepository)
		return cli.Done
	case err != nil:
		return misuse(env, err.Error())
	case flags.NArg() > 0:
		return misuse(env, fmt.Sprintf("unexpected argument %+.40q", flags.Arg(0)))
	case *records < conservation.MinRecords:
		return misuse(env, fmt.Sprintf("--records must be at least %d", conservation.MinRecords))
	}
	dir, cache, inner := demo.Inner()
	if !inner {
		status, err := demo.Supervise(ctx, append([]string{"demo"}, args...), stdout, stderr)
		if err != nil {
			term.Fprintf(stderr, "demo: %v\n", err)
		}
		return status
	}
	wait := demoLedgerWait
	if *noDesk {
		wait = time.Second // nothing will come
	}
	err := demo.Run(ctx, demo.Config{
		Records: *records, Spread: demoSpread, Outage: demoOutage, Keep: *keep, LedgerWait: wait,
		PlantLoss: *plantLoss, NoDesk: *noDesk, Seed: 1,
		Dir: dir, Cache: cache, Docket: demo.DocketCommand(), Samples: sample.DecisionLogs(), Migrate: migrate, Launch: launch,
		Out: stdout, Live: isTerminal(stdout),
	})
	if ctx.Err() != nil && !errors.Is(err, demo.ErrUnbalanced) && !errors.Is(err, demo.ErrLedger) {
		return cli.Done // stopped
	}
	if err != nil {
		term.Fprintf(stderr, "demo: %v\n", err)
		return cli.Failed
	}
	return cli.Done
}

func misuse(env cli.Env, complaint string) int {
	term.Fprintf(env.Stderr, "%[1]s: demo: %[2]s\nSee %[1]s demo --help.\n", env.Called(), complaint)
	return cli.Misuse
}

// isTerminal says whether w is a terminal, so that a line can be written over.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

func migrate(ctx context.Context, databaseURL string) (err error) {
	db, err := store.Open(db.Config{URL: databaseURL}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer db.Close()
	_, err = schema.New(db.DB).Migrate(ctx)
	return err
}

// launch runs one of the programs as its own command does.
func launch(ctx context.Context, p demo.Program) error {
	name := config.Program(p.Name)
	settings, _, err := config.Load(name, p.Environ)
	if err != nil {
		return err
	}
	log, err := telemetry.Logger(p.Log, settings.LogLevel, settings.LogFormat == "console")
	if err != nil {
		return err
	}
	var program interface {
		Run(ctx context.Context) error
		Close()
	}
	if name == config.Desk {
		program, err = desk.New(settings, log, prometheus.NewRegistry(), desk.Options{})
	} else {
		program, err = app.New(name, settings, log, prometheus.NewRegistry(), app.Options{})
	}
	if err != nil {
		return err
	}
	defer program.Close()
	return program.Run(ctx)
}
