package tree

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

// printCommand is docket config print.
func printCommand(call frame.Call) *cobra.Command {
	var names []string
	for _, p := range call.Options.Programs {
		names = append(names, p.Name)
	}
	names = append(names, "desk")
	c := &cobra.Command{
		Use: "print PROGRAM", Short: "Print the settings of a program, each with its source",
		Long: "Print the settings of a program, each with its source: environment, file or default.\n\n" +
			"PROGRAM is " + strings.Join(names, ", ") + ". The output is a file for --config that sets the same values.\n" +
			"Of a secret it only says whether it is set, or prints the path of its file. It connects to nothing.",
		Example: "  docket config print consume\n  docket config print desk --config docket.yaml > desk.yaml\n" +
			"  docket config print consume --json | jq -r '.entries[] | select(.source != \"default\") | .name'",
		ValidArgsFunction: frame.Fixed(names),
	}
	c.RunE = call.Direct(func(args []string) error {
		switch {
		case len(args) != 1:
			return frame.Misuse("name one program: %s", strings.Join(names, ", "))
		case !slices.Contains(names, args[0]):
			return frame.Misuse("unknown program %s%s", term.Quoted(args[0]), cli.Meant(config.Nearest(args[0], names)))
		}
		return printSettings(call, args[0])
	})
	frame.Usage(c, []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL"}, "the settings are valid, and printed", "")
	return c
}

// printSettings prints the settings of a program, or all complaints.
func printSettings(call frame.Call, name string) error {
	env := call.Env
	for _, p := range call.Options.Programs {
		if p.Name == name {
			env = p.Env(call.Env)
		}
	}
	if !cli.LookedAt(env) {
		return frame.Exit(cli.Misuse)
	}
	all := config.EffectiveOf(env.Program, env.Environ)
	if call.AsJSON {
		call.Print(frame.ListOf(all, "", effectiveOf))
		return nil
	}
	call.Say("# Settings of docket %s\n%s", name, term.Safe(config.YAML(all)))
	return nil
}

type jsonEffective struct {
	Name   string `json:"name"`
	Key    string `json:"key"` // in a file
	Value  string `json:"value"`
	Source string `json:"source"` // environment, file, default or unset
	Secret bool   `json:"secret"`
	Hidden bool   `json:"hidden"` // it is a secret that is set; value is empty
}

func effectiveOf(e config.Effective) jsonEffective {
	return jsonEffective{e.Name, e.Key, e.Value, string(e.Source), e.Secret, e.Hidden}
}
