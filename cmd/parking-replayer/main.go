// Command parking-replayer is docket replay: it stores parked decision logs again.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"docket/internal/programs/cli"
	"docket/internal/programs/replay"
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
	return replay.Main(cli.Env{Args: args, Environ: environ, Stdout: stdout, Stderr: stderr, Signals: signals})
}
