package bearer

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"
)

// Certificate returns the client certificate that the handshake of a connection verified, nil if there is none or it has ended.
// The dates are looked at again, as a connection can outlive them. One chain to an authority is enough: an authority that was
// renewed may be there twice.
func Certificate(connection *tls.ConnectionState, now time.Time) *x509.Certificate {
	if connection == nil {
		return nil
	}
	ended := func(c *x509.Certificate) bool { return now.After(c.NotAfter) }
	for _, chain := range connection.VerifiedChains {
		if len(chain) > 0 && !slices.ContainsFunc(chain, ended) {
			return chain[0]
		}
	}
	return nil
}

// Showed reports whether a client showed a certificate. It can show another one only over a new connection, so a refusal ends
// this one.
func Showed(connection *tls.ConnectionState) bool {
	return connection != nil && len(connection.PeerCertificates) > 0
}
