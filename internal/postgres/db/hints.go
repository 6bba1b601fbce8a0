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
	"syscall"

	"docket/internal/errclass"
)

// describe puts a cause into words of our own; only hosts and ports come from outside.
func describe(err error) string {
	var errno syscall.Errno
	switch e := err.(type) {
	case *ServerError, *AnswerError, *ConfigError, ownWords, *noTLSError:
		return err.Error()
	case *net.DNSError:
		if e.IsNotFound {
			return fmt.Sprintf("there is no host %q", e.Name)
		}
		return fmt.Sprintf("the name of host %q could not be looked up", e.Name)
	case *net.OpError:
		if e.Addr != nil {
			return fmt.Sprintf("%s %s: %s", e.Op, e.Addr, describe(e.Err))
		}
		return fmt.Sprintf("%s: %s", e.Op, describe(e.Err))
	case x509.UnknownAuthorityError:
		return "TLS: the server's certificate is of an unknown authority"
	case x509.HostnameError:
		return "TLS: the server's certificate is for another host name"
	case x509.CertificateInvalidError:
		if e.Reason == x509.Expired {
			return "TLS: the server's certificate has expired or is not valid yet"
		}
		return "TLS: the server's certificate is not valid"
	case *tls.CertificateVerificationError:
		return describe(e.Err)
	case tls.AlertError:
		return describeAlert(e)
	case x509.SystemRootsError, tls.RecordHeaderError:
		return "TLS: no agreement with the server"
	}
	switch {
	case errors.Is(err, context.Canceled):
		return "stopped"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return "no answer in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was lost"
	case errors.As(err, &errno):
		return errno.Error()
	}
	return "failed"
}

// hints says for each code what an operator can do.
var hints = map[string]string{
	"08P01": "the answer breaks the protocol of Postgres: check the proxy or pooler in between",
	"25006": "the node is read-only: a standby, or default_transaction_read_only is on; list all hosts in DOCKET_DATABASE_URL so that the primary is found",
	"28000": "the server rejects this user from this address: check user and pg_hba.conf",
	"28P01": "check user and password in DOCKET_DATABASE_URL; with clientcert=verify-full in pg_hba.conf, also check the name in the client certificate",
	"3D000": "the database does not exist: check its name in DOCKET_DATABASE_URL",
	"3F000": "the schema does not exist: check search_path",
	"42501": "the role lacks a right, or row-level security refuses the row: GRANT SELECT, INSERT ON decision_logs; `consumer check` names any other",
	"42P01": "the table is missing: run `consumer migrate`, or check search_path",
	"42703": "a column is missing: run `consumer migrate`",
	"42804": "a column has the wrong type: run `consumer check` to see which",
	"42P10": "the unique index on (decision_id, ts) is missing: create it again, because it prevents duplicates",
	"23514": "the named CHECK rejects good decisions too: change it or drop it",
	"23502": "Docket does not fill a NOT NULL column: give the column a default",
	"53100": "the server's disk is full: free space; Docket then continues by itself",
	"53200": "the server is out of memory",
	"53300": "the server has no free connection: raise max_connections, or the CONNECTION LIMIT of the role or database, or run fewer instances",
	"55P03": "another session locks the table, for example a migration: check pg_locks",
	"57014": "the statement took too long: check locks and load, or raise DOCKET_STORE_TIMEOUT",
	"57P01": "an administrator stopped the server: wait until it runs again, or start it",
	"57P03": "the server is starting up or recovering: wait until it is ready",
	"58030": "the server cannot read or write its disk: check its log",
	"XX001": "the server reports corrupt data: stop writing, and check its log",
	"XX002": "the server reports a corrupt index: stop writing, and check its log",

	errclass.CodeNetwork:         "the database cannot be reached: check host and port in DOCKET_DATABASE_URL, and that it runs",
	errclass.CodeTimeout:         "the database does not answer in time: check the network, its load and DOCKET_STORE_TIMEOUT",
	errclass.CodeDNS:             "the host does not exist: check its name in DOCKET_DATABASE_URL",
	errclass.CodeTLS:             "TLS with the server failed: check sslmode and sslrootcert in DOCKET_DATABASE_URL, and the server's certificate",
	errclass.CodeDescriptors:     "no file descriptor is left here: raise the limit of this process (LimitNOFILE, ulimit -n) or of the host, or find out what holds them",
	errclass.CodeConfig:          "check DOCKET_DATABASE_URL, and triggers and rules on decision_logs",
	errclass.CodePoolExhausted:   "all connections are in use: raise pool_max_conns in DOCKET_DATABASE_URL",
	errclass.CodeSwallowed:       "a trigger returns NULL, deletes the row, or alters decision_id or ts: `consumer check` names the triggers to look at",
	errclass.CodeProtocol:        "the answer is not from Postgres: check host, port and proxy",
	errclass.CodeAmbiguousCommit: "the answer to COMMIT was lost or carried a warning; storing again is safe. If it persists, check that the synchronous standby is connected",
}

// Hint says in one line what an operator can do about an error of this package. It is empty where there is nothing
// particular to say. An error in err with a method HintFor, which is given the code, knows better than the code alone.
func Hint(err error) string {
	if err == nil {
		return ""
	}
	code := errclass.Classify(err).Code
	if hint := closerHint(err, code); hint != "" {
		return hint
	}
	if hint := tlsHint(err); code == errclass.CodeTLS && hint != "" {
		return hint
	}
	if said, ok := AsServerError(err); ok && said.certless && code == said.code {
		return certlessHint
	}
	if said, ok := AsServerError(err); ok && code == "23514" && said.constraint == "" {
		return "that time has no partition: create it"
	}
	return hints[code]
}

// closerHint is what the innermost error of err says that knows more of the act than its code does.
func closerHint(err error, code string) string {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			if hint := closerHint(inner, code); hint != "" {
				return hint
			}
		}
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if hint := closerHint(inner, code); hint != "" {
				return hint
			}
		}
	}
	if of, ok := err.(interface{ HintFor(code string) string }); ok {
		return of.HintFor(code)
	}
	return ""
}

// HintOf says what an operator can do about an error of this code, empty where there is nothing particular to say.
func HintOf(code string) string { return hints[code] }
