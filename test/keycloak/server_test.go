//go:build integration

package keycloak

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
)

const (
	fetchWait = 10 * time.Minute
	startWait = 5 * time.Minute
	stopWait  = time.Minute
	root      = "planted-password-of-the-admin"
)

// server is a running Keycloak with the realm of testdata.
type server struct {
	url    string
	client *http.Client
	said   output
	ended  chan struct{}
}

// output collects what a process says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// startServer starts Keycloak, and stops it with the test.
func startServer(t *testing.T) *server {
	t.Helper()
	home := fetched(t)
	addr := freeAddr(t)
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{url: "http://" + addr, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}, ended: make(chan struct{})}
	cmd := exec.CommandContext(context.Background(), filepath.Join(home, "bin", "kc.sh"), "start", "--optimized", "--cache=local", "--http-enabled=true", "--hostname-strict=false", "--http-host=127.0.0.1", "--http-port="+port)
	cmd.Env = append(os.Environ(), "KC_BOOTSTRAP_ADMIN_USERNAME=admin", "KC_BOOTSTRAP_ADMIN_PASSWORD="+root, "JAVA_OPTS_KC_HEAP=-Xms64m -Xmx512m", "JAVA_OPTS_APPEND=-XX:TieredStopAtLevel=1")
	cmd.Stdout, cmd.Stderr = &s.said, &s.said
	// The script ends Java when it gets this signal.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	go func() {
		defer close(s.ended)
		runtime.LockOSThread() // Pdeathsig comes when the thread ends that started the program
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-s.ended:
		case <-time.After(stopWait):
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-s.ended
		}
		if t.Failed() {
			t.Logf("Keycloak said:\n%.8000s", s.said.String())
		}
	})
	eventually(t, startWait, "Keycloak starts", func() bool {
		select {
		case <-s.ended:
			t.Fatalf("Keycloak ended: %s", s.said.String())
		default:
		}
		_, err := s.token(t.Context())
		return err == nil
	})
	realm, err := os.ReadFile("testdata/realm.json")
	if err != nil {
		t.Fatal(err)
	}
	s.admin(t, http.MethodPost, "/admin/realms", json.RawMessage(realm), nil)
	return s
}

// fetched is the folder of the distribution.
func fetched(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), fetchWait)
	defer cancel()
	var said bytes.Buffer
	get := exec.CommandContext(ctx, filepath.Join("..", "servers", "keycloak", "get"))
	get.Stderr = &said
	home, err := get.Output()
	if err != nil {
		t.Fatalf("test/servers/keycloak/get: %v: %s", err, said.String())
	}
	return strings.TrimSpace(string(home))
}

func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := testenv.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func eventually(t *testing.T, most time.Duration, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for over := time.After(most); !done(); {
		select {
		case <-tick.C:
		case <-over:
			t.Fatalf("%s: not within %v", what, most)
		}
	}
}

// token is one of the admin.
func (s *server) token(ctx context.Context) (string, error) {
	form := url.Values{"grant_type": {"password"}, "client_id": {"admin-cli"}, "username": {"admin"}, "password": {root}}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/realms/master/protocol/openid-connect/token", strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a, err := s.client.Do(q)
	if err != nil {
		return "", err
	}
	defer func() { _ = a.Body.Close() }()
	var out struct {
		Token string `json:"access_token"`
	}
	if err := errors.Join(json.NewDecoder(a.Body).Decode(&out)); err != nil || out.Token == "" {
		return "", fmt.Errorf("no token: %s: %w", a.Status, err)
	}
	return out.Token, nil
}

// admin changes Keycloak, or asks it.
func (s *server) admin(t *testing.T, method, path string, in, out any) {
	t.Helper()
	token, err := s.token(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	q, err := http.NewRequestWithContext(t.Context(), method, s.url+path, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer "+token)
	a, err := s.client.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	if err != nil || a.StatusCode >= 300 {
		t.Fatalf("%s %s: %s %s %v", method, path, a.Status, body, err)
	}
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			t.Fatalf("%s %s: %v in %s", method, path, err, body)
		}
	}
}

// idOf finds one thing by a query.
func (s *server) idOf(t *testing.T, path string) string {
	t.Helper()
	var all []struct {
		ID string `json:"id"`
	}
	if s.admin(t, http.MethodGet, path, nil, &all); len(all) != 1 {
		t.Fatalf("%s has %d", path, len(all))
	}
	return all[0].ID
}
