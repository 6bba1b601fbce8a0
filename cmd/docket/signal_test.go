package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// asProgram makes the test binary the program.
const asProgram = "DOCKET_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	_ = os.Unsetenv(asProgram) // it cannot fail for this name
	main()
}

// TestHangup_StopsInOrder: a terminal that goes away sends SIGHUP, often twice. That is not a second signal, which stops at once.
// nohup has it ignored.
func TestHangup_StopsInOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shell   string
		signals []syscall.Signal
		ignores bool
	}{
		"heard":   {"exec \"$0\" collect", []syscall.Signal{syscall.SIGHUP, syscall.SIGHUP}, false},
		"ignored": {"trap '' HUP; exec \"$0\" collect", []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", c.shell, self) //nolint:gosec // the text is of this test
			cmd.Env = []string{asProgram + "=1", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_COLLECTOR_ADDR=127.0.0.1:0", "DOCKET_SHUTDOWN_TIMEOUT=5s"}
			said := &heard{begun: make(chan struct{})}
			cmd.Stderr = said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-said.begun:
			case <-time.After(time.Minute):
				t.Error("it did not start in a minute")
			}
			if got := ignoresHangups(t, cmd.Process.Pid); got != c.ignores {
				t.Errorf("it ignores SIGHUP: %v", got)
			}
			for _, s := range c.signals {
				if err := cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
					t.Error(err)
				}
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("%v\n%s", err, said.text.String())
			}
		})
	}
}

// heard is a log. It tells of the first line.
type heard struct {
	text  bytes.Buffer
	begun chan struct{}
}

func (h *heard) Write(p []byte) (int, error) {
	if h.text.Len() == 0 {
		close(h.begun)
	}
	return h.text.Write(p)
}

// ignoresHangups reports whether a process ignores SIGHUP, the lowest bit of the mask.
func ignoresHangups(t *testing.T, pid int) bool {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, mask, _ := strings.Cut(string(status), "SigIgn:")
	mask, _, _ = strings.Cut(strings.TrimSpace(mask), "\n")
	bits, err := strconv.ParseUint(mask, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bits&1 != 0
}
