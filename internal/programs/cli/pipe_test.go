package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"docket/internal/service/config"
)

// TestWhole_SecretOfAPipe: the settings of two programs are loaded, and a pipe is read once. A shell makes one of <(command).
func TestWhole_SecretOfAPipe(t *testing.T) {
	t.Parallel()
	for secret, complaint := range map[string]string{"postgres://u:p@db/x": "", "": "DOCKET_DATABASE_URL_FILE: the file is empty"} {
		path := filepath.Join(t.TempDir(), "pipe")
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		type loaded struct {
			url  config.Secret
			ok   bool
			said string
		}
		done := make(chan loaded, 1)
		go func() {
			var said bytes.Buffer
			s, _, ok := whole(Env{Program: config.Desk, Environ: []string{"DOCKET_DATABASE_URL_FILE=" + path}, Stderr: &said})
			done <- loaded{s.DatabaseURL, ok, said.String()}
		}()
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil { // it waits for a reader
			t.Fatal(err)
		}
		got := wait(t, "the settings", done)
		if got.ok != (complaint == "") || string(got.url) != secret || !strings.Contains(got.said, complaint) {
			t.Errorf("%+v", got)
		}
	}
}
