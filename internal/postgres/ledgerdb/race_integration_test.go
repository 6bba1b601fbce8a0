//go:build race && integration

package ledgerdb_test

import "flag"

// One goroutine does all checks of the models, so with the race detector fewer are enough. Each run draws others. A flag of the
// command line has precedence.
func init() {
	if err := flag.Set("rapid.checks", "40"); err != nil {
		panic(err)
	}
}
