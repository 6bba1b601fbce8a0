// Command collector is docket collect: it accepts decision logs that OPA uploads and writes them to Kafka.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"docket/internal/programs/cli"
	"docket/internal/programs/collect"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdout, os.Stderr, signals))
}

func run(args, environ []string, stdout, stderr io.Writer, signals <-chan os.Signal) int {
	return collect.Main(cli.Env{Args: args, Environ: environ, Stdout: stdout, Stderr: stderr, Signals: signals})
}
