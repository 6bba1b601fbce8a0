package collectorapp

import (
	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/app"
	"docket/internal/cli"
)

// Run is the command that runs the collector.
func Run() cli.Command {
	return cli.Command{
		Name: "run", Text: "Take decision logs from OPA into Kafka; this is what happens without a command.",
		More: "SIGTERM or SIGINT: /readyz turns red, further uploads are answered 503, those under way get their answers within\n" +
			"DOCKET_SHUTDOWN_TIMEOUT, exit 0. A second signal ends at once, exit 1; nothing is lost by it, as OPA sends again what\n" +
			"got no answer.",
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
			return cli.Serve(env, p.Run, p.Close)
		},
	}
}
