// Package replay is the command line of the parking replayer: `docket replay`, and `parking-replayer` where it is called by
// that name.
//
// It does not know when a parked record is due: package consumer/replay does.
package replay

import (
	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

// Main does what the command line says and returns the exit code.
func Main(env cli.Env) int { return cli.Main(Env(env), Commands()) }

// Env is the environment of the program, made from that of the process.
func Env(env cli.Env) cli.Env {
	return cli.Env{
		Program: config.Replayer, Name: env.Name, Args: env.Args, Environ: env.Environ, Stdout: env.Stdout, Stderr: env.Stderr, Signals: env.Signals,
		Options: env.Options,
	}
}

// Commands are the commands of the replayer.
func Commands() []cli.Command {
	return []cli.Command{
		cli.Run("Replay parked records when they are due (the default command).", true),
		cli.Health(), cli.Version(),
	}
}
