//go:build integration

package demo

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// play runs a scene in an inner process and fails the test with what it printed.
func play(t *testing.T, scene string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var out bytes.Buffer
	status, err := Supervise(ctx, []string{scene}, &out, &out)
	if err != nil || status != 0 {
		t.Fatalf("scene %s: status %d, %v\n%s", scene, status, err, out.String())
	}
	return out.String()
}

func silent(string, ...any) {}

func TestPostgres_KeepsDataOverStop(t *testing.T) {
	t.Parallel()
	play(t, "server")
}

func sceneServer(ctx context.Context, dir, cache string) error {
	s, err := prepare(ctx, dir, cache, silent)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	if _, err := ask(ctx, s, "CREATE TABLE kept AS SELECT 42 AS n"); err != nil {
		return err
	}
	if err := s.Stop(); err != nil {
		return err
	}
	if _, err := ask(ctx, s, "SELECT 1"); err == nil {
		return errors.New("it answers after it was stopped")
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	answer, err := ask(ctx, s, "SELECT n FROM kept")
	if err != nil || answer != "42" {
		return fmt.Errorf("after the restart the answer is %q, %w", answer, err)
	}
	if err := errors.Join(s.Stop(), s.Stop()); err != nil {
		return err
	}
	return goleak.Find(goleak.IgnoreTopFunction("os/signal.loop"), goleak.IgnoreTopFunction("os/signal.NotifyContext.func1"))
}

func ask(ctx context.Context, s *server, query string) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL())
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(ctx) }()
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return "", err
	}
	numbers, err := pgx.CollectRows(rows, pgx.RowTo[int])
	return strings.Trim(fmt.Sprint(numbers), "[]"), err
}

func TestStale_StoppedAndRemoved(t *testing.T) {
	t.Parallel()
	play(t, "stale")
}

// sceneStale has three neighbours: a demo that was killed and whose server lives on, one that runs, one that starts.
func sceneStale(ctx context.Context, dir, cache string) error {
	parent := filepath.Join(dir, "tmp")
	killed, running, starting := filepath.Join(parent, dirPrefix+"1"), filepath.Join(parent, dirPrefix+"2"), filepath.Join(parent, dirPrefix+"3")
	for _, d := range []string{killed, running, starting} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	keep, err := claim(running)
	if err != nil {
		return err
	}
	defer keep()
	release, err := claim(killed)
	if err != nil {
		return err
	}
	s, err := prepare(ctx, killed, cache, silent)
	if err != nil {
		return err
	}
	log, err := s.openLog()
	if err != nil {
		return err
	}
	orphan := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data, "-p", strconv.Itoa(s.port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	orphan.Stdout, orphan.Stderr = log, log
	if err := orphan.Start(); err != nil {
		return err
	}
	gone := make(chan error, 1)
	go func() { gone <- orphan.Wait() }()
	s.exited = make(chan struct{})
	if err := s.waitUntilReady(ctx); err != nil {
		return err
	}
	if n, err := sweep(ctx, parent); n != 0 || err != nil {
		return fmt.Errorf("while all demos run %d were swept, %w", n, err)
	}
	release()
	if n, err := sweep(ctx, parent); n != 1 || err != nil {
		return fmt.Errorf("%d swept, %w", n, err)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		return errors.New("the server of a killed demo lives on")
	}
	if _, err := os.Stat(killed); !errors.Is(err, os.ErrNotExist) {
		return errors.New("the directory of a killed demo is still there")
	}
	for _, d := range []string{running, starting} {
		if _, err := os.Stat(d); err != nil {
			return err
		}
	}
	return nil
}

// sceneStay starts a server, prints its pid and stays until it is told to stop.
func sceneStay(ctx context.Context, dir, cache string) error {
	release, err := claim(dir)
	if err != nil {
		return err
	}
	defer release()
	s, err := prepare(ctx, dir, cache, silent)
	if err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	fmt.Printf("server %d %s\n", s.process.Pid, dir)
	<-ctx.Done()
	return s.Stop()
}

func TestServer_EndsWithDemo(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"asked to stop": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outer := exec.Command(os.Args[0])
			outer.Env = append(os.Environ(), envOuter+"=stay")
			out, err := outer.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := outer.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewReader(out)
			line, err := lines.ReadString('\n')
			var pid int
			var dir string
			if _, serr := fmt.Sscanf(line, "server %d %s", &pid, &dir); serr != nil {
				rest, _ := io.ReadAll(lines)
				t.Fatalf("%v, %v: %s%s", err, serr, line, rest)
			}
			if err := outer.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, lines) // until the last process that can write has ended
			err = outer.Wait()
			if sig == syscall.SIGTERM && err != nil {
				t.Errorf("asked to stop it ends with %v", err)
			}
			dead := func(context.Context) bool { return syscall.Kill(pid, 0) != nil }
			if err := waitFor(context.Background(), 20*time.Second, dead); err != nil {
				t.Errorf("the server, pid %d, lives on", pid)
			}
			if _, err := os.Stat(dir); sig == syscall.SIGTERM && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is still there", dir)
			}
			if sig == syscall.SIGKILL {
				_ = os.RemoveAll(dir)
			}
		})
	}
}

func TestPostgres_FoundByFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := installation(filepath.Join(dir, "bin")); err == nil || !strings.Contains(err.Error(), EnvPostgresBin) {
		t.Errorf("a directory without initdb: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bin", "initdb"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{dir, filepath.Join(dir, "bin"), filepath.Join(dir, "bin") + "/"} {
		if got, err := installation(given); got != dir || err != nil {
			t.Errorf("%s: %s, %v", given, got, err)
		}
	}
}
