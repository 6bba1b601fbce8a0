package db

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
)

// ServerError is an error that the server answered with: its code and the names it gave. The server's message, detail,
// hint and context are not kept anywhere, for they can quote the row.
type ServerError struct {
	code, severity, constraint, table, column string

	row     int
	located bool

	certless bool // the server asked for a certificate, and we have none that it would take
}

// NewServerError is an error that a server would answer with, found out by ourselves.
func NewServerError(code, severity string) *ServerError {
	return &ServerError{code: code, severity: severity}
}

// At notes the row that the server was at, see [ServerError.Row].
func (e *ServerError) At(row int) { e.row, e.located = row, true }

// SQLState is the five-character code.
func (e *ServerError) SQLState() string { return e.code }

// Severity is ERROR, FATAL or PANIC; with the latter two the connection is gone.
func (e *ServerError) Severity() string { return e.severity }

// ConstraintName is the constraint that was violated, empty where none was named.
func (e *ServerError) ConstraintName() string { return e.constraint }

// TableName is the table concerned, empty where none was named.
func (e *ServerError) TableName() string { return e.table }

// ColumnName is the column concerned, empty where none was named.
func (e *ServerError) ColumnName() string { return e.column }

// Row is the index, in the rows that were given to the store, of the one that the server was at. It is a hint of where to
// look first and proves nothing; ok is false where there is none.
func (e *ServerError) Row() (index int, ok bool) { return e.row, e.located }

func (e *ServerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "SQLSTATE %s", e.code)
	if v, ok := errclass.Lookup(e.code); ok && v.Name != "" {
		fmt.Fprintf(&b, " (%s)", v.Name)
	}
	for _, named := range []struct{ what, name string }{{"constraint", e.constraint}, {"table", e.table}, {"column", e.column}} {
		if named.name != "" {
			fmt.Fprintf(&b, ", %s %s", named.what, named.name)
		}
	}
	return b.String()
}

// AnswerError says that the server answered, but not in a way that makes sense.
type AnswerError struct {
	// Problem is in words of our own.
	Problem string
}

func (e *AnswerError) Error() string { return e.Problem }

// ownWords is an error whose text is in words of our own and safe to show.
type ownWords interface {
	error
	OwnWords()
}

// failure is what leaves the package: an act, and the causes that are safe to show and to decide by.
type failure struct {
	act    string
	causes []error
	mark   string // Docket's code that it is marked with; empty: none
}

// Hint says what an operator can do about it, as [Hint] does.
func (f *failure) Hint() string {
	if f.mark == "" {
		return Hint(f)
	}
	return Hint(errclass.As(f, f.mark))
}

func (f *failure) Error() string {
	var words []string
	for _, cause := range f.causes {
		if w := describe(cause); !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return f.act + ": " + strings.Join(words, "; ")
}

func (f *failure) Unwrap() []error { return f.causes }

// Clean replaces err by what of it is safe: several hosts can have failed, each in its own way. A mark of errclass on
// the outside stays.
func Clean(act string, err error) error {
	f := &failure{act: act}
	f.collect(err)
	code, marked := ownMark(err)
	if len(f.causes) == 0 {
		f.causes = []error{&AnswerError{Problem: "an answer that is not understood"}}
		if !marked {
			code, marked = errclass.CodeProtocol, true
		}
	}
	if !marked {
		return f
	}
	f.mark = code
	return errclass.As(f, code)
}

// ownMark is the code that errclass.As gave err or something around its causes.
func ownMark(err error) (string, bool) {
	v := errclass.Classify(err)
	_, isState := AsServerError(err)
	return v.Code, !isState && slices.Contains(markedHere, v.Code)
}

var markedHere = []string{
	errclass.CodeAmbiguousCommit, errclass.CodePoolExhausted, errclass.CodePoolClosed,
	errclass.CodeProtocol, errclass.CodeConfig, errclass.CodeCommitRollback, errclass.CodeTLS, errclass.CodeSwallowed,
}

// collect keeps the errors that we know how to show and goes into those that only wrap.
func (f *failure) collect(err error) {
	if err == nil {
		return
	}
	if kept, ok := safe(err); ok {
		f.causes = append(f.causes, kept)
		return
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		f.collect(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			f.collect(inner)
		}
	}
}

// safe decides by type what is kept.
func safe(err error) (error, bool) { //nolint:revive // the error is what it is about, not how it went
	switch e := err.(type) {
	case *pgconn.PgError:
		return ServerErrorOf(e), true
	case *net.OpError:
		if alert, ok := alertOf(e); ok {
			return alert, true
		}
		return err, true
	case *ServerError, *AnswerError, *ConfigError, ownWords, *noTLSError, *net.DNSError, syscall.Errno:
		return err, true
	case x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError, x509.SystemRootsError,
		*tls.CertificateVerificationError, tls.RecordHeaderError, tls.AlertError:
		return err, true
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, os.ErrDeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.EPIPE} {
		if err == known {
			return err, true
		}
	}
	if err == pgconn.ErrConnClosed {
		return net.ErrClosed, true
	}
	return nil, false
}

// ServerErrorOf keeps of an answer what is safe to show.
func ServerErrorOf(e *pgconn.PgError) *ServerError {
	s := &ServerError{
		code: e.Code, severity: e.SeverityUnlocalized,
		constraint: Identifier(e.ConstraintName), table: Identifier(e.TableName), column: Identifier(e.ColumnName),
	}
	if _, ok := errclass.Lookup(s.code); !ok || len(s.code) != 5 {
		s.code = "XX000"
	}
	if s.severity == "" {
		s.severity = e.Severity // a pooler's own words have no other
	}
	if s.severity != "FATAL" && s.severity != "PANIC" {
		s.severity = "ERROR"
	}
	return s
}

// Identifier keeps an identifier as it is and makes anything else harmless: a trigger may put what it likes there. It never
// becomes empty, as a missing name has a meaning of its own.
func Identifier(s string) string {
	const longest = 63 // the longest that Postgres allows
	s = strings.Map(func(r rune) rune {
		if r == '_' || r == '$' || r == '.' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return '?'
	}, s)
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "")
	}
	return s
}

// SessionName names a session of the server: its number, what its program calls itself, and since when its transaction is open.
func SessionName(pid int32, program string, begun *time.Time) string {
	name := fmt.Sprintf("session %d", pid)
	if pid == 0 { // as pg_blocking_pids has it
		name = "a prepared transaction"
	}
	if program != "" {
		name += " (" + Identifier(program) + ")"
	}
	if begun != nil {
		name += ", since " + begun.UTC().Format(time.RFC3339)
	}
	return name
}

// AsServerError finds the server's answer in err, also where it is the driver's.
func AsServerError(err error) (*ServerError, bool) {
	var s *ServerError
	if errors.As(err, &s) {
		return s, true
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return ServerErrorOf(pg), true
	}
	return nil, false
}

// ErrPoolClosed is the error of a pool that was closed.
func ErrPoolClosed() error {
	return errclass.As(&AnswerError{Problem: "the pool is closed"}, errclass.CodePoolClosed)
}

// Stays says whether the connection is as good after err as it was.
func Stays(err error) bool {
	s, ok := AsServerError(err)
	return ok && s.Severity() == "ERROR"
}
