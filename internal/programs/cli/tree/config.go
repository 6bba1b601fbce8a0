package tree

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
	"docket/internal/service/config"
)

const configFlag = "config"

// withConfig takes --config FILE out of the arguments and names the file in the environment, where all programs look for it.
func withConfig(env cli.Env) (cli.Env, error) {
	file, given, err := takeNamed(&env, configFlag)
	if given {
		env.Environ = append(slices.Clone(env.Environ), config.FileVariable+"="+file)
	}
	return env, err
}

// takeNamed is takeFlag for a flag that names what a command works with. A variable of a script that is not set must not
// choose something else.
func takeNamed(env *cli.Env, name string) (value string, given bool, err error) {
	if value, given, err = takeFlag(env, name); err == nil && given && value == "" {
		err = frame.Misuse("--%s is empty", name)
	}
	return value, given, err
}

// takeFlag takes a general flag with a value out of the arguments, wherever it is. So commands that read their flags
// themselves have it, too. Two values contradict each other.
func takeFlag(env *cli.Env, name string) (value string, given bool, err error) {
	for {
		one, is := takeOnce(env, name)
		switch {
		case !is:
			return value, given, err
		case given && one != value:
			err = frame.Misuse("--%s has two values, %s and %s; give one", name, term.Quoted(value), term.Quoted(one))
		}
		value, given = one, true
	}
}

func takeOnce(env *cli.Env, name string) (value string, given bool) {
	last := len(env.Args)
	if last > 0 && (env.Args[0] == cobra.ShellCompRequestCmd || env.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		last-- // a shell completes this one
	}
	for i := 0; i < last && env.Args[i] != "--"; i++ {
		value, given := strings.CutPrefix(env.Args[i], "--"+name+"=")
		words := 1
		if !given && env.Args[i] == "--"+name && i+1 < last {
			value, given, words = env.Args[i+1], true, 2
		}
		if given {
			env.Args = slices.Delete(slices.Clone(env.Args), i, i+words)
			return value, true
		}
	}
	return "", false
}

// config holds the commands on settings.
func (t *tree) config() *cobra.Command {
	return t.group(&cobra.Command{Use: configFlag, Short: "Check settings, or print them"}, validateCommand(t.Call), printCommand(t.Call))
}

// validate is docket config validate.
type validate struct{ frame.Call }

func validateCommand(call frame.Call) *cobra.Command {
	v := &validate{call}
	var names []string
	for _, p := range call.Options.Programs {
		names = append(names, p.Name)
	}
	names = append(names, "desk")
	c := &cobra.Command{
		Use: "validate [PROGRAM...]", Short: "Check all settings, of the file and of the environment, without connecting to anything",
		Long: "Check all settings, of the file and of the environment, without connecting to anything.\n\n" +
			"PROGRAM is " + strings.Join(names, ", ") + ", or several of them; without one, the settings are checked for all.\n\n" +
			"Each line of the file is a setting: its name without DOCKET_, in small letters, and its value. A list may stand\n" +
			"where a setting takes values by comma. Secrets may be in the file; then let only Docket read it. Unknown names are\n" +
			"errors. A variable of the environment wins over the file.",
		Example: "  # docket.yaml\n  #   kafka_brokers: [kafka-1:9092, kafka-2:9092]\n  #   database_url_file: /run/secrets/database-url\n" +
			"  docket config validate --config docket.yaml\n  docket consume --config docket.yaml",
		ValidArgsFunction: frame.Fixed(names),
	}
	c.RunE = v.Direct(func(args []string) error {
		for _, name := range args {
			if !slices.Contains(names, name) {
				return frame.Misuse("unknown program %s%s", term.Quoted(name), cli.Meant(config.Nearest(name, names)))
			}
		}
		return v.check(args)
	})
	frame.Usage(c, []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL"}, "the settings are valid", "")
	return c
}

// check says what is wrong with the settings of the programs that have these names, or of all.
func (v *validate) check(names []string) error {
	var said bytes.Buffer
	var fine []string
	check := func(name string, env cli.Env) {
		if len(names) > 0 && !slices.Contains(names, name) {
			return
		}
		env.Stderr = &said
		if cli.LookedAt(env) {
			fine = append(fine, name)
		} else {
			v.Code = cli.Misuse
		}
	}
	for _, p := range v.Options.Programs {
		check(p.Name, p.Env(v.Env))
	}
	check("desk", v.Env)
	var lines []string // a complaint of several programs is printed once
	for line := range strings.Lines(said.String()) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
			v.Tell("%s\n", strings.TrimSuffix(line, "\n"))
		}
	}
	if v.Code != cli.Done {
		return nil
	}
	v.Say("the settings are valid for %s\n", strings.Join(fine, ", "))
	return nil
}
