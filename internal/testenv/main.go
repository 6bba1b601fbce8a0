//go:build integration

package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// The client library takes a machine with a file /.dockerenv for a container and
// would dial its default gateway; servers are published on loopback only.
const (
	hostOverride = "TESTCONTAINERS_HOST_OVERRIDE"
	loopback     = "127.0.0.1"
)

// Main runs the tests of a package that uses this one, removes the servers they
// shared and fails the run where a goroutine is left behind. It does not return.
// Call it from TestMain; ignored are leaks that the package knows of.
func Main(m *testing.M, ignored ...goleak.Option) {
	if _, set := os.LookupEnv(hostOverride); !set {
		if err := os.Setenv(hostOverride, loopback); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: set %s: %v\n", hostOverride, err)
			os.Exit(1)
		}
	}
	// The connection to the reaper is meant to last as long as the process.
	ignored = append(ignored,
		goleak.IgnoreAnyFunction("github.com/testcontainers/testcontainers-go.(*Reaper).connect.func1"))

	code := m.Run()
	if err := shared.close(); err != nil {
		fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
		code = max(code, 1)
	}
	if code == 0 {
		if err := goleak.Find(ignored...); err != nil {
			fmt.Fprintf(os.Stderr, "testenv: %v\n", err)
			code = 1
		}
	}
	os.Exit(code)
}
