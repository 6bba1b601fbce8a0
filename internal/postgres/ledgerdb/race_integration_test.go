//go:build race && integration

package ledgerdb_test

import "flag"

// The race detector makes each check three times as long. One goroutine does all of them, so it finds nothing there that
// fewer would not show. A flag of the command line has precedence.
func init() {
	filters = 60
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
}
