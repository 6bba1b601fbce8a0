//go:build integration

package demo

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// Postgres does not run as root, so what needs it is a scene that runs in the inner process of [Supervise]: the test
// binary started once more, with the name of the scene as its argument.
var scenes = map[string]func(ctx context.Context, dir, cache string) error{
	"server": sceneServer,
	"stale":  sceneStale,
	"stay":   sceneStay,
	"status": func(context.Context, string, string) error { os.Exit(3); return nil },
	"unpack": sceneUnpack,
	"whoami": sceneWhoAmI,
}

const envOuter = "DEMO_TEST_OUTER" // a process that supervises a scene, to be killed by a test

func TestMain(m *testing.M) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if dir, cache, inner := Inner(); inner {
		if err := scenes[os.Args[1]](ctx, dir, cache); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if scene := os.Getenv(envOuter); scene != "" {
		status, err := Supervise(ctx, []string{scene}, os.Stdout, os.Stderr)
		if err != nil {
			fmt.Println(err)
		}
		os.Exit(status)
	}
	stop()
	goleak.VerifyTestMain(m)
}
