package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// TLS is how to speak TLS to the brokers, nil where it is off. The files are read anew.
func (s Settings) TLS() (*tls.Config, error) {
	if !s.KafkaTLS {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.KafkaTLSCA != "" {
		pool, err := authorities(s.KafkaTLSCA)
		if err != nil {
			return nil, fmt.Errorf("read the certificates of DOCKET_KAFKA_TLS_CA: %w", err)
		}
		c.RootCAs = pool
	}
	if s.KafkaTLSCert != "" {
		pair, err := keyPair(s.KafkaTLSCert, s.KafkaTLSKey)
		if err != nil {
			return nil, fmt.Errorf("read the certificate of DOCKET_KAFKA_TLS_CERT: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func readable(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the file cannot be read (%w)", bare(err))
	}
	return content, nil
}

func authorities(path string) (*x509.CertPool, error) {
	content, err := readable(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, errors.New("the file holds no certificate in PEM form")
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
