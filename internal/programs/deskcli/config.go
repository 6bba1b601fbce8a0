package deskcli

import (
	"bytes"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"docket/internal/programs/cli"
	"docket/internal/service/config"
)

const configFlag = "config"

// withConfig takes --config FILE out of the arguments and names the file in the environment, where all programs look for it.
func withConfig(env cli.Env) cli.Env {
	last := len(env.Args)
	if last > 0 && (env.Args[0] == cobra.ShellCompRequestCmd || env.Args[0] == cobra.ShellCompNoDescRequestCmd) {
		last-- // a shell completes this one
	}
	for i := 0; i < last && env.Args[i] != "--"; i++ {
		file, given := strings.CutPrefix(env.Args[i], "--"+configFlag+"=")
		words := 1
		if !given && env.Args[i] == "--"+configFlag && i+1 < last {
			file, given, words = env.Args[i+1], true, 2
		}
		if given {
			env.Args = slices.Delete(slices.Clone(env.Args), i, i+words)
			env.Environ = append(slices.Clone(env.Environ), config.FileVariable+"="+file)
			return env
		}
	}
	return env
}

// config is what looks after the file with settings.
func (s *session) config() *cobra.Command {
	var names []string
	for _, p := range s.o.Programs {
		names = append(names, p.Name)
	}
	names = append(names, "desk")
	validate := &cobra.Command{
		Use: "validate [PROGRAM...]", Short: "Check all settings, of the file and of the environment, without connecting to anything",
		Long: "Check all settings, of the file and of the environment, without connecting to anything.\n\n" +
			"PROGRAM is " + strings.Join(names, ", ") + ", or several of them; without one, the settings are checked for all.\n\n" +
			"Each line of the file is a setting: its name without DOCKET_, in small letters, and its value. A list may stand\n" +
			"where a setting takes values by comma. Secrets may be in the file; then let only Docket read it. Unknown names are\n" +
			"errors. A variable of the environment wins over the file.",
		Example: "  # docket.yaml\n  #   kafka_brokers: [kafka-1:9092, kafka-2:9092]\n  #   database_url_file: /run/secrets/database-url\n" +
			"  docket config validate --config docket.yaml\n  docket consume --config docket.yaml",
		ValidArgsFunction: fixed(names),
	}
	validate.RunE = s.direct(func(args []string) error {
		for _, name := range args {
			if !slices.Contains(names, name) {
				return misuse("unknown program %s%s", quoted(name), cli.Meant(config.Nearest(name, names)))
			}
		}
		return s.validate(args)
	})
	usage(validate, []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL"}, "the settings are valid", "")
	return s.group(&cobra.Command{Use: configFlag, Short: "Check the file with settings"}, validate)
}

// validate says what is wrong with the settings of the programs that have these names, or of all.
func (s *session) validate(names []string) error {
	var said bytes.Buffer
	var fine []string
	check := func(name string, env cli.Env) {
		if len(names) > 0 && !slices.Contains(names, name) {
			return
		}
		env.Stderr = &said
		if _, ok := cli.Settings(env); ok {
			fine = append(fine, name)
		} else {
			s.code = cli.Misuse
		}
	}
	for _, p := range s.o.Programs {
		check(p.Name, p.Env(s.env))
	}
	check("desk", s.env)
	var lines []string // what is wrong for several programs is said once
	for line := range strings.Lines(said.String()) {
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
			s.tell("%s", line)
		}
	}
	if s.code != cli.Done {
		return nil
	}
	s.say("the settings are valid for %s\n", strings.Join(fine, ", "))
	return nil
}
