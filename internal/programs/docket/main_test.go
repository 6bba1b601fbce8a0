package docket

import (
	"bytes"
	"strings"
	"testing"

	"docket/internal/programs/cli"
	"docket/internal/programs/cli/term"
)

func call(environ []string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main("docket", cli.Env{Args: args, Environ: environ, Stdout: &out, Stderr: &errs}, strings.NewReader(""), term.Terminal{})
	return code, out.String(), errs.String()
}

func TestMain_ExitCodes(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]int{
		"": 0, "help": 0, "--help": 0, "version": 0, "settings": 0, "classify 23514": 0, "classify": 2, "dlq": 0, "dlq groups": 2, "dlq grups": 2,
		"desk --help": 0, "desk": 2, "desk now": 2, "check": 2, "migrate": 2, "verify": 2, "where-is": 2, "report": 2, "jobs list": 2, "nonsense": 2,
	} {
		if code, out, errs := call(nil, strings.Fields(args)...); code != want || code == 2 && errs == "" {
			t.Errorf("%q: exit %d, want %d\n%s%s", args, code, want, out, errs)
		}
	}
}

func TestSettings_OfConsumerToo(t *testing.T) {
	t.Parallel()
	const database = "DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable"
	for _, command := range []string{"check", "verify", "where-is decision-logs/0/1"} {
		code, _, errs := call([]string{database, "DOCKET_BATCH_MAX_RECORDS=many"}, strings.Fields(command)...)
		if code != 2 || !strings.Contains(errs, "DOCKET_BATCH_MAX_RECORDS") {
			t.Errorf("%s: exit %d\n%s", command, code, errs)
		}
	}
	if code, _, errs := call([]string{database, "DOCKET_BATCH_MAX_RECORDS=many"}, "dlq", "groups"); code != 1 || strings.Contains(errs, "BATCH") {
		t.Errorf("a setting of the consumer's stops the desk: exit %d\n%s", code, errs)
	}
}

// TestCheck_Archives: the check lists the archives where the settings name a place, and has no such line elsewhere.
func TestCheck_Archives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	environ := []string{"DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable", "DOCKET_KAFKA_BROKERS=127.0.0.1:1"}
	if code, out, errs := call(environ, "check"); code != 1 || !strings.Contains(out, "brokers") || strings.Contains(out, "archives") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	code, out, errs := call(append(environ, "DOCKET_ARCHIVE_TO="+dir), "check")
	if code != 1 || !strings.Contains(out, "\nok    archives: 0 archives in "+dir+"\n") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if code, out, errs := call(append(environ, "DOCKET_ARCHIVE_TO="+dir), "consume", "check"); code != 1 || strings.Contains(out, "archives") {
		t.Errorf("of the consumer alone: exit %d\n%s%s", code, out, errs)
	}
}

// TestVerify_SinceTheFuture: with nothing to check nothing would be broken.
func TestVerify_SinceTheFuture(t *testing.T) {
	t.Parallel()
	environ := []string{"DOCKET_DATABASE_URL=postgres://u:p@127.0.0.1:1/x?sslmode=disable", "DOCKET_KAFKA_BROKERS=127.0.0.1:1"}
	if code, _, errs := call(environ, "verify", "--since", "9999-01-01"); code != 2 || !strings.Contains(errs, `--since "9999-01-01" is in the future: nothing would be checked`) {
		t.Errorf("exit %d\n%s", code, errs)
	}
}
