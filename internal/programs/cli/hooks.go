package cli

import (
	"context"

	"docket/internal/service/config"
)

// Do runs the command with its arguments, its flags and --help among them, and returns the exit code.
func (c Command) Do(env Env, args []string) int { return c.do(env, args) }

// Settings loads the settings of the program and tells of variables that are none. Where they are wrong it says all that
// is wrong with them, and ok is false: the exit code is [Misuse].
func Settings(env Env) (s config.Settings, ok bool) {
	s, warnings, ok := settings(env)
	if ok {
		warn(env, warnings)
	}
	return s, ok
}

// UntilSignal is a context that ends with the first signal. end has to be called.
func UntilSignal(env Env) (ctx context.Context, end func()) { return untilSignal(env) }

// Unopened says why something could not be opened and returns the exit code.
func Unopened(env Env, err error) int { return unopened(env, err) }

// Named is a code with what it is called.
func Named(code string) string { return name(code) }
