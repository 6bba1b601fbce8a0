package cli

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/audit/check"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/postgres/schema"
	"docket/internal/programs/cli/term"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

// Check is the command that checks everything before going live.
func Check() Command {
	c := checking("Check brokers, topics, permissions, table and spool before going live.", "replication 1, short retention, a temporary disk",
		whole, func(ctx context.Context, env Env, s config.Settings) []check.Result {
			return check.All(ctx, s, env.Shelf)
		})
	c.More += "\n\nRun it on the host of the consumer, with the settings of the consumer: it checks its spool directory, too.\n" +
		"Where DOCKET_ARCHIVE_TO is set, docket check lists the archives, for 10 seconds at most."
	c.Uses = []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL", "DOCKET_SPOOL_DIR"}
	return c
}

// CheckBrokers is Check for a program that has neither table nor spool.
func CheckBrokers() Command {
	return checking("Check brokers, topics and permissions before going live.", "replication 1, short retention", settings,
		func(ctx context.Context, _ Env, s config.Settings) []check.Result { return check.Uploads(ctx, s) })
}

func checking(text, warnings string, load func(Env) (config.Settings, []config.Complaint, bool), look func(context.Context, Env, config.Settings) []check.Result) Command {
	var asJSON bool
	return Command{
		Name: "check", Text: text,
		Example: "  %s check\n  %[1]s check --json | jq -r '.checks[] | select(.level != \"ok\") | .what + \": \" + .hint'",
		Flags:   func(f *flag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") },
		More: "Prints one line per check: ok, fail with what to do, or warn (works, but risky:\n" +
			warnings + "). Nothing is created or changed. It takes 1 minute at most.",
		Uses: []string{"DOCKET_KAFKA_BROKERS"},
		Exit: [2]string{"each check is ok or warn", "at least one check is fail"},
		Run: func(env Env, _ []string) int {
			ctx, end := UntilSignal(env)
			defer end()
			if env.AskCheck != nil {
				return checkedByDesk(ctx, env, asJSON)
			}
			s, warnings, ok := load(env)
			if !ok {
				return Misuse
			}
			warn(env, warnings)
			all := look(ctx, env, s)
			if ctx.Err() != nil {
				return Failed
			}
			return show(env.Stdout, all, asJSON)
		},
	}
}

// checkedByDesk prints what a desk found. Its answer is that of the command there, without the spools.
func checkedByDesk(ctx context.Context, env Env, asJSON bool) int {
	all, err := env.AskCheck(ctx)
	if err != nil {
		return unlooked(env, err)
	}
	say(env.Stderr, "%s: the desk has checked with its own settings and logins; it does not see the spools\n", env.Called())
	return show(env.Stdout, all, asJSON)
}

func show(w io.Writer, all []check.Result, asJSON bool) int {
	failed := check.Failed(all)
	if asJSON {
		printJSON(w, struct {
			Failed bool           `json:"failed"`
			Checks []check.Result `json:"checks"`
		}{failed, all})
	} else {
		for _, r := range all {
			line := fmt.Sprintf("%-4s  %s: %s", r.Level, r.What, r.Detail)
			if r.Hint != "" {
				line += "; " + r.Hint
			}
			say(w, "%v\n", line)
		}
	}
	if failed {
		return Failed
	}
	return Done
}

// Migrate is the command that brings the schema up to date.
func Migrate() Command {
	return Command{
		Name: "migrate", Text: "Create or update the database schema; safe to run at any time.",
		More: "The database role must be allowed to create tables and indexes. Connect to the server directly or\n" +
			"through a session pooler. If several run at once, one works and the others wait. The first run on a\n" +
			"table of more than a million rows takes as long as one full read of it. If the command is stopped, run\n" +
			"it again. It also switches the rule of DOCKET_DESK_FOUR_EYES on or off in the database.",
		Uses: []string{"DOCKET_DATABASE_URL"},
		Exit: [2]string{"the schema is up to date", "failed"},
		Run: func(env Env, _ []string) int {
			s, warnings, ok := settings(env)
			if !ok {
				return Misuse
			}
			warn(env, warnings)
			return eachShard(env, s, false, func(one config.Settings) int { return migrate(env, one) })
		},
	}
}

func migrate(env Env, s config.Settings) int {
	d, err := app.OpenDatabase(s, env.Program, zerolog.New(zerolog.ConsoleWriter{Out: env.Stderr, NoColor: true, TimeFormat: time.RFC3339}).With().Timestamp().Logger())
	if err != nil {
		return Unopened(env, err)
	}
	defer d.Close()
	ctx, end := UntilSignal(env)
	defer end()
	applied, err := schema.New(d.DB).Migrate(ctx)
	if err != nil {
		say(env.Stderr, "%s: %v\n", env.Called(), err)
		if hint := db.Hint(err); hint != "" && !strings.Contains(err.Error(), hint) {
			say(env.Stderr, "%s\n", term.Lines(hint))
		}
		return Failed
	}
	if applied == 0 {
		say(env.Stdout, "the schema is up to date\n")
	} else {
		say(env.Stdout, "%d migrations applied, the schema is up to date\n", applied)
	}
	return Done
}

// Classify is the command that explains codes.
func Classify() Command {
	var asJSON bool
	return Command{
		Name: "classify", Args: "CODE...", Text: "Explain an error code: its class, and what Docket does.",
		Example: "  %s classify 23514\n  %[1]s classify 40001 too_large --json",
		More: "CODE is a SQLSTATE like 23514, or a code of Docket like too_large. They are in the header x-failure-code of\n" +
			"a dead letter, in log lines and in /readyz.",
		Exit:  [2]string{"each code is known", "at least one code is unknown"},
		Flags: func(f *flag.FlagSet) { f.BoolVar(&asJSON, "json", false, "print JSON") },
		Run: func(env Env, codes []string) int {
			if len(codes) == 0 {
				return misuse(env, "give a code like 23514 or too_large", "classify")
			}
			result := Done
			explained := []jsonCode{}
			for i, code := range codes {
				one := codeOf(code)
				explained = append(explained, one)
				if !one.Known {
					result = Failed
				}
				if asJSON {
					continue
				}
				if i > 0 {
					say(env.Stdout, "\n")
				}
				say(env.Stdout, "%s", term.Lines(errclass.Describe(code)))
			}
			if asJSON {
				printJSON(env.Stdout, struct {
					Codes []jsonCode `json:"codes"`
				}{explained})
			}
			return result
		},
	}
}

const healthTimeout = 3 * time.Second

// Health is the command for a container's health check: it asks the program that runs beside it.
func Health() Command {
	return Command{
		Name: "health", Text: "Ask the program on this host if it is healthy, for container health checks.",
		More: "Requests /healthz at DOCKET_HTTP_ADDR, over loopback unless the address names a host. The time limit is 3 s.",
		Uses: []string{"DOCKET_HTTP_ADDR"},
		Exit: [2]string{"healthy: the answer is 200", "not healthy, or no answer"},
		Run: func(env Env, _ []string) int {
			url, err := healthURL(config.Lookup(env.Program, env.Environ, "DOCKET_HTTP_ADDR"))
			if err != nil {
				say(env.Stderr, "%v\n", err)
				return Misuse
			}
			ctx, end := UntilSignal(env)
			defer end()
			if err := ask(ctx, env.Stdout, url); err != nil {
				say(env.Stderr, "%s: not healthy: %v\n", env.Called(), err)
				return Failed
			}
			return Done
		},
	}
}

func healthURL(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" || port == "0" {
		return "", config.Complaint{Variable: "DOCKET_HTTP_ADDR", Text: "is not a host:port that can be asked"}
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	return "http://" + net.JoinHostPort(host, port) + "/healthz", nil
}

func ask(ctx context.Context, w io.Writer, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	// No proxy of the environment: the question is for this host.
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	const most = 4 << 10
	if _, err := io.Copy(w, io.LimitReader(resp.Body, most)); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	return nil
}
