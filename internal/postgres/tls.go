package postgres

import (
	"context"
	"net"

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
