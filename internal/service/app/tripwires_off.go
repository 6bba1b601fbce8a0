//go:build !failpoints

package app

import "docket/internal/service/config"

// tripwires is where a build for tests puts its failpoints; a release has none.
func tripwires(_ config.Program, _ config.Settings, o Options) (Options, func(*Parts), error) {
	return o, func(*Parts) {}, nil
}
