//go:build integration

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
)

// coldReads are questions about two archived days, one of them Parquet and one lines, in a storage that can stop a command at an answer.
type coldReads struct {
	*archives
	storage *door
}

const coldDecisions = 3200

func newColdReads(t *testing.T) *coldReads {
	t.Helper()
	server := testenv.S3(t, "days")
	storage := newDoor(t, server.URL)
	a := newArchives(t, []string{"DOCKET_ARCHIVE_TO=s3://days/docket", "DOCKET_ARCHIVE_S3_ENDPOINT=" + storage.URL, "DOCKET_ARCHIVE_S3_ACCESS_KEY=" + server.AccessKey,
		"DOCKET_ARCHIVE_S3_SECRET_KEY=" + server.SecretKey, "DOCKET_KAFKA_BROKERS=127.0.0.1:1"})
	a.exec(`CREATE TABLE decision_logs_p20260305 PARTITION OF decision_logs FOR VALUES FROM ('2026-03-05 00:00+00') TO ('2026-03-06 00:00+00')`)
	a.rows("2026-03-05", coldDecisions-a.n)
	for _, args := range [][]string{{"archive", "--day", a.day}, {"archive", "--day", "2026-03-05", "--format", "jsonl"}} {
		if out, err := a.run(nil, args...); err != nil {
			t.Fatal(out, err)
		}
	}
	return &coldReads{a, storage}
}

// answer is that of a command which nobody kills.
func (c *coldReads) answer(cache string) (ids []string) {
	c.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := c.command(cache)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var found struct {
		Decisions []struct {
			ID string `json:"decision_id"`
		}
		NotLooked []string `json:"not_looked"`
		NotRead   []string `json:"not_read"`
		Next      string
	}
	err := cmd.Run()
	if decoded := json.Unmarshal(stdout.Bytes(), &found); err != nil || decoded != nil || len(found.NotLooked)+len(found.NotRead) > 0 || found.Next != "" {
		c.t.Fatalf("%v, %v: not looked %v, not read %v, next %q\n%s", err, decoded, found.NotLooked, found.NotRead, found.Next, stderr.String())
	}
	for _, d := range found.Decisions {
		ids = append(ids, d.ID)
	}
	return ids
}

func (c *coldReads) command(cache string) *exec.Cmd {
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(bin, "docket"), "logs", "--since", "2026-03-04", "--until", "2026-03-06", "--oldest", "-n", "5000", "--json")
	cmd.Env = append(slices.Clone(c.env), "DOCKET_CACHE_DIR="+cache)
	return cmd
}

// killed asks, and kills the command at the first answer of the storage that fits, after some of its bytes.
func (c *coldReads) killed(cache string, fits func(r *http.Request) bool, share float64) {
	c.t.Helper()
	var mu sync.Mutex
	cmd := c.command(cache)
	done := false
	c.storage.mu.Lock()
	c.storage.answer = func(r *http.Response) {
		mu.Lock()
		defer mu.Unlock()
		if done || !fits(r.Request) {
			return
		}
		done = true
		r.Body = &deadly{ReadCloser: r.Body, left: int64(share * float64(max(r.ContentLength, 0))), kill: func() {
			mu.Lock()
			defer mu.Unlock()
			_ = cmd.Process.Kill()
		}}
	}
	c.storage.mu.Unlock()
	mu.Lock()
	err := cmd.Start()
	mu.Unlock()
	if err != nil {
		c.t.Fatal(err)
	}
	err = cmd.Wait()
	mu.Lock()
	asked := done
	mu.Unlock()
	// With all bytes of the last file, the command can end before the proxy kills it.
	ended := share == 1 && asked && err == nil
	if !ended && (err == nil || !strings.Contains(err.Error(), "killed")) {
		c.t.Errorf("it was not killed: %v, asked %t", err, asked)
	}
	c.storage.mu.Lock()
	c.storage.answer = nil
	c.storage.mu.Unlock()
}

// deadly kills a command once it has passed some bytes on.
type deadly struct {
	io.ReadCloser
	left int64
	kill func()
}

func (d *deadly) Read(p []byte) (int, error) {
	if d.left <= 0 {
		d.kill()
		return 0, context.Canceled // the proxy ends the answer
	}
	n, err := d.ReadCloser.Read(p[:min(int64(len(p)), d.left)])
	if d.left -= int64(n); d.left <= 0 && errors.Is(err, io.EOF) {
		err = nil // the next read kills, once these bytes were passed on
	}
	return n, err
}

// TestColdReads_KilledAtEachStep kills real commands while they read archived days. The command after each of them shares its cache and
// its claims, and answers as if nothing had happened.
func TestColdReads_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	c := newColdReads(t)
	want := c.answer(t.TempDir())
	if len(want) != coldDecisions || c.everything() != "" {
		t.Fatalf("%d decisions", len(want))
	}
	names := func(suffix string) func(r *http.Request) bool {
		return func(r *http.Request) bool { return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, suffix) }
	}
	for step, fits := range map[string]func(r *http.Request) bool{
		"the list of files": func(r *http.Request) bool { return r.URL.Query().Has("list-type") },
		"a manifest":        names(".manifest.json"), "columns": names(".parquet"), "lines": names(".jsonl.gz"),
	} {
		for moment, share := range map[string]float64{"before": 0, "half": 0.5, "whole": 1} {
			began, cache := time.Now(), t.TempDir()
			c.killed(cache, fits, share)
			if got := c.answer(cache); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d decisions", step, moment, len(got))
			}
			t.Logf("%s, %s: %s", step, moment, time.Since(began))
		}
	}
	if out, err := c.run(nil, "archive", "verify", "--all"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
