//go:build integration

package demo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestTheInnerProcessIsNeverRootAndOwnsItsDirectory(t *testing.T) {
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

func TestTheExitStatusIsThatOfTheInnerProcess(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	status, err := Supervise(context.Background(), []string{"status"}, &out, &out)
	if status != 3 || err != nil {
		t.Errorf("status %d, %v, %s", status, err, out.String())
	}
}

func TestTheInnerProcessInheritsNothingThatSteersPostgresOrTheProgramsBehindItsBack(t *testing.T) {
	t.Parallel()
	got := innerEnv([]string{"PATH=/bin", "PGHOST=elsewhere", "DOCKET_DATABASE_URL=production", "HOME=/root", "TMPDIR=/x",
		EnvPostgresBin + "=/p", EnvPostgresRepository + "=r", envDir + "=forged", "LANG=C"})
	want := []string{"PATH=/bin", EnvPostgresBin + "=/p", EnvPostgresRepository + "=r", "LANG=C"}
	if !slices.Equal(got, want) {
		t.Errorf("kept %s", strings.Join(got, " "))
	}
}
