//go:build integration

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// builtDemo is the program, built once into a folder without docket. It stays until the tests end.
var builtDemo = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "consumer-test-")
	if err != nil {
		return "", err
	}
	builtDirs = append(builtDirs, dir)
	program := filepath.Join(dir, "consumer")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return program, nil
})

// prepareDemo makes the command of a demo that starts in the clone. It is killed after ten minutes.
func prepareDemo(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := builtDemo()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{"demo"}, args...)...)
	cmd.Dir = filepath.Join("..", "..")
	return cmd
}

// demonstrate runs a demo and returns its exit code and its output.
func demonstrate(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	cmd := prepareDemo(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

func TestDemo_Outage(t *testing.T) {
	t.Parallel()
	status, out := demonstrate(t, "--records", "3000")
	for _, part := range []string{
		"OUTAGE     Postgres stops", "-> parking", "-> HOLD", "-> resumed", "-> replaying", "It adds up", "23514", "The ledger holds all ", "--keep",
	} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing", part)
		}
	}
	if status != 0 || t.Failed() {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestDemo_PlantedLoss(t *testing.T) {
	t.Parallel()
	status, out := demonstrate(t, "--records", "1000", "--plant-loss")
	planted := regexp.MustCompile(`the row of (\S+) is deleted`).FindStringSubmatch(out)
	if status != 1 || planted == nil || !strings.Contains(out, "IT DOES NOT ADD UP") || !strings.Contains(out, " lost: "+planted[1]+" ") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestDemo_NoDesk(t *testing.T) {
	t.Parallel()
	status, out := demonstrate(t, "--records", "1000", "--no-desk")
	wrong := regexp.MustCompile(`THE LEDGER IS WRONG: it holds 0 of the (\d+) dead letters in the topics`).FindStringSubmatch(out)
	if status != 1 || wrong == nil || wrong[1] == "0" || !strings.Contains(out, "It adds up") {
		t.Errorf("status %d\n%s", status, out)
	}
}

// TestDemo_PrintedCommands pastes the printed lines into a shell while the demo stays up, and stops the demo by Ctrl-C.
func TestDemo_PrintedCommands(t *testing.T) {
	t.Parallel()
	cmd := prepareDemo(t, "--records", "1000", "--keep")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // where the test ends early
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	})
	var out strings.Builder
	var setup, commands []string
	for lines := bufio.NewScanner(stdout); len(commands) < 3 && lines.Scan(); {
		fmt.Fprintln(&out, lines.Text())
		switch line := strings.TrimSpace(lines.Text()); {
		case strings.HasPrefix(line, "cd "), strings.HasPrefix(line, "export "):
			setup = append(setup, line)
		case len(setup) > 0:
			commands = append(commands, line)
		}
	}
	if len(commands) < 3 {
		t.Fatalf("output\n%s", out.String())
	}
	entered := regexp.MustCompile(`The ledger holds all (\d+) dead letters`).FindStringSubmatch(out.String())
	dir := regexp.MustCompile(`Its programs log to (\S+)\.\n`).FindStringSubmatch(out.String())
	if entered == nil || dir == nil || len(setup) != 2 {
		t.Fatalf("output\n%s", out.String())
	}
	pasteCommands(t, setup, commands, entered)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if _, err := os.Stat(dir[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir[1], err)
	}
}

// pasteCommands runs each command in a shell of its own and compares its answer with the demo.
func pasteCommands(t *testing.T, setup, commands, entered []string) {
	t.Helper()
	id := commands[0][strings.LastIndex(commands[0], " ")+1:]
	for i, want := range []struct {
		command string
		answer  func(out string) bool
	}{
		{"go run ./cmd/docket why " + id, func(out string) bool {
			return strings.Contains(out, id) && regexp.MustCompile(`verdict +denied\n`).MatchString(out)
		}},
		{"go run ./cmd/docket logs --denied", func(out string) bool {
			rows := strings.Split(strings.TrimSpace(out), "\n")[1:]
			return len(rows) > 1 && strings.Count(out, " denied ") == len(rows)
		}},
		{"go run ./cmd/docket dlq groups", func(out string) bool {
			open := 0
			for _, row := range regexp.MustCompile(`(?m)^[0-9a-f]{16} +(\d+) `).FindAllStringSubmatch(out, -1) {
				n, err := strconv.Atoi(row[1])
				if err != nil {
					return false
				}
				open += n
			}
			return open > 0 && strconv.Itoa(open) == entered[1]
		}},
	} {
		if commands[i] != want.command {
			t.Errorf("line %q, want %q", commands[i], want.command)
		}
		var errs bytes.Buffer
		shell := exec.Command("sh", "-ec", strings.Join(append(append([]string{}, setup...), commands[i]), "\n"))
		shell.Dir, shell.Stderr = "/", &errs
		out, err := shell.Output()
		if err != nil || !want.answer(string(out)) {
			t.Errorf("%s: %v\n%s%s", commands[i], err, out, errs.String())
		}
	}
}
