package errclass_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"docket/internal/errclass"
)

// stateError has a SQLSTATE and, like some drivers, no constraint.
type stateError struct{ code string }

func (e stateError) Error() string    { return "server says something about a secret" }
func (e stateError) SQLState() string { return e.code }

// constraintError also names the constraint.
type constraintError struct {
	stateError
	constraint string
}

func (e constraintError) ConstraintName() string { return e.constraint }

func state(code string) error { return stateError{code} }

// wrapped wraps err in several layers, as a driver might.
func wrapped(err error) error {
	return fmt.Errorf("store batch: %w", &net.OpError{Op: "read", Net: "tcp", Err: fmt.Errorf("receive: %w", err)})
}

type uncomparable struct{ parts []string }

func (uncomparable) Error() string { return "parts" }

// overdue is a deadline error that is not the one of context.
type overdue struct{}

func (overdue) Error() string        { return "overdue" }
func (overdue) Is(target error) bool { return target == context.DeadlineExceeded }

type classifyCase struct {
	name  string
	err   error
	code  string
	class errclass.Class
	rule  errclass.Rule
}

func check(t *testing.T, cases []classifyCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := errclass.Classify(c.err)
			if got.Code != c.code || got.Class != c.class || got.Rule != c.rule {
				t.Errorf("got %s %s %s, want %s %s %s", got.Code, got.Class, got.Rule, c.code, c.class, c.rule)
			}
			if got.Name == "" || got.Why == "" {
				t.Errorf("no name or reason: %+v", got)
			}
		})
	}
}

func TestClassify_AgreesWithTheTable(t *testing.T) {
	t.Parallel()
	for _, want := range errclass.Table() {
		if len(want.Code) != 5 || want.Code[0] > 'Z' || want.Code == "23514" {
			continue
		}
		got := errclass.Classify(wrapped(state(want.Code)))
		if want.Rule == errclass.Pass {
			want.Rule, want.Class = errclass.Bug, errclass.Systemic
		}
		if got != want {
			t.Errorf("Classify(%s) = %+v, want %+v", want.Code, got, want)
		}
	}
}

func TestClassify_ErrorIsNeverSuccess(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"00000", "00ABC", "01000", "01P01", "02000", "02ZZZ"} {
		got := errclass.Classify(state(code))
		if got.Class != errclass.Systemic || got.Rule != errclass.Bug || got.Code != code {
			t.Errorf("Classify(%s) = %s %s, want systemic bug", code, got.Class, got.Rule)
		}
	}
	if got := errclass.Classify(nil); got.Class != errclass.OK || got.Rule != errclass.Pass {
		t.Errorf("Classify(nil) = %s %s", got.Class, got.Rule)
	}
}

func TestClassify_FindsTheSQLSTATE(t *testing.T) {
	t.Parallel()
	check(t, []classifyCase{
		{"bare", state("22P02"), "22P02", errclass.Data, errclass.Bisect},
		{"wrapped", wrapped(state("28P01")), "28P01", errclass.Systemic, errclass.Hold},
		{"joined", errors.Join(io.EOF, state("53300")), "53300", errclass.Transient, errclass.RetryPark},
		{"several verbs", fmt.Errorf("%w while %w", io.ErrUnexpectedEOF, state("3D000")), "3D000", errclass.Systemic, errclass.Hold},
		{"under a deadline", fmt.Errorf("%w: %w", context.DeadlineExceeded, state("57014")), "57014", errclass.Transient, errclass.RetryBisect},
		{"deep in joins", errors.Join(errors.New("x"), wrapped(errors.Join(io.EOF, fmt.Errorf("y: %w", state("40P01"))))), "40P01", errclass.Transient, errclass.RetryPark},
		{"beside a refused certificate", errors.Join(x509.UnknownAuthorityError{}, state("57P03")), "57P03", errclass.Transient, errclass.RetryPark},
		{"first of two", errors.Join(state("22001"), state("57P01")), "22001", errclass.Data, errclass.Bisect},
		{"first of two, turned round", errors.Join(state("57P01"), state("22001")), "57P01", errclass.Transient, errclass.RetryPark},
		{"behind its echo", errors.Join(state("25P02"), state("22001")), "22001", errclass.Data, errclass.Bisect},
		{"before its echo", errors.Join(state("22001"), state("25P02")), "22001", errclass.Data, errclass.Bisect},
		{"only the echo", wrapped(state("25P02")), "25P02", errclass.Systemic, errclass.Bug},
		{"unlisted", wrapped(state("23ABC")), "23ABC", errclass.Data, errclass.ProbeBisect},
		{"of no known class", state("AB123"), "AB123", errclass.Data, errclass.ProbeBisect},
		{"empty is none", wrapped(state("")), "network", errclass.Transient, errclass.RetryPark},
		{"malformed is none", state("22p02"), "internal", errclass.Unknown, errclass.RetryPark},
		{"empty outside, real inside", fmt.Errorf("%w: %w", state(""), state("42P01")), "42P01", errclass.Systemic, errclass.Hold},
	})
}

func TestClassify_MissingPartition(t *testing.T) {
	t.Parallel()
	check(t, []classifyCase{
		{"named", wrapped(constraintError{stateError{"23514"}, "ts_sane"}), "23514", errclass.Data, errclass.ProbeBisect},
		{"that of a migration under way", wrapped(constraintError{stateError{"23514"}, "decision_logs_before_cut"}), "23514", errclass.Systemic, errclass.Await},
		{"not named", wrapped(constraintError{stateError{"23514"}, ""}), "23514", errclass.Systemic, errclass.Hold},
		{"not told", wrapped(state("23514")), "23514", errclass.Data, errclass.ProbeBisect},
		{"other codes name none", constraintError{stateError{"23502"}, ""}, "23502", errclass.Data, errclass.ProbeBisect},
		{"a unique key that is not the decision's", constraintError{stateError{"23505"}, "decision_logs_pkey"}, "23505", errclass.Systemic, errclass.Hold},
	})
}

func TestClassification_OfTheMoment(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{wrapped(state("57P03")), true},
		{state("53300"), true},
		{wrapped(io.EOF), true},
		{context.DeadlineExceeded, true},
		{wrapped(os.NewSyscallError("socket", syscall.EMFILE)), true},
		{wrapped(syscall.ENFILE), true},
		{errclass.As(errors.New("x"), errclass.CodeDescriptors), true},
		{errors.Join(syscall.EMFILE, state("42501")), false},
		{state("25006"), false}, // RetryHold, too
		{state("22001"), false},
		{wrapped(state("42P01")), false},
		{x509.UnknownAuthorityError{}, false},
		{constraintError{stateError{"23514"}, errclass.BeforeCut}, false},
		{errors.New("what is this"), false},
		{context.Canceled, false},
	} {
		if v := errclass.Classify(c.err); v.OfTheMoment() != c.want {
			t.Errorf("%v (%s, %s): %t", c.err, v.Code, v.Class, !c.want)
		}
	}
}

func TestClassify_WithoutASQLSTATE(t *testing.T) {
	t.Parallel()
	dial := func(err error) error { return wrapped(&net.OpError{Op: "dial", Net: "tcp", Err: err}) }
	transient := func(name string, err error, code string) classifyCase {
		return classifyCase{name, err, code, errclass.Transient, errclass.RetryPark}
	}
	held := func(name string, err error, code string) classifyCase {
		return classifyCase{name, err, code, errclass.Systemic, errclass.Hold}
	}
	check(t, []classifyCase{
		transient("refused", dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "network"),
		transient("reset", fmt.Errorf("x: %w", syscall.ECONNRESET), "network"),
		transient("broken pipe", syscall.EPIPE, "network"),
		transient("no route", fmt.Errorf("x: %w", syscall.EHOSTUNREACH), "network"),
		transient("no such socket", dial(syscall.ENOENT), "network"),
		transient("EOF", fmt.Errorf("receive: %w", io.EOF), "network"),
		transient("unexpected EOF", fmt.Errorf("receive: %w", io.ErrUnexpectedEOF), "network"),
		transient("closed connection", fmt.Errorf("write: %w", net.ErrClosed), "network"),
		transient("closed pipe", io.ErrClosedPipe, "network"),
		transient("own deadline", fmt.Errorf("timeout: %w", context.DeadlineExceeded), "timeout"),
		transient("a deadline by its own word", wrapped(overdue{}), "timeout"),
		transient("deadline of the connection", wrapped(os.ErrDeadlineExceeded), "timeout"),
		transient("connect timed out", dial(syscall.ETIMEDOUT), "timeout"),
		transient("deadline beside a reset", errors.Join(syscall.ECONNRESET, context.DeadlineExceeded), "timeout"),
		transient("name service away", dial(&net.DNSError{IsTemporary: true}), "network"),
		transient("name service slow", dial(&net.DNSError{IsTimeout: true}), "timeout"),
		transient("not found, but only for now", dial(&net.DNSError{IsNotFound: true, IsTemporary: true}), "network"),
		transient("name service undecided", dial(&net.DNSError{}), "network"),
		held("no such host", dial(&net.DNSError{IsNotFound: true}), "dns"),
		held("no such host beside a refusal", errors.Join(dial(syscall.ECONNREFUSED), dial(&net.DNSError{IsNotFound: true})), "dns"),
		held("unknown authority", wrapped(x509.UnknownAuthorityError{}), "tls"),
		held("wrong host name", wrapped(x509.HostnameError{Certificate: &x509.Certificate{}}), "tls"),
		held("expired", wrapped(x509.CertificateInvalidError{Reason: x509.Expired}), "tls"),
		held("not verified", wrapped(&tls.CertificateVerificationError{Err: errors.New("x")}), "tls"),
		held("alert", wrapped(tls.AlertError(42)), "tls"),
		held("does not speak TLS", wrapped(tls.RecordHeaderError{}), "tls"),
		held("refused beside a timeout", errors.Join(context.DeadlineExceeded, x509.UnknownAuthorityError{}), "tls"),

		{"no descriptor left", dial(os.NewSyscallError("socket", syscall.EMFILE)), "no_descriptors", errclass.Systemic, errclass.RetryHold},
		{"none left on the host", errors.Join(context.DeadlineExceeded, dial(os.NewSyscallError("socket", syscall.ENFILE))), "no_descriptors", errclass.Systemic, errclass.RetryHold},
		{"one of two servers answered", errors.Join(dial(syscall.EMFILE), state("57P03")), "57P03", errclass.Transient, errclass.RetryPark},
		{"unrecognised", wrappedPlain(errors.New("what is this")), "internal", errclass.Unknown, errclass.RetryPark},
		{"unrecognised of a kind that cannot be compared", uncomparable{[]string{"x"}}, "internal", errclass.Unknown, errclass.RetryPark},
		{"a full disk of ours is no network", fmt.Errorf("x: %w", &fs.PathError{Op: "write", Err: syscall.ENOSPC}), "internal", errclass.Unknown, errclass.RetryPark},
	})
}

func wrappedPlain(err error) error { return fmt.Errorf("store: %w", err) }

func TestClassify_Cancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var dialer net.Dialer
	_, dialled := dialer.DialContext(ctx, "tcp", "127.0.0.1:1")
	ignored := func(name string, err error) classifyCase {
		return classifyCase{name, err, "canceled", errclass.Cancelled, errclass.Ignore}
	}
	check(t, []classifyCase{
		ignored("bare", context.Canceled),
		ignored("wrapped", wrapped(context.Canceled)),
		ignored("while dialling", fmt.Errorf("connect: %w", dialled)),
		ignored("our cancel as the server reports it", errors.Join(state("57014"), context.Canceled)),
		ignored("a rollback that was cut off", errors.Join(state("22P02"), fmt.Errorf("roll back: %w", context.Canceled))),
		ignored("while a commit was out", errclass.As(context.Canceled, errclass.CodeAmbiguousCommit)),
		ignored("while waiting for a connection", errclass.As(wrapped(context.Canceled), errclass.CodePoolExhausted)),
		{"somebody else's cancel", state("57014"), "57014", errclass.Transient, errclass.RetryBisect},
		{"a mark that knows better", errclass.As(context.Canceled, errclass.CodeTimeout), "timeout", errclass.Transient, errclass.RetryPark},
	})
}

func TestAs_WinsOverTheErrorInside(t *testing.T) {
	t.Parallel()
	as := errclass.As
	check(t, []classifyCase{
		{"over nothing known", as(errors.New("x"), errclass.CodeEncode), "encode", errclass.Data, errclass.Bisect},
		{"over a network failure", as(io.EOF, errclass.CodeProtocol), "protocol", errclass.Transient, errclass.RetryPark},
		{"over a SQLSTATE", as(wrapped(state("57014")), errclass.CodeTooSlow), "too_slow", errclass.Data, errclass.Bisect},
		{"under wrappers", wrapped(as(errors.New("x"), errclass.CodeConfig)), "config", errclass.Systemic, errclass.Hold},
		{"over another mark", as(wrapped(as(io.EOF, errclass.CodeConfig)), errclass.CodeEncode), "encode", errclass.Data, errclass.Bisect},
		{"commit unknown over a network failure", as(wrapped(io.EOF), errclass.CodeAmbiguousCommit), "ambiguous_commit", errclass.Transient, errclass.RetryPark},
		{"commit unknown over a deadline", as(context.DeadlineExceeded, errclass.CodeAmbiguousCommit), "ambiguous_commit", errclass.Transient, errclass.RetryPark},
		{"commit unknown over a refused certificate", as(x509.UnknownAuthorityError{}, errclass.CodeAmbiguousCommit), "ambiguous_commit", errclass.Transient, errclass.RetryPark},
		{"commit unknown over another mark", as(as(io.EOF, errclass.CodeConfig), errclass.CodeAmbiguousCommit), "ambiguous_commit", errclass.Transient, errclass.RetryPark},
		{"commit answered after all", as(wrapped(state("40001")), errclass.CodeAmbiguousCommit), "40001", errclass.Transient, errclass.RetryPark},
		{"commit refused for good", as(state("23503"), errclass.CodeAmbiguousCommit), "23503", errclass.Data, errclass.ParkOnceBisect},
		{"pool empty", as(context.DeadlineExceeded, errclass.CodePoolExhausted), "pool_exhausted", errclass.Transient, errclass.RetryPark},
		{"pool empty as the server refuses", as(wrapped(state("28P01")), errclass.CodePoolExhausted), "28P01", errclass.Systemic, errclass.Hold},
		{"conflict", as(errors.New("x"), errclass.CodeIDConflict), "id_conflict", errclass.Data, errclass.Bisect},
		{"pool closed", as(errors.New("x"), errclass.CodePoolClosed), "pool_closed", errclass.Systemic, errclass.Bug},
		{"no code of ours", as(io.EOF, "wheather"), "internal", errclass.Unknown, errclass.RetryPark},
		{"a SQLSTATE is no mark", as(io.EOF, "00000"), "internal", errclass.Unknown, errclass.RetryPark},
		{"beside a SQLSTATE the first counts", errors.Join(as(io.EOF, errclass.CodeEncode), state("53100")), "encode", errclass.Data, errclass.Bisect},
		{"a circumstance beside a SQLSTATE", errors.Join(as(io.EOF, errclass.CodeAmbiguousCommit), state("53100")), "53100", errclass.Systemic, errclass.Hold},
	})
}

func TestAs_LeavesTheErrorUnchanged(t *testing.T) {
	t.Parallel()
	if errclass.As(nil, errclass.CodeEncode) != nil {
		t.Error("nil became an error")
	}
	marked := errclass.As(fmt.Errorf("append: %w", io.EOF), errclass.CodeNetwork)
	if marked.Error() != "append: EOF" || !errors.Is(marked, io.EOF) {
		t.Errorf("got %q", marked)
	}
}

func TestClassify_NoTextOfTheServer(t *testing.T) {
	t.Parallel()
	v := errclass.Classify(wrapped(state("23514")))
	want, _ := errclass.Lookup("23514")
	if v != want {
		t.Errorf("got %+v, want the table's own words", v)
	}
}
