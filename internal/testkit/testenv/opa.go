//go:build integration

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// OPAVersion is one of the versions of OPA that test/servers/opa builds.
type OPAVersion string

// The versions: the newest, and the last before 1.0.
const (
	OPACurrent  OPAVersion = "current"
	OPAPrevious OPAVersion = "previous"
)

// OPAOptions change an OPA's defaults. Bytes and events of 0 mean OPA's default.
type OPAOptions struct {
	Version  OPAVersion        // default OPACurrent
	Labels   map[string]string // besides id and version, which OPA adds
	Service  string            // URL that decisions are uploaded to
	Token    string            // bearer token of the service; empty: none
	Resource string            // path of uploads; default /logs
	Bundle   *Bundle
	Status   bool // status updates go to the service, too

	Buffer       string // buffer_type: "size" or "event"; only in OPACurrent
	BufferBytes  int64  // buffer_size_limit_bytes; default: no limit
	BufferEvents int64  // buffer_size_limit_events
	UploadBytes  int64  // upload_size_limit_bytes, after gzip
}

// OPA is a process of Open Policy Agent on loopback that uploads decisions every one or two seconds.
type OPA struct {
	t      testing.TB
	addr   string
	cmd    *exec.Cmd
	client *http.Client
	ended  chan struct{}
	said   output
}

// output is a process's output, readable while it runs.
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

// StartOPA starts an OPA and waits until its bundle is active. It is killed when the test ends.
func StartOPA(t testing.TB, options OPAOptions) *OPA {
	t.Helper()
	if options.Version == "" {
		options.Version = OPACurrent
	}
	program, err := opaProgram(options.Version)
	must(t, "build OPA", err)
	addr, err := freeAddr()
	must(t, "find a port for OPA", err)
	config, err := json.Marshal(options.config())
	must(t, "write OPA's settings", err)
	file := filepath.Join(t.TempDir(), "opa.json")
	must(t, "write OPA's settings", os.WriteFile(file, config, 0o600))

	o := &OPA{t: t, addr: addr, client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}, ended: make(chan struct{})}
	o.cmd = exec.CommandContext(context.Background(), program, "run", "--server", "--addr", addr, "--config-file", file,
		"--skip-version-check", "--log-format", "json", "--log-level", "error", "--shutdown-grace-period", "20")
	o.cmd.Stdout, o.cmd.Stderr = &o.said, &o.said
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(t, "start OPA", o.cmd.Start())
	go func() { _ = o.cmd.Wait(); close(o.ended) }()
	t.Cleanup(func() {
		o.Kill()
		if t.Failed() {
			t.Logf("OPA %s at %s said:\n%.4000s", options.Version, addr, o.said.String())
		}
	})
	must(t, "wait for OPA", o.await())
	return o
}

func (o *OPA) await() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(o.t.Context()), startWait)
	defer cancel()
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		err := o.get(ctx, "/health?bundles&plugins", nil)
		if err == nil {
			return nil
		}
		select {
		case <-o.ended:
			return fmt.Errorf("OPA ended: %s", o.said.String())
		case <-ctx.Done():
			return fmt.Errorf("not ready in time: %w", err)
		case <-tick.C:
		}
	}
}

// config returns OPA's own configuration.
func (options OPAOptions) config() map[string]any {
	reporting := map[string]any{"min_delay_seconds": 1, "max_delay_seconds": 2}
	for name, value := range map[string]int64{
		"buffer_size_limit_bytes": options.BufferBytes, "buffer_size_limit_events": options.BufferEvents,
		"upload_size_limit_bytes": options.UploadBytes,
	} {
		if value != 0 {
			reporting[name] = value
		}
	}
	if options.Buffer != "" {
		reporting["buffer_type"] = options.Buffer
	}
	docket := map[string]any{"url": options.Service}
	if options.Token != "" {
		docket["credentials"] = map[string]any{"bearer": map[string]any{"token": options.Token}}
	}
	services := map[string]any{"docket": docket}
	logs := map[string]any{"service": "docket", "reporting": reporting}
	if options.Resource != "" {
		logs["resource"] = options.Resource
	}
	status := map[string]any{"prometheus": true} // without it OPA has no counters
	if options.Status {
		status["service"] = "docket"
	}
	config := map[string]any{"labels": options.Labels, "services": services, "decision_logs": logs, "status": status}
	if b := options.Bundle; b != nil {
		services["bundles"] = map[string]any{"url": b.server.URL}
		config["bundles"] = map[string]any{b.name: map[string]any{
			"service": "bundles", "resource": "/" + b.name + ".tar.gz",
			"polling": map[string]any{"min_delay_seconds": 1, "max_delay_seconds": 1},
		}}
	}
	return config
}

// Stop sends SIGTERM, which makes OPA upload the rest, and waits for the end.
func (o *OPA) Stop() {
	o.t.Helper()
	_ = o.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-o.ended:
		o.client.CloseIdleConnections()
	case <-time.After(stopWait):
		o.Kill()
		o.t.Errorf("OPA did not end within %v of SIGTERM", stopWait)
	}
}

// Kill ends the process like a power cut, with decisions that were not uploaded.
func (o *OPA) Kill() {
	_ = o.cmd.Process.Kill()
	<-o.ended
	o.client.CloseIdleConnections()
}

// opaBuild limits the time to compile a version the first time.
const opaBuild = 8 * time.Minute

var opaPrograms = map[OPAVersion]*once[string]{OPACurrent: {}, OPAPrevious: {}}

// opaProgram builds a version with test/servers/opa/build, which keeps its results.
func opaProgram(version OPAVersion) (string, error) {
	slot, known := opaPrograms[version]
	if !known {
		return "", fmt.Errorf("no such version of OPA: %q", version)
	}
	return slot.get(func() (string, error) {
		script, err := above(filepath.Join("test", "servers", "opa", "build"))
		if err != nil {
			return "", err
		}
		ctx, cancel := context.WithTimeout(context.Background(), opaBuild)
		defer cancel()
		var said bytes.Buffer
		build := exec.CommandContext(ctx, script, string(version))
		build.Stderr = &said
		path, err := build.Output()
		if err != nil {
			return "", fmt.Errorf("test/servers/opa/build: %w: %s", err, said.String())
		}
		return strings.TrimSpace(string(path)), nil
	})
}

// above finds a file of the repository from inside a package of it.
func above(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return filepath.Join(dir, name), nil
		} else if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not in this repository", name)
		}
		dir = filepath.Dir(dir)
	}
}
