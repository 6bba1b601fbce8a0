// Command docket searches and explains stored decisions and manages dead letters; docket desk is the daemon that keeps their
// ledger.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"docket/internal/history/archive/shelf"
	"docket/internal/programs/cli"
	"docket/internal/programs/desk"
	"docket/internal/programs/deskcli"
	"docket/internal/service/config"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	os.Exit(run(os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr, signals, terminal()))
}

func run(args, environ []string, stdin io.Reader, stdout, stderr io.Writer, signals <-chan os.Signal, at deskcli.Terminal) int {
	return deskcli.Main(cli.Env{
		Program: config.Desk, Args: args, Environ: environ, Stdout: stdout, Stderr: stderr, Signals: signals, Judges: desk.Judges(), Shelf: shelf.Open,
	}, deskcli.Options{Stdin: stdin, Terminal: at, Open: open, Desk: desk.Main})
}

// terminal says what of the standard streams a person sits at.
func terminal() deskcli.Terminal {
	t := deskcli.Terminal{In: term.IsTerminal(int(os.Stdin.Fd())), Out: term.IsTerminal(int(os.Stdout.Fd())), Err: term.IsTerminal(int(os.Stderr.Fd()))}
	if t.Out {
		if width, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			t.Width = width
		}
	}
	return t
}
