package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
)

// listenerFiles are the certificates of a listener as they were last good.
type listenerFiles struct {
	certVariable, cert, key string
	caVariable, ca          string // ca is empty: nobody signs clients' certificates

	mu      sync.Mutex
	pair    tls.Certificate
	clients *x509.CertPool
}

// conf reads the files at once and again at each handshake. It is nil without a certificate.
func (f *listenerFiles) conf() (*tls.Config, error) {
	if f.cert == "" {
		return nil, nil
	}
	if err := f.read(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			return f.handshake(), nil
		},
	}, nil
}

// read takes what can be used now, and says what cannot.
func (f *listenerFiles) read() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	pair, err := keyPair(f.cert, f.key)
	if err != nil {
		return fmt.Errorf("read the certificate of %s: %w", f.certVariable, err)
	}
	f.pair = pair
	if f.ca == "" {
		return nil
	}
	clients, err := authorities(f.ca)
	if err != nil {
		return fmt.Errorf("read the certificates of %s: %w", f.caVariable, err)
	}
	f.clients = clients
	return nil
}

// handshake is for one handshake. Sessions are not resumed: one could outlive the authority that its client was known by.
func (f *listenerFiles) handshake() *tls.Config {
	_ = f.read() // files that cannot be used leave the ones before in use
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{f.pair}, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
	}
	if f.clients != nil {
		c.ClientCAs, c.ClientAuth = f.clients, tls.VerifyClientCertIfGiven
	}
	return c
}
