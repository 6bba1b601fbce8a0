//go:build integration

package e2e

import (
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/internal/testkit/output"
	"docket/internal/testkit/testenv"
)

// process is a running program.
type process struct {
	t     *testing.T
	name  string
	cmd   *exec.Cmd
	addr  string
	out   output.Buffer
	ended chan struct{}
}

func (s *system) consumer(env ...string) *process { return s.start("consumer", env) }
func (s *system) replayer(env ...string) *process { return s.start("parking-replayer", env) }

func (s *system) start(name string, env []string, args ...string) *process {
	s.t.Helper()
	s.started++
	p := &process{t: s.t, name: fmt.Sprintf("%s %d", name, s.started), addr: freeAddr(s.t), ended: make(chan struct{})}
	spool := filepath.Join(s.dir, fmt.Sprintf("spool-%d", s.started))
	s.places.SpoolDirs = append(s.places.SpoolDirs, spool)
	p.cmd = exec.Command(filepath.Join(bin, name), args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = s.dir, &p.out, &p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Env = append(append(append([]string{}, s.env...), "DOCKET_HTTP_ADDR="+p.addr, "DOCKET_SPOOL_DIR="+spool), env...)
	if err := p.cmd.Start(); err != nil {
		s.t.Fatalf("start %s: %v", p.name, err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	s.t.Cleanup(func() {
		p.kill()
		if s.t.Failed() {
			s.t.Logf("%s said:\n%s", p.name, tail(p.out.String(), 40))
		}
	})
	return p
}

// freeAddr is an address for a program that is about to start, which no outgoing connection takes meanwhile.
func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := testenv.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// kill ends the process as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// stop sends SIGTERM and returns the exit code.
func (p *process) stop() int {
	p.t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(40 * time.Second):
		p.t.Errorf("%s did not end within 40 s of SIGTERM", p.name)
		p.kill()
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) get(path string) (int, string) {
	client := http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://" + p.addr + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// metric is the value of a series as /metrics has it, 0 where there is none.
func (p *process) metric(series string) float64 {
	code, body := p.get("/metrics")
	for try := 1; try < 3 && code == 0 && strings.Contains(body, "deadline"); try++ { // a busy machine
		code, body = p.get("/metrics")
	}
	m := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(body)
	if m == nil {
		return 0
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		p.t.Errorf("%s is %q", series, m[1])
	}
	return v
}

func (p *process) ready() bool { code, _ := p.get("/readyz"); return code == http.StatusOK }

// awaitHold waits until the process says that it holds for that reason.
func (p *process) awaitHold(reason string) {
	p.t.Helper()
	eventually(p.t, patience, p.name+" holds for "+reason, func() error {
		code, body := p.get("/readyz")
		if code != http.StatusServiceUnavailable || !strings.Contains(body, reason) {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		if p.metric(`docket_hold{reason="`+reason+`"}`) < 1 {
			return fmt.Errorf("docket_hold{reason=%q} is not 1", reason)
		}
		return nil
	})
	if code, body := p.get("/healthz"); code != http.StatusOK {
		p.t.Errorf("%s: a hold turned /healthz to %d %s", p.name, code, body)
	}
}
