package errclass_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"docket/internal/errclass"
)

// certificate makes a certificate that only the returned pool trusts.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"db"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// handshake shakes hands over loopback. It returns the client's error, after it also waited for the server's answer.
func handshake(t *testing.T, server, client *tls.Config) error {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if server == nil {
			_, _ = conn.Write([]byte("N: this port speaks no TLS"))
			return
		}
		_ = tls.Server(conn, server).HandshakeContext(context.Background())
	}()
	t.Cleanup(func() { listener.Close(); <-done })

	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	secured := tls.Client(conn, client)
	if err := secured.HandshakeContext(t.Context()); err != nil {
		return err
	}
	_, err = secured.Read(make([]byte, 1))
	return err
}

func TestClassify_RealTLSRefusals(t *testing.T) {
	t.Parallel()
	cert, pool := certificate(t)
	plain := &tls.Config{Certificates: []tls.Certificate{cert}}
	wantsClient := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	for name, c := range map[string]struct{ server, client *tls.Config }{
		"unknown authority":      {plain, &tls.Config{ServerName: "db", RootCAs: x509.NewCertPool()}},
		"wrong name":             {plain, &tls.Config{ServerName: "other", RootCAs: pool}},
		"client not known":       {wantsClient, &tls.Config{ServerName: "db", RootCAs: pool}},
		"client not known, 1.2":  {wantsClient, &tls.Config{ServerName: "db", RootCAs: pool, MaxVersion: tls.VersionTLS12}},
		"no TLS behind the port": {nil, &tls.Config{ServerName: "db", RootCAs: pool}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := handshake(t, c.server, c.client)
			if got := errclass.Classify(err); got.Code != errclass.CodeTLS || got.Class != errclass.Systemic {
				t.Errorf("%T %v is %s %s, want tls systemic", err, err, got.Code, got.Class)
			}
		})
	}
}
