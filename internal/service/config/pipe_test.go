package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// pipe is a named pipe that is written to once, as tools do that give a secret to one reader.
func pipe(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { <-written })
	return path
}

// soon fails the test where do takes long, and ends what it waits for at that pipe.
func soon(t *testing.T, path string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("it waits for somebody who writes to the pipe once more")
		_ = os.WriteFile(path, []byte("late"), 0o600)
		<-done
	}
}

func TestSecret_PipeIsReadOnce(t *testing.T) {
	t.Parallel()
	path := pipe(t, "postgres://docket:secret@db/docket\n")
	s, _, err := Load(Consumer, []string{"DOCKET_KAFKA_BROKERS=localhost:9092", "DOCKET_DATABASE_URL_FILE=" + path})
	if err != nil {
		t.Fatal(err)
	}
	soon(t, path, func() {
		url, err := s.Fresh("DOCKET_DATABASE_URL", s.DatabaseURL)
		if err != nil || url != s.DatabaseURL {
			t.Errorf("another URL, or %v", err)
		}
	})
}

// The pipe of another program's secret is left to that program.
func TestReadPipes_OfOtherProgramsStay(t *testing.T) {
	t.Parallel()
	url, tokens := pipe(t, "postgres://docket:secret@db/docket"), pipe(t, "opa:0123456789abcdef")
	soon(t, url, func() {
		environ, err := ReadPipes([]string{"DOCKET_DATABASE_URL_FILE=" + url, "DOCKET_COLLECTOR_TOKENS_FILE=" + tokens}, Consumer, Desk)
		if want := []string{"DOCKET_COLLECTOR_TOKENS_FILE=" + tokens, "DOCKET_DATABASE_URL=postgres://docket:secret@db/docket"}; err != nil || !slices.Equal(environ, want) {
			t.Errorf("%q, %v", environ, err)
		}
	})
	soon(t, tokens, func() {
		if secret, err := readSecret(tokens); err != nil || secret != "opa:0123456789abcdef" {
			t.Errorf("its own program reads %q, %v", secret, err)
		}
	})
}

// A settings file that is a pipe holds the same for each program whose settings a command loads.
func TestFile_PipeIsReadOnce(t *testing.T) {
	t.Parallel()
	path := pipe(t, "kafka_brokers: [localhost:9092]\ndatabase_url: postgres://docket:secret@db/docket\ndesk_group: ours\n")
	soon(t, path, func() {
		environ := []string{"DOCKET_CONFIG=" + path}
		for _, p := range []Program{Consumer, Replayer, Desk} {
			if s, _, err := Load(p, environ); err != nil || s.DatabaseURL != "postgres://docket:secret@db/docket" {
				t.Errorf("%s: %v", p, err)
			}
		}
		if group := Lookup(Desk, environ, "DOCKET_DESK_GROUP"); group != "ours" {
			t.Errorf("the group is %q", group)
		}
	})
}

// A pipe has no size before it is read. More than a file may have is not read.
func TestFile_PipeWithTooMuch(t *testing.T) {
	t.Parallel()
	path := pipe(t, strings.Repeat("#", maxFile)+"\n")
	soon(t, path, func() {
		if _, _, err := Load(Consumer, []string{"DOCKET_CONFIG=" + path}); err == nil || !strings.Contains(err.Error(), "DOCKET_CONFIG: the file has more than 1048576 bytes") {
			t.Error(err)
		}
	})
}
