package cli

import (
	"context"
	"errors"
	"flag"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/postgres/db"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// Run is the command that runs the program. With once it takes --once.
func Run(text string, once bool) Command {
	c := Command{Name: runCommand, Text: text}
	if once {
		c.Example = "  %s\n  %[1]s --once"
	}
	var o bool
	if once {
		c.Flags = func(f *flag.FlagSet) {
			f.BoolVar(&o, "once", false, "replay what is due now, then exit; run it where no other replayer runs")
		}
	}
	c.More = "SIGTERM, SIGINT or SIGHUP: stops reading, finishes and commits the current batch within\n" +
		"DOCKET_SHUTDOWN_TIMEOUT. A second signal stops at once. Nothing is lost in either case."
	c.Uses = []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL", "DOCKET_SPOOL_DIR", "DOCKET_HTTP_ADDR"}
	c.Exit = [2]string{"stopped by a signal", "failed, or stopped at once by a second signal"}
	if once {
		c.Exit[0] = "stopped by a signal; with --once: what was due is replayed; the log names what was not looked at"
	}
	c.Run = func(env Env, _ []string) int {
		env.Options.Once = o
		return run(env)
	}
	return c
}

func run(env Env) int {
	s, log, code := Begin(env)
	if code != Done {
		return code
	}
	ease := app.KeepMemory(env.Program, s, env.Environ)
	env.Options.Environ = env.Environ
	p, err := app.New(env.Program, s, log, prometheus.NewRegistry(), env.Options)
	if err != nil {
		return Unopened(env, err)
	}
	easing, end := context.WithCancel(context.Background())
	defer end()
	go ease(easing)
	return Serve(env, p)
}

// Begin loads the settings of a program that is to run and makes its log. Where anything is wrong it says so, and code is not
// [Done].
func Begin(env Env) (s config.Settings, log zerolog.Logger, code int) {
	s, warnings, ok := settings(env)
	if !ok || !InShard(env, s) {
		return s, log, Misuse
	}
	log, err := telemetry.Logger(env.Stderr, s.LogLevel, s.LogFormat == "console")
	if err != nil {
		return s, log, misuse(env, err.Error(), runCommand)
	}
	for _, w := range warnings {
		log.Warn().Str(telemetry.KeyProgram, string(env.Program)).Str(telemetry.KeyVariable, w.Variable).Str(telemetry.KeyHint, w.Text).Msg("unknown setting ignored")
	}
	return s, log, Done
}

// Serve runs a program until it ends or a signal stops it, closes it and returns the exit code. A second signal ends at once.
// A service manager that listens is told how the program is.
func Serve(env Env, p app.Served) int {
	run := app.Notified(env.Environ, p, func(err error) { say(env.Stderr, "%s: %v\n", env.Called(), err) })
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	return await(env, stop, ended, p.Close)
}

// Unopened says why a program did not start. Settings that only the driver can judge are wrong settings all the same.
func Unopened(env Env, err error) int {
	var url *db.ConfigError
	if errors.As(err, &url) {
		say(env.Stderr, "%v\n", config.Complaint{Variable: "DOCKET_DATABASE_URL", Text: url.Reason})
		return Misuse
	}
	if wrong := (config.Complaint{}); errors.As(err, &wrong) {
		say(env.Stderr, "%v\n", wrong)
		return Misuse
	}
	say(env.Stderr, "%s: %v\n", env.Called(), err)
	return Failed
}

// closing is how long giving everything up may take after a program came to rest.
const closing = 15 * time.Second

// await waits for the program to end and closes it. The first signal stops it, the second one stops waiting. A hang-up stops it, and
// counts as neither: a shell and the kernel send one each, and a service manager may send one beside SIGTERM.
func await(env Env, stop func(), ended <-chan error, release func()) int {
	result := Done
	var overdue <-chan time.Time
	var released chan struct{}
	for stopping := false; ; {
		select {
		case s := <-env.Signals:
			if s == syscall.SIGHUP {
				stop()
				continue
			}
			if stopping {
				return atOnce(env)
			}
			stopping = true
			stop()
		case err := <-ended:
			if err != nil {
				result = Failed
			}
			if errors.Is(err, app.ErrWedged) || errors.Is(err, app.ErrOverdue) {
				return result // to close a part that is stuck takes for ever
			}
			ended, overdue, released = nil, time.After(closing), make(chan struct{})
			go func() { defer close(released); release() }()
		case <-released:
			return result
		case <-overdue:
			say(env.Stderr, "%s: closing took longer than %v\n", env.Called(), closing)
			return Failed
		}
	}
}

func atOnce(env Env) int {
	left := "unfinished records are not committed and will be read again"
	if env.Program == config.Collector {
		left = "unfinished uploads got no answer and will be sent again"
	}
	say(env.Stderr, "%s: second signal: stopped at once; %s\n", env.Called(), left)
	return Failed
}

// UntilSignal is a context for a command that ends with the first signal. After the function that it returns, signals are left to
// others.
func UntilSignal(env Env) (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		select {
		case <-env.Signals:
			cancel()
		case <-ended:
		}
	}()
	return ctx, func() { cancel(); close(ended); <-left }
}
