package db

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"reflect"

	"github.com/jackc/pgx/v5"

	"docket/internal/errclass"
)

// noTLSError says that a server has no TLS although the URL demands it. The driver has only a text for that, and we
// decide by nothing but types.
type noTLSError struct{}

func (*noTLSError) Error() string { return "TLS: the server has none, and sslmode demands it" }

// watchTLS makes the refusal of TLS recognisable where there is no falling back to plain text.
func watchTLS(cc *pgx.ConnConfig) {
	if cc.TLSConfig == nil || cc.SSLNegotiation == "direct" {
		return
	}
	for _, f := range cc.Fallbacks {
		if f.TLSConfig == nil {
			return
		}
	}
	dial := cc.DialFunc
	cc.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil || network == "unix" {
			return conn, err
		}
		return &tlsWatch{Conn: conn}, nil
	}
}

type tlsWatch struct {
	net.Conn
	answered bool
}

// Read sees the one byte that answers our request for TLS: S or N.
func (c *tlsWatch) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.answered && n > 0 {
		c.answered = true
		if b[0] == 'N' {
			return 0, errclass.As(&noTLSError{}, errclass.CodeTLS)
		}
	}
	return n, err
}

// alertOf is the alert by which the other end ended TLS. On a TCP connection crypto/tls gives it a type of its own that
// it does not export, a number as [tls.AlertError] is.
func alertOf(e *net.OpError) (tls.AlertError, bool) {
	if e.Op != "remote error" || e.Err == nil {
		return 0, false
	}
	v := reflect.ValueOf(e.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return tls.AlertError(v.Uint()), true
}

// ourCertificate are the alerts of RFC 8446 by which a server refuses the certificate of a client, or that there is none.
var ourCertificate = map[tls.AlertError]string{
	42:  "TLS: the server refuses our certificate",
	43:  "TLS: the server refuses our certificate",
	44:  "TLS: the server refuses our certificate, which was revoked",
	45:  "TLS: the server refuses our certificate, which has expired",
	46:  "TLS: the server refuses our certificate",
	48:  "TLS: the server does not know the authority of our certificate",
	116: "TLS: the server demands a certificate",
}

func describeAlert(a tls.AlertError) string {
	if of, ok := ourCertificate[a]; ok {
		return of
	}
	return "TLS: no agreement with the server"
}

// certlessHint is for 28000 from a server that asked for a certificate.
const certlessHint = "the server rejects this user, and asked for a client certificate: set sslcert and sslkey in DOCKET_DATABASE_URL to a pair that it trusts, or check user and pg_hba.conf"

// tlsHint says what an operator can do where the type of an error tells what of TLS failed.
func tlsHint(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "the server's certificate is not signed by a CA in sslrootcert: correct that file in DOCKET_DATABASE_URL, or check which server answers at that address"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "the server's certificate does not match the host in DOCKET_DATABASE_URL: use a name in the certificate, or have a certificate issued for this host"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "the server's certificate has expired or is not valid yet: renew it on the server and reload, or correct the clock"
	}
	if _, ok := errors.AsType[*noTLSError](err); ok {
		return "the server does not offer TLS, but sslmode in DOCKET_DATABASE_URL requires it: set ssl = on in its configuration and reload"
	}
	if alert, ok := errors.AsType[tls.AlertError](err); ok && ourCertificate[alert] != "" {
		return "the server refuses our certificate: renew the files of sslcert and sslkey in DOCKET_DATABASE_URL, or make the server trust their CA"
	}
	return ""
}
