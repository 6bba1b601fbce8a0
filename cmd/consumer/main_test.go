package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"docket/internal/service/config"
)

var update = flag.Bool("update", false, "write the golden files again")

// builtDirs are the folders of programs that tests built.
var builtDirs []string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		for _, dir := range builtDirs {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

func call(environ []string, args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = run(args, environ, &out, &err, nil)
	return code, out.String(), err.String()
}

func TestHelp_Complete(t *testing.T) {
	t.Parallel()
	code, got, _ := call(nil, "--help")
	if code != 0 {
		t.Errorf("exit %d", code)
	}
	golden(t, "help.golden", got)
	for _, s := range config.Table() {
		if s.Of(config.Consumer) && !strings.Contains(got, s.Name) {
			t.Errorf("%s is missing", s.Name)
		}
	}
}

// golden holds a text against the one in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-golden +got; go test -update writes it again):\n%s", name, diff)
	}
}

func TestHelp_EachCommand(t *testing.T) {
	t.Parallel()
	all := ""
	for _, c := range commands() {
		for _, args := range [][]string{{c.Name, "--help"}, {"help", c.Name}, {"help", c.Name, "--help"}} {
			code, out, errs := call(nil, args...)
			if code != 0 || !strings.Contains(out, "Usage:\n") || errs != "" {
				t.Errorf("%s: exit %d, %s%s", args, code, out, errs)
			}
			if args[0] != "help" {
				all += "$ consumer " + strings.Join(args, " ") + "\n" + out + "\n"
			}
		}
	}
	for line := range strings.Lines(all) {
		if len(line) > 101 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
	golden(t, "commands.golden", all)
}

func TestMain_ExitCodes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{"": 2, "run": 2, "version": 0, "help": 0, "classify 23514": 0, "classify": 2, "chek": 2, "--once": 2, "check --nothing": 2} {
		if code, _, _ := call(nil, strings.Fields(args)...); code != want {
			t.Errorf("%q: exit %d, want %d", args, code, want)
		}
	}
}
