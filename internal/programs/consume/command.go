// Package consume is the command line of the consumer: `docket consume`, and `consumer` where it is called by that name.
//
// It does not know how a batch gets its homes: package pipeline does.
package consume

import (
	"docket/internal/programs/cli"
	"docket/internal/programs/democmd"
	"docket/internal/service/config"
)

// Main does what the command line says and returns the exit code.
func Main(env cli.Env) int { return cli.Main(Env(env), Commands()) }

// Env is the environment of the program, made from that of the process.
func Env(env cli.Env) cli.Env {
	return cli.Env{
		Program: config.Consumer, Name: env.Name, Args: env.Args, Environ: env.Environ, Stdout: env.Stdout, Stderr: env.Stderr, Signals: env.Signals,
		Options: env.Options,
	}
}

// Commands are the commands of the consumer.
func Commands() []cli.Command {
	return []cli.Command{
		cli.Run("Store decision logs from Kafka in Postgres (the default command).", false), democmd.Command(),
		cli.Check(), cli.Migrate(), cli.Verify(), cli.WhereIs(), cli.Classify(), cli.Health(), cli.Version(),
	}
}
