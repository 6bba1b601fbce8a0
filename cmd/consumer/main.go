// Command consumer carries OPA decision logs from Kafka into Postgres.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"docket/internal/cli"
	"docket/internal/config"
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
		cli.Run("Carry decision logs from Kafka into Postgres; this is what happens without a command.", false),
		{
			Name: "demo", Args: "[flags]", Text: "Run Docket with an embedded Kafka and Postgres, through an outage; needs no set-up.", Raw: true,
			Run: demoUntilSignal,
		},
		cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs(), cli.Classify(), cli.Health(), cli.Version(),
	}
}
