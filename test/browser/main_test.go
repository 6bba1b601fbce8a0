//go:build integration

package browser

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"docket/internal/testkit/testenv"
)

// bin holds the programs under test.
var bin string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "docket-browser-")
	if err == nil {
		bin = dir
		build := exec.Command("go", "build", "-ldflags=-s -w", "-o", dir, "docket/cmd/docket")
		build.Stdout, build.Stderr = os.Stderr, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "browser: build the program: %v\n", err)
		os.Exit(1)
	}
	// testenv.Main does not return. The folder holds only the program; the system clears its temporary files.
	testenv.Main(m)
}
