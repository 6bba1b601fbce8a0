//go:build integration

package testenv

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// S3Server is a test's own S3 server: a process on loopback that keeps objects as files of a directory.
type S3Server struct {
	URL, AccessKey, SecretKey string
	// Dir has a folder for each bucket.
	Dir string

	program, side string
	process       *exec.Cmd
}

// S3 starts a server with one bucket of that name. test/servers/s3/get builds its program, once for each machine.
func S3(t testing.TB, bucket string) *S3Server {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(here), "../../../test/servers/s3/get")).Output()
	must(t, "build the S3 server", err)
	addr, err := freeAddr()
	must(t, "S3", err)
	s := &S3Server{
		URL: "http://" + addr, AccessKey: "docket", SecretKey: "not-a-secret-of-anybody", Dir: filepath.Join(t.TempDir(), "objects"),
		program: strings.TrimSpace(string(out)), side: filepath.Join(t.TempDir(), "side"),
	}
	for _, dir := range []string{filepath.Join(s.Dir, bucket), s.side} {
		must(t, "S3", os.MkdirAll(dir, 0o700))
	}
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Start starts it, also at the same address after Kill.
func (s *S3Server) Start(t testing.TB) {
	t.Helper()
	addr := strings.TrimPrefix(s.URL, "http://")
	s.process = exec.CommandContext(context.Background(), s.program, "-port", addr, "-access", s.AccessKey, "-secret", s.SecretKey, "-sidecar", s.side, s.Dir)
	must(t, "start the S3 server", s.process.Start())
	ctx, cancel := context.WithTimeout(t.Context(), startWait)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		if err == nil {
			_ = conn.Close()
			return
		}
		if ctx.Err() != nil {
			must(t, "start the S3 server", fmt.Errorf("it does not listen: %w", err))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Kill ends it at once.
func (s *S3Server) Kill() {
	if s.process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
		s.process = nil
	}
}
