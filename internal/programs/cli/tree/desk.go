package tree

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/contexts"
	"docket/internal/programs/cli/frame"
)

// The general flags that choose a desk.
const (
	serverFlag  = "server"
	contextFlag = "context"
	tokenFlag   = "token-file"
	caFlag      = "ca-file"
)

func declareDesk(flags *pflag.FlagSet) {
	flags.String(serverFlag, "", "ask the desk at this `URL` in place of the database (or DOCKET_SERVER)")
	flags.String(contextFlag, "", "ask the desk of the context `NAME`; see docket context (or DOCKET_CONTEXT)")
	flags.String(tokenFlag, "", "`FILE` with your token for the desk (or DOCKET_TOKEN_FILE)")
	flags.String(caFlag, "", "PEM `FILE` of the CA of the desk (or DOCKET_SERVER_TLS_CA)")
}

// withDesk takes the general flags that choose a desk out of the arguments. docket context has flags of these names.
func withDesk(env cli.Env) (cli.Env, contexts.Flags, error) {
	var f contexts.Flags
	if commandOf(env.Args) == contextFlag {
		return env, f, nil
	}
	var wrong error
	// In one order, so that a value that looks like a flag is read in the same way each time.
	for _, flag := range []struct {
		name string
		to   *string
	}{{serverFlag, &f.Server}, {contextFlag, &f.Context}, {tokenFlag, &f.TokenFile}, {caFlag, &f.CAFile}} {
		value, given, err := takeNamed(&env, flag.name)
		if given {
			*flag.to = value
		}
		wrong = cmp.Or(wrong, err)
	}
	return env, f, wrong
}

// valued are the general flags with a value in the next argument.
var valued = []string{"--" + configFlag, "--" + colorFlag, "--" + formatFlag, "-o", "--" + serverFlag, "--" + contextFlag, "--" + tokenFlag, "--" + caFlag}

// commandOf returns the first argument that is neither a flag nor the value of a general one; empty: there is none.
func commandOf(args []string) string {
	for i := 0; i < len(args) && args[i] != "--"; i++ {
		switch {
		case slices.Contains(valued, args[i]):
			i++
		case !strings.HasPrefix(args[i], "-"):
			return args[i]
		}
	}
	return ""
}

// onlyContext reports whether a desk was chosen by the current context alone.
func (t *tree) onlyContext(target *contexts.Target) bool {
	return target.Context != "" && t.Options.Asks.Context == "" && t.Setting("DOCKET_CONTEXT") == ""
}

// asking returns the environment of a command of package cli: where-is, check and verify ask a desk if one is chosen,
// and migrate refuses one. The current context does not concern check and verify, which are for the host of a program.
func (t *tree) asking(name string) (cli.Env, error) {
	if !slices.Contains([]string{"where-is", "check", "verify", "migrate"}, name) {
		return t.Env, nil
	}
	target, err := t.Target()
	switch {
	case err != nil || target == nil:
		return t.Env, err
	case name == "where-is" || (name == "check" || name == "verify") && !t.onlyContext(target):
		desk, err := t.Connect(target)
		if err != nil {
			return t.Env, err
		}
		env := t.Env
		env.AskDesk = func(ctx context.Context, query string) (text string, report []byte, settled bool, err error) {
			defer desk.Close()
			found, err := desk.WhereIs(ctx, query)
			return found.Text, found.Report, found.Settled, err
		}
		env.AskCheck = func(ctx context.Context) (all []cli.CheckResult, err error) {
			defer desk.Close()
			found, err := desk.Check(ctx)
			if err == nil && len(found.Checks) == 0 {
				err = errors.New("the desk has checked nothing")
			}
			for _, f := range found.Checks {
				all = append(all, cli.CheckOf(f.Level, f.What, f.Detail, f.Hint))
			}
			return all, err
		}
		env.AskVerify = func(ctx context.Context, since time.Time, from []string, settled bool) (text string, report []byte, broken bool, err error) {
			defer desk.Close()
			found, err := desk.Verify(ctx, since, from, settled)
			if err == nil && (found.Text == "" || len(found.Report) == 0) {
				err = errors.New("the desk has verified nothing")
			}
			return found.Text, found.Report, found.Broken, err
		}
		return env, nil
	case t.onlyContext(target):
		return t.Env, nil // the current context is for commands that can ask it
	}
	return t.Env, frame.Misuse("a desk cannot do this for you: it needs the database and Kafka. Leave away --server, --context and DOCKET_SERVER, and set DOCKET_DATABASE_URL")
}
