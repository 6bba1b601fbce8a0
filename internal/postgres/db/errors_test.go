package db

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
)

const secret = "s3cret"

func serverSays(code string) *pgconn.PgError {
	return &pgconn.PgError{Severity: secret, SeverityUnlocalized: "ERROR", Code: code, Message: secret, Detail: secret, Hint: secret,
		InternalQuery: secret, Where: secret, SchemaName: secret, DataTypeName: secret, File: secret, Routine: secret,
		TableName: "decision_logs", ColumnName: "path", ConstraintName: "odd"}
}

func TestClean_KeepsOnlyWhatDecides(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5432}, Err: syscall.ECONNREFUSED}
	wrapped := func(err error) error { return fmt.Errorf("%s: %w", secret, err) }
	for name, c := range map[string]struct {
		err  error
		code string
		text string
	}{
		"server":  {wrapped(serverSays("23514")), "23514", "act: SQLSTATE 23514 (check_violation), constraint odd, table decision_logs, column path"},
		"no code": {serverSays(secret), "XX000", "act: SQLSTATE XX000 (internal_error), constraint odd, table decision_logs, column path"},
		"two hosts, one read-only": {errors.Join(wrapped(refused), wrapped(&ServerError{code: "25006", severity: "ERROR"})), "25006",
			"act: dial 10.0.0.1:5432: connection refused; SQLSTATE 25006 (read_only_sql_transaction)"},
		"one host twice":    {errors.Join(wrapped(refused), wrapped(refused)), "network", "act: dial 10.0.0.1:5432: connection refused"},
		"no descriptor":     {wrapped(&net.OpError{Op: "dial", Net: "tcp", Addr: refused.Addr, Err: os.NewSyscallError("socket", syscall.EMFILE)}), "no_descriptors", "act: dial 10.0.0.1:5432: too many open files"},
		"no such host":      {wrapped(&net.DNSError{Err: secret, Name: "db.example", Server: secret, IsNotFound: true}), "dns", `act: there is no host "db.example"`},
		"untrusted":         {wrapped(x509.UnknownAuthorityError{}), "tls", "act: TLS: the server's certificate is of an unknown authority"},
		"wrong name":        {wrapped(x509.HostnameError{Certificate: &x509.Certificate{}, Host: secret}), "tls", "act: TLS: the server's certificate is for another host name"},
		"lost":              {wrapped(io.ErrUnexpectedEOF), "network", "act: the connection was lost"},
		"closed by us":      {wrapped(pgconn.ErrConnClosed), "network", "act: the connection was lost"},
		"late":              {wrapped(context.DeadlineExceeded), "timeout", "act: no answer in time"},
		"stopped":           {wrapped(context.Canceled), "canceled", "act: stopped"},
		"unknown":           {wrapped(errors.New(secret)), "protocol", "act: an answer that is not understood"},
		"ambiguous":         {errclass.As(wrapped(io.EOF), errclass.CodeAmbiguousCommit), "ambiguous_commit", "act: the connection was lost"},
		"ambiguous, unread": {errclass.As(errors.New(secret), errclass.CodeAmbiguousCommit), "ambiguous_commit", "act: an answer that is not understood"},
		"ambiguous, told":   {errclass.As(wrapped(serverSays("57P01")), errclass.CodeAmbiguousCommit), "57P01", "act: SQLSTATE 57P01 (admin_shutdown), constraint odd, table decision_logs, column path"},
		"ambiguous, ours":   {errclass.As(wrapped(context.Canceled), errclass.CodeAmbiguousCommit), "canceled", "act: stopped"},
		"pool full":         {errclass.As(wrapped(context.DeadlineExceeded), errclass.CodePoolExhausted), "pool_exhausted", "act: no answer in time"},
		"pool closed":       {ErrPoolClosed(), "pool_closed", "act: the pool is closed"},
		"settings":          {errclass.As(&ConfigError{Reason: "it is empty"}, errclass.CodeConfig), "config", "act: the database URL cannot be used: it is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := Clean("act", c.err)
			if got := errclass.Classify(err).Code; got != c.code {
				t.Errorf("code %s, want %s", got, c.code)
			}
			if err.Error() != c.text {
				t.Errorf("text %q, want %q", err, c.text)
			}
			if s := fmt.Sprintf("%v %+v", err, err); strings.Contains(s, secret) {
				t.Errorf("a secret in %s", s)
			}
			var pg *pgconn.PgError
			if errors.As(err, &pg) {
				t.Error("the driver's error can still be reached")
			}
		})
	}
}

func TestIdentifier_HarmlessAndNeverEmpty(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"": "", "decision_logs_pkey": "decision_logs_pkey", "größe": "größe", "a b\nc\x1b": "a?b?c?", "'": "?",
		strings.Repeat("ö", 40): strings.Repeat("ö", 31), "\xff": "?",
	} {
		if got := Identifier(given); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
}

func TestHint_EachForAKnownCode(t *testing.T) {
	t.Parallel()
	for code, hint := range hints {
		if _, ok := errclass.Lookup(code); !ok || hint == "" {
			t.Errorf("%s: %q", code, hint)
		}
	}
	if Hint(nil) != "" || Hint(errors.New("x")) != "" {
		t.Error("a hint for nothing")
	}
	if !strings.Contains(Hint(Clean("act", serverSays("42P01"))), "consumer migrate") {
		t.Error("no word of `consumer migrate` for 42P01")
	}
}
