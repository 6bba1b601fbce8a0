package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
)

// listenerFiles are the certificates of a listener as they were last good.
type listenerFiles struct {
	certVariable, cert, key string
	caVariable, ca          string // ca is empty: nobody signs clients' certificates
	// told is called when what is wrong with the files changes; with nil once nothing is. It may be nil.
	told func(error)

	mu      sync.Mutex
	pair    tls.Certificate
	clients *x509.CertPool
	wrong   string // text of the last fault, or empty
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

// read takes what can be used now, and says what cannot. A certificate that cannot be used delays no change of the
// authorities.
func (f *listenerFiles) read() error {
	var errs []error
	if pair, err := keyPair(f.cert, f.key); err == nil {
		f.pair = pair
	} else {
		errs = append(errs, fmt.Errorf("read the certificate of %s: %w", f.certVariable, err))
	}
	if f.ca == "" {
		return errors.Join(errs...)
	}
	if clients, err := authorities(f.ca); err == nil {
		f.clients = clients
	} else {
		errs = append(errs, fmt.Errorf("read the certificates of %s: %w", f.caVariable, err))
	}
	return errors.Join(errs...)
}

// look reads the files and tells if what is wrong with them has changed.
func (f *listenerFiles) look() {
	err, text := f.read(), ""
	if err != nil {
		text = err.Error()
	}
	if text != f.wrong && f.told != nil {
		f.told(err)
	}
	f.wrong = text
}

// handshake is for one handshake. Files that cannot be used leave the ones before in use. Sessions are not resumed: one
// could outlive the authority that its client was known by.
func (f *listenerFiles) handshake() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.look()
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{f.pair}, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
	}
	if f.clients != nil {
		c.ClientCAs, c.ClientAuth = f.clients, tls.VerifyClientCertIfGiven
	}
	return c
}
