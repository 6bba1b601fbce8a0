package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// server is a Postgres server that runs as a child of this process. It belongs to one goroutine.
type server struct {
	bin, data string
	logPath   string
	port      int
	password  string

	process *os.Process
	exited  chan struct{} // closed once the process is gone; nil where none was started
}

// URL is where it listens.
func (s *server) URL() string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(databaseUser, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)), Path: databaseName, RawQuery: "sslmode=disable",
	}
	return u.String()
}

func (s *server) openLog() (*os.File, error) {
	file, err := os.OpenFile(s.logPath, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open Postgres's log: %w", err)
	}
	return file, nil
}

// Start starts the server and returns when it answers.
func (s *server) Start(ctx context.Context) error {
	log, err := s.openLog()
	if err != nil {
		return err
	}
	args := []string{"-D", s.data, "-p", strconv.Itoa(s.port)}
	for name, value := range serverSettings {
		args = append(args, "-c", name+"="+value)
	}
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = procAttr(syscall.SIGQUIT) // an immediate shutdown: nobody needs the data any more
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The death signal is bound to the thread that starts the process: it has to live as long.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(exited)
		defer func() { _ = log.Close() }()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start Postgres: %w", err)
	}
	s.process, s.exited = cmd.Process, exited
	if err := s.waitUntilReady(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

var errServerEnded = errors.New("Postgres ended without a signal")

func (s *server) waitUntilReady(ctx context.Context) error {
	ended := false
	err := waitFor(ctx, 30*time.Second, func(ctx context.Context) bool {
		select {
		case <-s.exited:
			ended = true
			return true
		default:
		}
		conn, err := pgx.Connect(ctx, s.URL())
		if err != nil {
			return false
		}
		return conn.Close(ctx) == nil
	})
	if ended {
		err = errServerEnded
	}
	if err != nil {
		return fmt.Errorf("wait for Postgres (its log: %s): %w", s.logPath, err)
	}
	return nil
}

// Stop stops the server as `pg_ctl stop -m fast` does, which breaks its connections, and returns when it is gone. If that is not
// enough, it kills the server. A server that does not run is fine.
func (s *server) Stop() error {
	if s.exited == nil {
		return nil
	}
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, os.Kill} {
		if err := s.process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stop Postgres: %w", err)
		}
		limit := time.NewTimer(10 * time.Second)
		select {
		case <-s.exited:
			limit.Stop()
			s.exited = nil
			return nil
		case <-limit.C:
		}
	}
	return errors.New("stop Postgres: it still runs")
}
