//go:build race

package cold_test

import "flag"

// With the race detector a sync.Pool drops a part of what it is given. So encoders of zstd, with megabytes each, are made
// again and again, and a check takes a second. A flag of the command line has precedence.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}
