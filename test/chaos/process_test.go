//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"docket/internal/service/failpoint"
)

const (
	stopLimit = 45 * time.Second // DOCKET_SHUTDOWN_TIMEOUT and what a busy machine needs
	httpLimit = 5 * time.Second
)

// slot is the place of one process after another: the same name, spool and HTTP address through every restart.
type slot struct {
	*campaign
	number        int
	name, program string
	args          []string
	spool, addr   string
	env           []string

	used atomic.Bool // it ever had a process

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{}
	ordered bool   // its end is the campaign's doing
	armed   string // the failpoint that it was started with
	over    bool   // nothing starts here any more
}

// start starts a process in the slot, armed or not; one that is there already stays.
func (s *slot) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil || s.over {
		return nil
	}
	if s.armed = ""; s.program != "docket" { // the desk has no points
		s.armed = s.arms.draw()
	}
	log, err := os.OpenFile(filepath.Join(s.dir, "logs", s.name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of %s: %w", s.name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	cmd := exec.Command(filepath.Join(s.bin, s.program), s.args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Env = append([]string{}, s.env...)
	if s.armed != "" {
		cmd.Env = append(cmd.Env, failpoint.Variable+"="+s.armed)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", s.name, err)
	}
	s.note("%s started as %d %s", s.name, cmd.Process.Pid, s.armed)
	ended := make(chan struct{})
	s.used.Store(true)
	s.cmd, s.ended, s.ordered = cmd, ended, false
	go s.await(cmd, ended)
	return nil
}

// await sees the process end, and finds it wrong that one ends of its own accord.
func (s *slot) await(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait()
	s.mu.Lock()
	ordered, itself := s.ordered, s.armed != "" && killed(cmd)
	s.cmd = nil
	s.mu.Unlock()
	s.note("%s (%d) ended: %v", s.name, cmd.Process.Pid, cmd.ProcessState)
	switch {
	case ordered:
	case itself:
		s.rise()
	default:
		s.broken(s.name, "ended of its own accord: %v", cmd.ProcessState)
	}
	close(ended)
}

func killed(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// order says that the end of the process is intended, and returns what to wait for; nil where there is none.
func (s *slot) order() (*os.Process, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return nil, nil
	}
	s.ordered = true
	return s.cmd.Process, s.ended
}

// unarm replaces a process that is armed by one that is not.
func (s *slot) unarm() {
	s.mu.Lock()
	armed := s.cmd != nil && s.armed != ""
	s.mu.Unlock()
	if armed && s.kill() {
		s.count(s.kills, "at random")
	}
}

// end kills the process for good.
func (s *slot) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.kill()
}

// kill ends the process as a power cut would; true where there was one.
func (s *slot) kill() bool {
	process, ended := s.order()
	if process == nil {
		return false
	}
	_ = process.Kill()
	<-ended
	return true
}

// terminate ends the process in good order, which has to succeed within its limit and with exit code 0.
func (s *slot) terminate() {
	s.mu.Lock()
	cmd := s.cmd
	s.mu.Unlock()
	process, ended := s.order()
	if process == nil {
		return
	}
	began := time.Now()
	_ = process.Signal(syscall.SIGTERM)
	limit := time.NewTimer(stopLimit)
	defer limit.Stop()
	select {
	case <-ended:
		s.mu.Lock()
		itself := s.armed != "" && killed(cmd)
		s.mu.Unlock()
		if itself {
			s.count(s.kills, "at "+s.tripped())
		} else if code := cmd.ProcessState.ExitCode(); code != 0 {
			s.broken(s.name, "ended with %d after SIGTERM", code)
		}
		s.note("%s took %v to end", s.name, time.Since(began).Round(time.Millisecond))
	case <-limit.C:
		s.broken(s.name, "did not end within %v of SIGTERM", stopLimit)
		_ = process.Signal(syscall.SIGQUIT) // its goroutines are in the log then
		wait(context.Background(), time.Second)
		s.kill()
	}
}

// freeze stops the process without ending it; thaw lets it continue.
func (s *slot) freeze() { s.signal(syscall.SIGSTOP) }
func (s *slot) thaw()   { s.signal(syscall.SIGCONT) }

func (s *slot) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

func (s *slot) get(ctx context.Context, path string) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, httpLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.addr+path, nil)
	if err != nil {
		return 0, "", err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// metric is the value of a series as /metrics has it.
func (s *slot) metric(ctx context.Context, series string) (float64, error) {
	_, body, err := s.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(body)
	if m == nil {
		return 0, errors.New("there is no " + series)
	}
	return strconv.ParseFloat(m[1], 64)
}
