package config

import (
	"crypto/tls"
	"strings"
)

// uploads looks at where the collector listens, and whether that may be read on the way.
func (l *loader) uploads() {
	const addr, own, cert, key = "DOCKET_COLLECTOR_ADDR", "DOCKET_HTTP_ADDR", "DOCKET_COLLECTOR_TLS_CERT", "DOCKET_COLLECTOR_TLS_KEY"
	const plaintext = "DOCKET_COLLECTOR_PLAINTEXT"
	s := l.settings
	if !hostPort(s.CollectorAddr, 0) {
		l.complain(addr, "%s is not host:port; write it like 127.0.0.1:8085", quote(s.CollectorAddr))
	}
	if l.fine(addr, own) && s.CollectorAddr == s.HTTPAddr && !strings.HasSuffix(s.CollectorAddr, ":0") {
		l.complain(addr, "%s is already used by %s", quote(s.CollectorAddr), own)
	}
	if s.CollectorPlaintext && (s.CollectorTLSCert != "" || s.CollectorTLSKey != "") {
		l.complain(plaintext, "is true while %s or %s is set; remove one of them", cert, key)
	}
	switch {
	case s.CollectorTLSCert == "" && s.CollectorTLSKey == "":
		if l.fine(addr, plaintext) && !loopback(s.CollectorAddr) && !s.CollectorPlaintext {
			l.complain(cert, "is missing; %s is %s, which is not loopback, so decisions and tokens would cross the network unencrypted; "+
				"set %s=true on a private network", addr, quote(s.CollectorAddr), plaintext)
		}
	case s.CollectorTLSCert == "":
		l.complain(cert, "is missing; %s needs its certificate", key)
	case s.CollectorTLSKey == "":
		l.complain(key, "is missing; %s needs its private key", cert)
	default:
		l.pair(cert, s.CollectorTLSCert, key, s.CollectorTLSKey)
	}
}

// uploaders looks at who may upload.
func (l *loader) uploaders() {
	const addr, tokens, anonymous = "DOCKET_COLLECTOR_ADDR", "DOCKET_COLLECTOR_TOKENS", "DOCKET_COLLECTOR_ANONYMOUS"
	const ca, clients, cert = "DOCKET_COLLECTOR_CLIENT_CA", "DOCKET_COLLECTOR_CLIENTS", "DOCKET_COLLECTOR_TLS_CERT"
	s := l.settings
	known := s.CollectorTokens != "" || s.CollectorClientCA != ""
	switch {
	case s.CollectorAnonymous && known && l.fine(anonymous):
		l.complain(anonymous, "is true while %s or %s is set; remove one of them", tokens, ca)
	case !s.CollectorAnonymous && !known && l.fine(addr, anonymous, tokens) && !loopback(s.CollectorAddr):
		l.complain(tokens, "is missing; %s is %s, which is not loopback, so anyone could upload; set it or %s, or %s=true to allow that",
			addr, quote(s.CollectorAddr), ca, anonymous)
	}
	if s.CollectorClientCA == "" {
		if len(s.CollectorClients) > 0 {
			l.complain(clients, "is set without %s; no client certificate is trusted", ca)
		}
		return
	}
	if _, err := authorities(s.CollectorClientCA); err != nil {
		l.complain(ca, "%v", err)
	}
	if s.CollectorTLSCert == "" && l.fine(cert) {
		l.complain(cert, "is missing; %s needs TLS", ca)
	}
	for i, name := range s.CollectorClients {
		if name == "" {
			l.complain(clients, "entry %d is empty", i+1)
			return
		}
	}
}

func (l *loader) uploadSizes() {
	const came, inflated, memory = "DOCKET_COLLECTOR_UPLOAD_BYTES", "DOCKET_COLLECTOR_INFLATED_BYTES", "DOCKET_COLLECTOR_MEMORY"
	s := l.settings
	if l.fine(came, inflated) && s.CollectorInflated < s.CollectorUploadBytes {
		l.complain(inflated, "%v is less than %s (%v); an upload that is not compressed would not fit", s.CollectorInflated, came, s.CollectorUploadBytes)
	}
	if need := s.CollectorUploadBytes + s.CollectorInflated; l.fine(came, inflated, memory) && s.CollectorMemory < need {
		l.complain(memory, "%v is less than %s and %s together (%v); the largest upload would always be answered 429", s.CollectorMemory, came, inflated, need)
	}
}

// CollectorTLS is the TLS of uploads, nil if they use none. The files are read again at each handshake, so that a renewed
// certificate needs no restart. A file that cannot be used leaves the one before in use. Where told is not nil, it gets
// each new fault of the files, and nil once all is well. A client's certificate is asked for if there is a CA for it. It is
// not required, as there are tokens, too.
func (s Settings) CollectorTLS(told func(error)) (*tls.Config, error) {
	return (&listenerFiles{
		certVariable: "DOCKET_COLLECTOR_TLS_CERT", cert: s.CollectorTLSCert, key: s.CollectorTLSKey,
		caVariable: "DOCKET_COLLECTOR_CLIENT_CA", ca: s.CollectorClientCA, told: told,
	}).conf()
}
