package kafka_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
)

// downable refuses new connections while down is true. Open connections stay open.
func downable(down *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// hungUp connects to a server that reads the first request and closes the connection, like a broker that stops.
func hungUp(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Read(make([]byte, 1<<10))
		_ = theirs.Close()
	}()
	return ours, nil
}

// selfSigned returns a certificate for 127.0.0.1 and the pool that trusts it.
func selfSigned(t *testing.T) ([]tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates, roots
}
