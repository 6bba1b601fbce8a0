package collect

import (
	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/programs/cli"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Main does what the command line says and returns the exit code.
func Main(env cli.Env) int { return cli.Main(Env(env), Commands()) }

// Env is the environment of the program, made from that of the process.
func Env(env cli.Env) cli.Env {
	return cli.Env{
		Program: config.Collector, Name: env.Name, Args: env.Args, Environ: env.Environ, Stdout: env.Stdout, Stderr: env.Stderr, Signals: env.Signals,
		Options: env.Options, Judges: Judges(), Agree: Agree, Unread: unread,
	}
}

// Commands are the commands of the collector.
func Commands() []cli.Command {
	return []cli.Command{Run(), cli.CheckBrokers(), cli.Health(), cli.Version()}
}

// Run is the command that runs the collector.
func Run() cli.Command {
	return cli.Command{
		Name: "run", Text: "Accept uploads from OPA and write them to Kafka (the default command).",
		More: "SIGTERM, SIGINT or SIGHUP: /readyz and new uploads are answered with 503, uploads in progress are finished within\n" +
			"DOCKET_SHUTDOWN_TIMEOUT. A second signal stops at once. Nothing is lost: OPA sends uploads without an\n" +
			"answer again.",
		Uses: []string{"DOCKET_KAFKA_BROKERS", "DOCKET_COLLECTOR_ADDR", "DOCKET_HTTP_ADDR"},
		Exit: [2]string{"stopped by a signal", "failed, or stopped at once by a second signal"},
		Run: func(env cli.Env, _ []string) int {
			s, log, code := cli.Begin(env)
			if code != cli.Done {
				return code
			}
			app.KeepMemory(env.Program, s, env.Environ)
			p, err := New(s, log, prometheus.NewRegistry(), Options{Environ: env.Environ})
			if err != nil {
				return cli.Unopened(env, err)
			}
			return cli.Serve(env, p)
		},
	}
}
