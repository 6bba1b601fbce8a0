// Command parking-replayer stores parked decision logs again.
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
		Program: config.Replayer, Args: args, Environ: environ, Stdout: stdout, Stderr: stderr, Signals: signals,
	}, commands())
}

func commands() []cli.Command {
	return []cli.Command{
		cli.Run("Replay parked records when they are due (the default command).", true),
		cli.Health(), cli.Version(),
	}
}
