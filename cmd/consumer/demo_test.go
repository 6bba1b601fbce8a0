//go:build integration

package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// demonstrate runs the demo of a freshly built program and returns its exit code and what it wrote.
func demonstrate(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "consumer")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, append([]string{"demo"}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestTheDemoGoesThroughAnOutageAndAddsUp(t *testing.T) {
	t.Parallel()
	status, out := demonstrate(t, "--records", "3000")
	for _, part := range []string{"OUTAGE     Postgres is stopped", "-> parking", "-> HOLD", "-> resumed", "-> the replayer", "It adds up", "23514"} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is not on the screen", part)
		}
	}
	if status != 0 || t.Failed() {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestTheDemoSeesALossThatWasPlanted(t *testing.T) {
	t.Parallel()
	status, out := demonstrate(t, "--records", "1000", "--plant-loss")
	planted := regexp.MustCompile(`the decision of (\S+) is taken away`).FindStringSubmatch(out)
	if status != 1 || planted == nil || !strings.Contains(out, "IT DOES NOT ADD UP") || !strings.Contains(out, " lost: "+planted[1]+" ") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestTheDemoRefusesWrongUse(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"--records 5": 2, "--records x": 2, "--unknown": 2, "more": 2, "--help": 0} {
		var out bytes.Buffer
		if got := runDemo(context.Background(), strings.Fields(args), &out, &out); got != want {
			t.Errorf("%s: status %d", args, got)
		}
		if strings.Contains(out.String(), "plant-loss") {
			t.Errorf("%s tells of a flag that is for tests alone", args)
		}
	}
}
