// Command docket is Docket, all of it: docket consume, replay, collect and desk run its programs, the other commands search
// decisions and manage dead letters. Called by the name consumer, parking-replayer or collector, it is that program.
package main

import (
	"os"
	"os/signal"
	"syscall"

	"docket/internal/programs/cli"
	"docket/internal/programs/docket"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signal.Notify(signals, syscall.SIGHUP)
	}
	env := cli.Env{Args: os.Args[1:], Environ: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr, Signals: signals}
	os.Exit(docket.Main(os.Args[0], env, os.Stdin, docket.Terminal()))
}
