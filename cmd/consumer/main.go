// Command consumer stores OPA decision logs from Kafka in Postgres.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr, signals))
}

func run(args, environ []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	return cli.Main(cli.Env{
		Program: config.Consumer, Args: args, Environ: environ, Stdout: stdout, Stderr: stderr, Signals: signals,
	}, commands())
}

func commands() []cli.Command {
	return []cli.Command{
		cli.Run("Store decision logs from Kafka in Postgres (the default command).", false),
		{
			Name: "demo", Text: "Show Docket at work: no servers or setup needed.", Raw: true,
			Run: demoUntilSignal,
		},
		cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs(), cli.Classify(), cli.Health(), cli.Version(),
	}
}
