package cli

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/internal/service/app"
	"docket/internal/service/config"
)

// calm is a program that works until it is stopped.
type calm struct{}

func (calm) Health() app.Health            { return app.Health{Healthy: true} }
func (calm) Readiness() app.Readiness      { return app.Readiness{Groupless: true, Ready: true} }
func (calm) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (calm) Close()                        {}

// TestServe_TellsTheServiceManager: systemd waits for READY=1 before it starts what needs the program.
func TestServe_TellsTheServiceManager(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "serve") //nolint:usetesting // the name of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	socket := filepath.Join(dir, "s")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	signals, ended := make(chan os.Signal, 1), make(chan int, 1)
	var said buffer
	go func() {
		ended <- Serve(Env{Program: config.Collector, Environ: []string{"NOTIFY_SOCKET=" + socket}, Stderr: &said, Signals: signals}, calm{})
	}()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 1024)
	n, err := conn.Read(first)
	if err != nil || !strings.Contains(string(first[:n]), "READY=1\nSTATUS=ready") {
		t.Errorf("told %q, %v", first[:n], err)
	}
	signals <- syscall.SIGTERM
	if code := <-ended; code != Done || said.String() != "" {
		t.Errorf("exit %d, %s", code, said.String())
	}
}
