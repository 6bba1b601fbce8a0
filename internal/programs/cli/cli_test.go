package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"docket/internal/audit/check"
	"docket/internal/consumer/pipeline"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
	"docket/migrations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestMigrate_DocsCount: readers of docs/install.md compare the number.
func TestMigrate_DocsCount(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	last := max(migrations.Partitions, migrations.Indexes, migrations.Hash, migrations.Unfaithful, migrations.Uploader, migrations.Edited, migrations.FunctionAgain)
	files, err := migrations.FS.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		if n, err := strconv.Atoi(number); err == nil {
			last = max(last, n)
		}
	}
	if want := fmt.Sprintf("`migrate` ends with `%d migrations applied, the schema is up to date`", last); !strings.Contains(string(text), want) {
		t.Errorf("docs/install.md does not say: %s", want)
	}
}

const planted = "hunter2marker"

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// commands are those of both programs, in one, with a demo that tells what it was given.
func commands() []Command {
	return []Command{
		Run("Run.", true),
		{Name: "demo", Args: "[flags]", Text: "Demo.", Raw: true, Run: func(env Env, args []string) int {
			_, _ = env.Stdout.Write([]byte("demo " + strings.Join(args, " ")))
			return 7
		}},
		Check(), Migrate(), Verify(), WhereIs(), Classify(), Health(), Version(),
	}
}

type result struct {
	code     int
	out, err string
}

func call(p config.Program, environ []string, args ...string) result {
	var out, err buffer
	code := Main(Env{Program: p, Args: args, Environ: environ, Stdout: &out, Stderr: &err}, commands())
	return result{code, out.String(), err.String()}
}

func TestCommandLine_Checks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"help":                    {[]string{"help"}, Done, "Exit codes:", ""},
		"--help":                  {[]string{"--help"}, Done, "DOCKET_KAFKA_BROKERS=localhost:9092", ""},
		"-h":                      {[]string{"-h"}, Done, "Examples:", ""},
		"help of a command":       {[]string{"help", "check"}, Done, "--json", ""},
		"a command's --help":      {[]string{"check", "--help"}, Done, "consumer check [flags]", ""},
		"a command's -h":          {[]string{"migrate", "-h"}, Done, "consumer migrate", ""},
		"run's help":              {[]string{"run", "--help"}, Done, "A second signal stops at once", ""},
		"help of help":            {[]string{"help", "--help"}, Done, "Exit codes:", ""},
		"help of help, twice":     {[]string{"help", "help"}, Done, "Exit codes:", ""},
		"help of two":             {[]string{"help", "check", "verify"}, Misuse, "", `unexpected argument "verify"`},
		"--help of a command":     {[]string{"--help", "check"}, Done, "--json", ""},
		"help of help and one":    {[]string{"help", "--help", "check"}, Done, "--json", ""},
		"unknown, with help":      {[]string{"chekc", "--help"}, Misuse, "", "did you mean check?"},
		"flag behind a value":     {[]string{"verify", "--since", "1h", "--jsno"}, Misuse, "", "did you mean --json?"},
		"flag behind an argument": {[]string{"classify", "too_large", "--json"}, Done, `"too_large"`, ""},
		"no flag behind --":       {[]string{"classify", "--", "--json"}, Failed, "--json", ""},
		"version, twice":          {[]string{"--version", "x"}, Misuse, "", "unexpected argument"},
		"help of nothing":         {[]string{"help", "nothing"}, Misuse, "", `unknown command "nothing"`},
		"version":                 {[]string{"version"}, Done, " (revision ", ""},
		"version --json":          {[]string{"version", "--json"}, Done, `"goversion": "go1.`, ""},
		"--version":               {[]string{"--version"}, Done, "consumer ", ""},
		"version with too much":   {[]string{"version", "x"}, Misuse, "", `unexpected argument "x"`},
		"unknown command":         {[]string{"chekc"}, Misuse, "", `unknown command "chekc"; did you mean check?`},
		"unknown far command":     {[]string{"frobnicate"}, Misuse, "", "unknown command \"frobnicate\"\nSee consumer --help.\n"},
		"escape in a command":     {[]string{"\x1b[31m\n"}, Misuse, "", `"\x1b[31m\n"`},
		"unknown flag":            {[]string{"--onec"}, Misuse, "", `unknown flag "--onec"; did you mean --once?`},
		"unknown flag of check":   {[]string{"check", "-jsno=x"}, Misuse, "", `unknown flag "-jsno"; did you mean --json?`},
		"bad value of a flag":     {[]string{"check", "--json=maybe"}, Misuse, "", "invalid boolean value"},
		"raw command":             {[]string{"demo", "--records", "5", "--help"}, 7, "demo --records 5 --help", ""},
		"classify":                {[]string{"classify", "40001", "too_large", "22p02"}, Done, "serialization_failure", ""},
		"classify nothing":        {[]string{"classify"}, Misuse, "", "give a code"},
		"classify nonsense":       {[]string{"classify", "nonsense"}, Failed, "nonsense", ""},
		"run without settings":    {nil, Misuse, "", "DOCKET_DATABASE_URL: is required"},
		"check without":           {[]string{"check"}, Misuse, "", "DOCKET_DATABASE_URL: is required"},
		"migrate without":         {[]string{"migrate"}, Misuse, "", "DOCKET_DATABASE_URL: is required"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := call(config.Consumer, nil, c.args...)
			if r.code != c.code || !strings.Contains(r.out, c.out) || !strings.Contains(r.err, c.err) || (c.err == "") != (r.err == "") || (c.out == "") != (r.out == "") {
				t.Errorf("exit %d\nstdout %s\nstderr %s", r.code, r.out, r.err)
			}
		})
	}
}

// TestUse_CheckedBeforeSettings: a slip is told as such where no setting is set yet.
func TestUse_CheckedBeforeSettings(t *testing.T) {
	t.Parallel()
	wrong := map[string][]string{
		"run": {"--bogus", "x"}, "check": {"--bogus", "x"}, "migrate": {"--bogus", "x"}, "verify": {"--since x", "--from x", "--from a/b/c", "--spool=", "x"},
		"where-is": {"", "a b", "a --since x"}, "classify": {"", "--bogus"}, "health": {"x"}, "version": {"x"}, "demo": nil, // it reads no settings
	}
	for _, c := range commands() {
		cases, there := wrong[c.Name]
		if !there {
			t.Errorf("no wrong use of %s is tried", c.Name)
		}
		for _, more := range cases {
			r := call(config.Consumer, nil, append([]string{c.Name}, strings.Fields(more)...)...)
			if r.code != Misuse || strings.Contains(r.err, "DOCKET_") || !strings.Contains(r.err, "--help.\n") || r.out != "" {
				t.Errorf("%s %s: exit %d\n%s%s", c.Name, more, r.code, r.out, r.err)
			}
		}
	}
}

func TestSettings_AllComplaints(t *testing.T) {
	t.Parallel()
	wrong := []string{
		"DOCKET_DATABASE_URL=mysql://u:" + planted + "@db/x", "DOCKET_KAFKA_SASL_PASSWORD=" + planted, "DOCKET_BATCH_MAX_BYTES=8", "DOCKET_STORE_TIMEOUT=x",
		"DOCKET_LOG_LEVEL=loud", "DOCKET_SPOOL_ON_FULL=drop", "DOCKET_PARK_BATCHES=-1", "DOCKET_HTTP_ADDR=x", "DOCKET_KAFKA_TOPIC=a/b", "DOCKET_AUTO_MIGRATE=1",
	}
	for _, command := range []string{"run", "check", "migrate"} {
		r := call(config.Consumer, wrong, command)
		lines := strings.Split(strings.TrimSpace(r.err), "\n")
		if r.code != Misuse || len(lines) != 11 { // the login lacks two
			t.Errorf("%s: exit %d, %d lines:\n%s", command, r.code, len(lines), r.err)
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "DOCKET_") {
				t.Errorf("%s: %q names no variable", command, line)
			}
		}
		if strings.Contains(r.err+r.out, planted) {
			t.Errorf("%s shows a secret", command)
		}
	}
}

func TestSettings_DriverRefusesAmongOthers(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{nil, {"check"}, {"migrate"}} {
		r := call(config.Consumer, []string{"DOCKET_DATABASE_URL=postgres://u:geheim@h:99999/x", "DOCKET_LOG_LEVEL=loud", "DOCKET_HTTP_ADDR=nowhere"}, command...)
		if r.code != Misuse || strings.Count(r.err, "\n") != 3 || strings.Contains(r.err, "geheim") || !strings.HasPrefix(r.err, "DOCKET_DATABASE_URL: ") {
			t.Errorf("%v: %d %q", command, r.code, r.err)
		}
	}
}

func TestSettings_DriverRefusesURL(t *testing.T) {
	t.Parallel()
	env := []string{"DOCKET_DATABASE_URL=postgres://u:" + planted + "@db/x?sslmode=sometimes", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_SPOOL_DIR="}
	for _, command := range []string{"run", "migrate"} {
		r := call(config.Consumer, env, command)
		if r.code != Misuse || !strings.HasPrefix(r.err, "DOCKET_DATABASE_URL: ") || strings.Contains(r.err, planted) {
			t.Errorf("%s: exit %d, %s", command, r.code, r.err)
		}
	}
}

func TestMigrate_Hint(t *testing.T) {
	t.Parallel()
	r := call(config.Consumer, []string{"DOCKET_DATABASE_URL=postgres://u:" + planted + "@127.0.0.1:1/x", "DOCKET_XYZ=1"}, "migrate")
	if r.code != Failed || !strings.Contains(r.err, "the database cannot be reached") || !strings.Contains(r.err, "warning: DOCKET_XYZ") || strings.Contains(r.err, planted) {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
}

func TestHealth_AsksProgram(t *testing.T) {
	t.Parallel()
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			t.Errorf("asked %s", r.URL)
		}
		w.WriteHeader(status)
	}))
	addr := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []string{addr, ":" + port, "0.0.0.0:" + port} {
		if r := call(config.Consumer, []string{"DOCKET_HTTP_ADDR=" + a}, "health"); r.code != Done {
			t.Errorf("%s: exit %d, %s", a, r.code, r.err)
		}
	}
	status = http.StatusServiceUnavailable
	if r := call(config.Consumer, []string{"DOCKET_HTTP_ADDR=" + addr}, "health"); r.code != Failed || !strings.Contains(r.err, "503") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	server.Close()
	if r := call(config.Consumer, []string{"DOCKET_HTTP_ADDR=" + addr}, "health"); r.code != Failed {
		t.Errorf("nobody is there: exit %d", r.code)
	}
	for _, a := range []string{"127.0.0.1:0", "nonsense"} {
		if r := call(config.Consumer, []string{"DOCKET_HTTP_ADDR=" + a}, "health"); r.code != Misuse || !strings.Contains(r.err, "DOCKET_HTTP_ADDR") {
			t.Errorf("%s: exit %d, %s", a, r.code, r.err)
		}
	}
	if got, err := healthURL("[::]:8080"); err != nil || got != "http://[::1]:8080/healthz" {
		t.Errorf("healthURL = %s, %v", got, err)
	}
}

func TestCheck_Results(t *testing.T) {
	t.Parallel()
	all := []check.Result{{Level: check.OK, What: "a", Detail: "b"}, {Level: check.Fail, What: "c", Detail: "d <e>", Hint: "f"}}
	var out bytes.Buffer
	if code := show(&out, all, false); code != Failed || out.String() != "ok    a: b\nfail  c: d <e>; f\n" {
		t.Errorf("exit %d, %q", code, out.String())
	}
	out.Reset()
	var back struct {
		Failed bool
		Checks []check.Result
	}
	if code := show(&out, all, true); code != Failed || json.Unmarshal(out.Bytes(), &back) != nil || !back.Failed || !cmp.Equal(back.Checks, all) {
		t.Errorf("exit %d, %s", code, out.String())
	}
	all[1].Level = check.Warn
	if code := show(&out, all, false); code != Done {
		t.Errorf("a warning ends with %d", code)
	}
}

// source reads nothing until it is stopped, and longer where it is stuck.
type source struct {
	begun chan struct{}
	stuck chan struct{}
	ended chan struct{}
}

func (s *source) Run(ctx context.Context, _ func(context.Context, app.Assignment) error) error {
	defer close(s.ended)
	close(s.begun)
	<-ctx.Done()
	if s.stuck != nil {
		<-s.stuck
	}
	return nil
}
func (*source) Assigned() int                       { return 0 }
func (*source) Partitions() int                     { return 0 }
func (*source) Joined() bool                        { return true }
func (*source) Fault() error                        { return nil }
func (*source) Lag() []telemetry.Lag                { return nil }
func (*source) LastCommit() time.Time               { return time.Time{} }
func (*source) Retention() map[string]time.Duration { return nil }

// database is there and takes everything.
type database struct{}

func (database) Store(_ context.Context, rows []pipeline.Row, _ bool) ([]pipeline.Outcome, error) {
	return slices.Repeat([]pipeline.Outcome{pipeline.Stored}, len(rows)), nil
}
func (database) Foresee(context.Context, []pipeline.Row, string) ([]int, error) { return nil, nil }
func (database) Refusals(_ context.Context, rows []pipeline.Row, _ time.Time) ([]error, error) {
	return make([]error, len(rows)), nil
}

func (database) Probe(context.Context, time.Time) error { return nil }
func (database) Migrate(context.Context) (int, error)   { return 0, nil }
func (database) MakePartitions(context.Context, int) (int, error) {
	return 0, nil
}

func start(t *testing.T, s *source) (code chan int, signals chan os.Signal, stderr *buffer, closed chan struct{}) {
	t.Helper()
	code, signals, stderr, closed = make(chan int, 1), make(chan os.Signal, 2), &buffer{}, make(chan struct{})
	s.begun, s.ended = make(chan struct{}), make(chan struct{})
	env := Env{
		Program: config.Consumer, Signals: signals, Stdout: &buffer{}, Stderr: stderr,
		Environ: []string{"DOCKET_DATABASE_URL=postgres://u:" + planted + "@db/x", "DOCKET_HTTP_ADDR=127.0.0.1:0"},
		Options: app.Options{Parts: &app.Parts{Sources: []app.Source{s}, Database: database{}, Close: func() { close(closed) }}},
	}
	go func() { code <- Main(env, commands()) }()
	<-s.begun
	return code, signals, stderr, closed
}

func wait[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", what)
	}
	return v
}

func TestSignal_FirstStops(t *testing.T) {
	t.Parallel()
	s := &source{}
	code, signals, stderr, closed := start(t, s)
	signals <- syscall.SIGTERM
	if c := wait(t, "the exit", code); c != Done {
		t.Errorf("exit %d, %s", c, stderr)
	}
	wait(t, "the parts to close", closed)
	if strings.Contains(stderr.String(), planted) {
		t.Error("a secret shows")
	}
}

func TestSignal_SecondEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := &source{stuck: make(chan struct{})}
	code, signals, stderr, _ := start(t, s)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGINT
	if c := wait(t, "the exit", code); c != Failed || !strings.Contains(stderr.String(), "second signal: stopped at once") {
		t.Errorf("exit %d, %s", c, stderr)
	}
	close(s.stuck)
	wait(t, "the source", s.ended)
}

// TestSignal_HangupIsNoSecond: a terminal that goes away may send several, and a service manager one beside SIGTERM.
func TestSignal_HangupIsNoSecond(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string][]os.Signal{
		"twice": {syscall.SIGHUP, syscall.SIGHUP}, "before SIGTERM": {syscall.SIGHUP, syscall.SIGTERM}, "after SIGTERM": {syscall.SIGTERM, syscall.SIGHUP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signals, ended, stopped := make(chan os.Signal), make(chan error), make(chan struct{}, len(sent))
			code := make(chan int, 1)
			go func() {
				code <- await(Env{Program: config.Consumer, Stderr: io.Discard, Signals: signals}, func() { stopped <- struct{}{} }, ended, func() {})
			}()
			for _, s := range sent {
				signals <- s
				select {
				case <-stopped:
				case c := <-code:
					t.Fatalf("exit %d after %v", c, s)
				}
			}
			select {
			case ended <- nil:
			case c := <-code:
				t.Fatalf("exit %d", c)
			}
			if c := wait(t, "the exit", code); c != Done {
				t.Errorf("exit %d", c)
			}
		})
	}
}

func TestSignal_SecondNamesUnfinishedWork(t *testing.T) {
	t.Parallel()
	for p, want := range map[config.Program]string{config.Consumer: "will be read again", config.Collector: "will be sent again"} {
		var said bytes.Buffer
		if code := atOnce(Env{Program: p, Stderr: &said}); code != Failed || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit %d, %s", p, code, said.String())
		}
	}
}
