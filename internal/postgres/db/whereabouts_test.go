package db

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

func TestWhereabouts_LastGoodStays(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	dir := t.TempDir()
	passfile := filepath.Join(dir, "pgpass")
	keep := func(password string) {
		if err := os.WriteFile(passfile, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keep("s3cret-one")
	fromFile := "postgres://u@db.test/x?passfile=" + passfile
	url, broken := "postgres://u:s3cret@db.test/x", error(nil)
	db, err := Open(Config{URL: url, Fresh: func() (string, error) { return url, broken }}, zerolog.New(&out))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, step := range []struct {
		name           string
		change         func()
		user, password string
		lines          int // of the log, so far
	}{
		{"as it was", func() {}, "u", "s3cret", 0},
		{"a new password", func() { url = "postgres://u:s3cret-new@db.test/x" }, "u", "s3cret-new", 1},
		{"a new user", func() { url = "postgres://v:s3cret@db.test/x" }, "v", "s3cret", 2},
		{"half written", func() { url = "postgres://v:s3cr" }, "v", "s3cret", 3},
		{"empty", func() { url = "" }, "v", "s3cret", 3},
		{"not to be read", func() { broken = errors.New("open /run/secrets/s3cret") }, "v", "s3cret", 3},
		{"there again", func() { broken, url = nil, fromFile }, "u", "s3cret-one", 5},
		{"another password in passfile", func() { keep("s3cret-two") }, "u", "s3cret-two", 5},
		{"a file that is not there", func() { url = fromFile + "&sslmode=verify-full&sslrootcert=" + dir + "/s3cret.crt" }, "u", "s3cret-two", 6},
	} {
		step.change()
		cc := db.where.now()
		if cc.User != step.user || cc.Password != step.password {
			t.Errorf("%s: %s:%s, want %s:%s", step.name, cc.User, cc.Password, step.user, step.password)
		}
		if got := strings.Count(out.String(), "\n"); got != step.lines {
			t.Errorf("%s: %d lines of the log, want %d:\n%s", step.name, got, step.lines, &out)
		}
	}
	if strings.Contains(out.String(), "s3cr") || strings.Contains(out.String(), dir) {
		t.Errorf("the log has what is secret:\n%s", &out)
	}
}

func BenchmarkReadHowToConnect(b *testing.B) {
	db, err := Open(Config{URL: "postgres://u:p@db.test/x?sslmode=verify-full", Fresh: func() (string, error) { return "postgres://u:p@db.test/x?sslmode=verify-full", nil }}, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for b.Loop() {
		db.where.now()
	}
}
