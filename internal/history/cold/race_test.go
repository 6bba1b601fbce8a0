//go:build race

package cold_test

import "flag"

// With the race detector a sync.Pool drops what it is given now and then, so the encoders of zstd, with megabytes each,
// are made anew all the time. A check then takes a second, and a flag of the command line still counts.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}
