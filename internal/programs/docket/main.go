// Package docket is the one program that is shipped. It chooses the command line by the name that it is called by, and opens the
// system that commands work on.
package docket

import (
	"io"
	"os"
	"path/filepath"

	xterm "golang.org/x/term"

	"docket/internal/history/archive/shelf"
	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/programs/cli/tree"
	"docket/internal/programs/collect"
	"docket/internal/programs/consume"
	"docket/internal/programs/democmd"
	"docket/internal/programs/desk"
	"docket/internal/programs/replay"
	"docket/internal/service/config"
)

// Main does what the command line says and returns the exit code. called is the path or name of the program: a link named
// consumer, parking-replayer or collector is that program.
func Main(called string, env cli.Env, stdin io.Reader, at term.Terminal) int {
	for _, p := range programs() {
		if filepath.Base(called) == p.Link {
			return p.Main(env)
		}
	}
	env.Program, env.Judges, env.Agree, env.Shelf = config.Desk, desk.Judges(), desk.Agree, shelf.Open
	o := options()
	o.Stdin, o.Terminal = stdin, at
	return tree.Main(env, o)
}

func options() frame.Options {
	return frame.Options{Open: open, Desk: desk.Main, Programs: programs(), Demo: democmd.Command()}
}

// Pages are the help of all commands.
func Pages() []tree.Page { return tree.Pages(cli.Env{Program: config.Desk}, options()) }

// programs are the command lines that have a name of their own.
func programs() []frame.Program {
	return []frame.Program{
		{Name: "consume", Link: string(config.Consumer), Text: "Store decision logs from Kafka in Postgres", Env: consume.Env, Commands: consume.Commands},
		{Name: "replay", Link: string(config.Replayer), Text: "Replay parked records when they are due", Env: replay.Env, Commands: replay.Commands},
		{Name: "collect", Link: string(config.Collector), Text: "Accept decision logs that OPA uploads, and write them to Kafka", Env: collect.Env, Commands: collect.Commands},
	}
}

// Terminal says which standard streams are a terminal.
func Terminal() term.Terminal {
	t := term.Terminal{In: xterm.IsTerminal(int(os.Stdin.Fd())), Out: xterm.IsTerminal(int(os.Stdout.Fd())), Err: xterm.IsTerminal(int(os.Stderr.Fd()))}
	if t.Out {
		if width, height, err := xterm.GetSize(int(os.Stdout.Fd())); err == nil {
			t.Width, t.Height = width, height
		}
	}
	return t
}
