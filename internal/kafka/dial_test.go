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

// downable refuses connections while down says so. Connections that exist live on.
func downable(down *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// hungUp connects to a server that hears the first request and closes the connection, as a broker does that goes down.
func hungUp(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	go func() {
		_, _ = theirs.Read(make([]byte, 1<<10))
		_ = theirs.Close()
	}()
	return ours, nil
}

// selfSigned is a certificate for 127.0.0.1, and who trusts it.
func selfSigned(t *testing.T) ([]tls.Certificate, *x509.CertPool) {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates, roots
}
