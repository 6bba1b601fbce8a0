package desk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
	"docket/internal/programs/cli"
	"docket/internal/service/app"
	"docket/internal/service/config"
)

const planted = "hunter2marker"

// nowhere is a database and a Kafka that nobody answers for.
func nowhere(more ...string) []string {
	return append([]string{
		"DOCKET_DATABASE_URL=postgres://u:" + planted + "@127.0.0.1:1/x?sslmode=disable", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_HTTP_ADDR=127.0.0.1:0",
		"DOCKET_DESK_API_ADDR=127.0.0.1:0", "DOCKET_PROBE_INTERVAL=20ms",
	}, more...)
}

func settings(t *testing.T, environ []string) config.Settings {
	t.Helper()
	s, _, err := config.LoadWith(config.Desk, environ, Judges())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDesk_WithoutServers(t *testing.T) {
	t.Parallel()
	p, err := New(settings(t, nowhere()), zerolog.Nop(), prometheus.NewRegistry(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	want := []string{pipeline.ReasonDatabaseAway, "joining", "kafka_unreachable"}
	deadline := time.Now().Add(40 * time.Second)
	for {
		r, h := p.Readiness(), p.Health()
		var reasons []string
		for _, one := range r.Reasons {
			if reasons = append(reasons, one.Reason); one.Hint == "" {
				t.Errorf("%s does not say what to do", one.Reason)
			}
		}
		slices.Sort(reasons)
		if !h.Healthy || r.Ready {
			t.Fatalf("%+v %+v", r, h)
		}
		if slices.Equal(reasons, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it holds for %v, want %v", reasons, want)
		}
		time.Sleep(20 * time.Millisecond)
	}
	select {
	case err := <-ended:
		t.Fatalf("it ended by itself: %v", err)
	default:
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped, it ended with %v", err)
	}
}

func TestNew_AddressTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, variable := range []string{"DOCKET_HTTP_ADDR", "DOCKET_DESK_API_ADDR"} {
		_, err := New(settings(t, nowhere(variable+"="+l.Addr().String())), zerolog.Nop(), prometheus.NewRegistry(), Options{})
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

func TestDesks_OwnNames(t *testing.T) {
	t.Parallel()
	if a, b := instance(), instance(); a == b || !strings.HasPrefix(a, app.Instance()) {
		t.Errorf("%s and %s", a, b)
	}
}

func TestLedger_NoAnswer(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"42P01": app.ReasonMigration, "42703": app.ReasonMigration, "42704": app.ReasonMigration, "3F000": app.ReasonMigration,
		"42501": pipeline.ReasonDatabaseRefuses, "28P01": pipeline.ReasonDatabaseRefuses, "57P01": pipeline.ReasonDatabaseAway, "53300": pipeline.ReasonDatabaseAway,
	} {
		if h := holdOf(stated(code)); h.Reason != want || h.Code != code || h.Hint == "" {
			t.Errorf("%s is %+v, want %s", code, h, want)
		}
	}
	if h := holdOf(errclass.As(context.DeadlineExceeded, errclass.CodeTimeout)); h.Reason != pipeline.ReasonDatabaseAway {
		t.Errorf("no answer is %+v", h)
	}
	if h := holdOf(syscall.EMFILE); h.Reason != pipeline.ReasonDatabaseAway || !strings.Contains(h.Hint, "file descriptor") {
		t.Errorf("no descriptor is %+v", h)
	}
}

// stated is an error with a SQLSTATE.
type stated string

func (s stated) Error() string    { return "SQLSTATE " + string(s) }
func (s stated) SQLState() string { return string(s) }

func TestJudges_QuoteNothing(t *testing.T) {
	t.Parallel()
	_, _, err := config.LoadWith(config.Desk, nowhere(
		"DOCKET_DESK_ALERT_URLS=nothing://"+planted, "DOCKET_DESK_API_TOKENS=mara:boss:"+planted+planted, "DOCKET_DESK_API_CLIENTS=mara",
	), Judges())
	for _, variable := range []string{"DOCKET_DESK_ALERT_URLS: entry 1", "DOCKET_DESK_API_TOKENS: entry 1", "DOCKET_DESK_API_CLIENTS"} {
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("nothing is said of %s: %v", variable, err)
		}
	}
	if err != nil && strings.Contains(err.Error(), planted) {
		t.Errorf("a secret shows: %v", err)
	}
}

func TestSettings_ReaderJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, want string }{
		{"DOCKET_READER_SUBJECT=label:app", ""},
		{"DOCKET_READER_SUBJECT=input:/user/name", ""},
		{"DOCKET_READER_SUBJECT=user-" + planted, "DOCKET_READER_SUBJECT: want requested_by"},
		{"DOCKET_READER_SUBJECT=input:user", "DOCKET_READER_SUBJECT: want requested_by"},
		{"DOCKET_READER_SUBJECT=decision_id", "DOCKET_READER_SUBJECT: by decision_id every decision is a subject of its own"},
		{"DOCKET_READER_EXTRACTORS=a/b=allow:/ok, a/*=deny:", ""},
		{"DOCKET_READER_EXTRACTORS=a/b=allow:/ok,a/b=" + planted + ":/x", "DOCKET_READER_EXTRACTORS: extractor 2 is not PATH=ROLE:/POINTER"},
		{"DOCKET_READER_EXTRACTORS=a/b=subject:", "DOCKET_READER_EXTRACTORS: extractor 1: a subject needs a pointer"},
		{"DOCKET_READER_EXTRACTORS=a/b=allow:ok", "DOCKET_READER_EXTRACTORS: extractor 1: a JSON pointer must begin with /"},
	} {
		_, _, err := config.LoadWith(config.Desk, nowhere(c.set), Judges())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.set, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), planted) {
			t.Errorf("%s is quoted: %v", c.set, err)
		}
	}
}

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

func TestCommand_Demo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ, args []string
		code          int
		out, err      string
	}{
		"help":           {nil, []string{"--help"}, cli.Done, "docket desk\n", ""},
		"too much":       {nil, []string{"now"}, cli.Misuse, "", `unexpected argument "now"`},
		"no settings":    {nil, nil, cli.Misuse, "", "DOCKET_DATABASE_URL: is required"},
		"wrong settings": {nowhere("DOCKET_DESK_GROUP=docket"), nil, cli.Misuse, "", "DOCKET_DESK_GROUP: "},
	} {
		var out, errs buffer
		code := Main(cli.Env{Program: config.Desk, Environ: c.environ, Stdout: &out, Stderr: &errs, Judges: Judges()}, c.args)
		if code != c.code || !strings.Contains(out.String(), c.out) || !strings.Contains(errs.String(), c.err) {
			t.Errorf("%s: exit %d\n%s\n%s", name, code, out.String(), errs.String())
		}
	}
}

func TestSignal_StopsCommand(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	var errs buffer
	code := Main(cli.Env{Program: config.Desk, Environ: nowhere(), Signals: signals, Stdout: &buffer{}, Stderr: &errs, Judges: Judges()}, nil)
	if code != cli.Done || strings.Contains(errs.String(), planted) {
		t.Errorf("exit %d\n%s", code, errs.String())
	}
}

func TestSettings_DriverRefuses(t *testing.T) {
	t.Parallel()
	s := settings(t, nowhere())
	s.DatabaseURL = "postgres://u:" + planted + "@db/x?sslmode=sometimes"
	_, err := New(s, zerolog.Nop(), prometheus.NewRegistry(), Options{})
	var of *db.ConfigError
	if !errors.As(err, &of) || strings.Contains(fmt.Sprint(err), planted) {
		t.Errorf("%v", err)
	}
}
