//go:build integration

package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSupervise_NeverRoot(t *testing.T) {
	t.Parallel()
	play(t, "whoami")
}

func sceneWhoAmI(_ context.Context, dir, cache string) error {
	if os.Geteuid() == 0 {
		return fmt.Errorf("it runs as root")
	}
	for _, d := range []string{dir, cache} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
		file, err := os.CreateTemp(d, "probe-")
		if err != nil {
			return err
		}
		if err := os.Remove(file.Name()); err != nil {
			return err
		}
		info, err := os.Stat(d)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s is open to others: %v", d, info.Mode())
		}
	}
	if os.TempDir() != dir || os.Getenv("HOME") != dir {
		return fmt.Errorf("temporary files go to %s, home is %s", os.TempDir(), os.Getenv("HOME"))
	}
	return nil
}

func TestSupervise_RemovesHalfInstallation(t *testing.T) {
	t.Parallel()
	folder := strings.TrimSpace(play(t, "unpack"))
	if _, err := os.Stat(filepath.Dir(folder)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", folder, err)
	}
}

// sceneUnpack ends like a demo that is stopped while it unpacks Postgres.
func sceneUnpack(_ context.Context, dir, cache string) error {
	folder := unpacking(cache, dir)
	fmt.Println(folder)
	if err := os.MkdirAll(filepath.Join(folder, "temp_1"), 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "temp_1", "postgres"), nil, 0o600)
}

func TestSupervise_ExitStatus(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	status, err := Supervise(context.Background(), []string{"status"}, &out, &out)
	if status != 3 || err != nil {
		t.Errorf("status %d, %v, %s", status, err, out.String())
	}
}

func TestSupervise_CleanEnvironment(t *testing.T) {
	t.Parallel()
	got := innerEnv([]string{"PATH=/bin", "PGHOST=elsewhere", "DOCKET_DATABASE_URL=production", "HOME=/root", "TMPDIR=/x",
		EnvPostgresBin + "=/p", EnvPostgresRepository + "=r", envDir + "=forged", "LANG=C"})
	want := []string{"PATH=/bin", EnvPostgresBin + "=/p", EnvPostgresRepository + "=r", "LANG=C"}
	if !slices.Equal(got, want) {
		t.Errorf("kept %s", strings.Join(got, " "))
	}
}
