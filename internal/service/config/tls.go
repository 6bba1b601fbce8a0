package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Credentials are how a program proves itself to the brokers and knows them: certificates and password as their files are
// now. A file that cannot be used at the moment, because it is half-written or away, leaves what was good before in use. It
// is safe for concurrent use.
type Credentials struct {
	settings Settings

	mu       sync.Mutex
	roots    *x509.CertPool // nil: the system's
	pair     *tls.Certificate
	password Secret
}

// Credentials reads the files for the first time. An error says which of them cannot be used.
func (s Settings) Credentials() (*Credentials, error) {
	c := &Credentials{settings: s, password: s.KafkaSASLPassword}
	if _, err := c.TLS(); err != nil {
		return nil, err
	}
	return c, nil
}

// TLS is the TLS to the brokers, nil if it is off. The files are read again. An error names the file that cannot be used,
// never its content. The last good TLS comes with it. Certificate and key are taken as a pair or not at all.
func (c *Credentials) TLS() (*tls.Config, error) {
	s := c.settings
	if !s.KafkaTLS {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	if s.KafkaTLSCA != "" {
		if pool, err := authorities(s.KafkaTLSCA); err == nil {
			c.roots = pool
		} else {
			errs = append(errs, fmt.Errorf("read the certificates of DOCKET_KAFKA_TLS_CA: %w", err))
		}
	}
	if s.KafkaTLSCert != "" {
		if pair, err := keyPair(s.KafkaTLSCert, s.KafkaTLSKey); err == nil {
			c.pair = &pair
		} else {
			errs = append(errs, fmt.Errorf("read the certificate of DOCKET_KAFKA_TLS_CERT: %w", err))
		}
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.roots}
	if c.pair != nil {
		conf.Certificates = []tls.Certificate{*c.pair}
	}
	return conf, errors.Join(errs...)
}

// Password is that of SASL. If it comes from a file, the file is read again. The last good one comes with an error.
func (c *Credentials) Password() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh, err := c.settings.Fresh("DOCKET_KAFKA_SASL_PASSWORD", c.password)
	c.password = fresh
	return fresh.Reveal(), err
}

func readable(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
	}
	return content, nil
}

// authorities are the certificates of a file. One that ends inside a certificate is still being written.
func authorities(path string) (*x509.CertPool, error) {
	content, err := readable(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, errors.New("the file holds no certificate in PEM form")
	}
	rest := content
	for block, after := pem.Decode(rest); block != nil; block, after = pem.Decode(rest) {
		rest = after
	}
	if bytes.Contains(rest, []byte("-----BEGIN ")) {
		return nil, errors.New("the file ends inside a certificate")
	}
	return pool, nil
}

func keyPair(cert, key string) (tls.Certificate, error) {
	c, err := readable(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := readable(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(c, k)
	if err != nil {
		return tls.Certificate{}, errors.New("certificate and key are not a pair in PEM form")
	}
	return pair, nil
}
