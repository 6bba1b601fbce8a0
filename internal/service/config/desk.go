package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"docket/internal/desk/peers/target"
	"docket/internal/record/envelope"
)

// healable are the kinds of failure that may be retried without a person. Time does not heal a record that cannot be decoded.
var healable = []string{string(envelope.Transient), string(envelope.Exhausted), string(envelope.Data), string(envelope.Conflict)}

func (l *loader) deskRetries() {
	const kinds, first, most = "DOCKET_DESK_RETRY_KINDS", "DOCKET_DESK_RETRY_BACKOFF", "DOCKET_DESK_RETRY_MAX_BACKOFF"
	s := l.settings
	for _, k := range s.DeskRetryKinds {
		switch {
		case k == string(envelope.Decode):
			l.complain(kinds, "names decode, which never succeeds on schedule; correct such a record and retry it yourself")
		case !slices.Contains(healable, k):
			l.complain(kinds, "%s is not a kind of failure; allowed: %s", quote(k), strings.Join(healable, ", "))
		default:
			continue
		}
		break
	}
	if l.fine(first, most) && s.DeskRetryBackoff > s.DeskRetryMaxBackoff {
		l.complain(first, "%v is longer than %s (%v)", s.DeskRetryBackoff, most, s.DeskRetryMaxBackoff)
	}
	l.retryTopics()
}

// retryTopics refuses topics that no consumer reads. A retry there would come back as another dead letter, or as a parked
// record.
func (l *loader) retryTopics() {
	const variable = "DOCKET_DESK_RETRY_TOPICS"
	s := l.settings
	homes := map[string]string{s.KafkaDLQTopic: "DOCKET_KAFKA_DLQ_TOPIC", s.KafkaParkingTopic: "DOCKET_KAFKA_PARKING_TOPIC", s.KafkaParkingDLQTopic: "DOCKET_KAFKA_PARKING_DLQ_TOPIC"}
	for _, topic := range s.DeskRetryTopics {
		if !isTopicName(topic) {
			l.complain(variable, "%s is not a topic name", quote(topic))
		} else if home, is := homes[topic]; is {
			l.complain(variable, "%s is the topic of %s, which no consumer reads; name source topics", quote(topic), home)
		}
	}
}

func (l *loader) deskAPI() {
	const addr, cert, key = "DOCKET_DESK_API_ADDR", "DOCKET_DESK_API_TLS_CERT", "DOCKET_DESK_API_TLS_KEY"
	s := l.settings
	if s.DeskAPIAddr == "" {
		return
	}
	if !hostPort(s.DeskAPIAddr, 0) {
		l.complain(addr, "%s is not host:port; write it like 127.0.0.1:8083", quote(s.DeskAPIAddr))
	}
	if l.fine(addr, "DOCKET_HTTP_ADDR") && s.DeskAPIAddr == s.HTTPAddr && !strings.HasSuffix(s.DeskAPIAddr, ":0") {
		l.complain(addr, "%s is already used by DOCKET_HTTP_ADDR", quote(s.DeskAPIAddr))
	}
	switch {
	case s.DeskAPITLSCert == "" && s.DeskAPITLSKey == "":
		if l.fine(addr) && !loopback(s.DeskAPIAddr) {
			l.complain(cert, "is missing; %s is %s, which is not loopback, so tokens would cross the network unencrypted", addr, quote(s.DeskAPIAddr))
		}
	case s.DeskAPITLSCert == "":
		l.complain(cert, "is missing; %s needs its certificate", key)
	case s.DeskAPITLSKey == "":
		l.complain(key, "is missing; %s needs its private key", cert)
	default:
		l.pair(cert, s.DeskAPITLSCert, key, s.DeskAPITLSKey)
	}
	l.deskClients()
	l.deskOIDC()
}

// callbackPath is where the provider sends the browser back.
const callbackPath = "/login/callback"

func (l *loader) deskOIDC() {
	const issuer, client, redirect, groups, ca = "DOCKET_DESK_OIDC_ISSUER", "DOCKET_DESK_OIDC_CLIENT_ID", "DOCKET_DESK_OIDC_REDIRECT_URL", "DOCKET_DESK_OIDC_GROUPS", "DOCKET_DESK_OIDC_CA"
	s := l.settings
	given := map[string]bool{client: s.DeskOIDCClientID != "", redirect: s.DeskOIDCRedirectURL != "", groups: len(s.DeskOIDCGroups) > 0, "DOCKET_DESK_OIDC_CLIENT_SECRET": s.DeskOIDCClientSecret != "", ca: s.DeskOIDCCA != ""}
	if s.DeskOIDCIssuer == "" {
		for _, variable := range slices.Sorted(maps.Keys(given)) {
			if given[variable] && l.fine(variable) {
				l.complain(variable, "is set without %s", issuer)
			}
		}
		return
	}
	if !safeURL(s.DeskOIDCIssuer) {
		l.complain(issuer, "%s is not https://HOST or http:// on loopback", quote(s.DeskOIDCIssuer))
	}
	for _, variable := range []string{client, redirect, groups} {
		if !given[variable] && l.fine(variable) {
			l.complain(variable, "is missing; %s needs it", issuer)
		}
	}
	if u, err := url.Parse(s.DeskOIDCRedirectURL); given[redirect] && (err != nil || !safeURL(s.DeskOIDCRedirectURL) || u.Path != callbackPath || u.RawQuery != "" || u.Fragment != "") {
		l.complain(redirect, "%s is not https://HOST%s, or http:// on loopback", quote(s.DeskOIDCRedirectURL), callbackPath)
	}
	if n := utf8.RuneCountInString(s.DeskOIDCLabel); n > 40 {
		l.complain("DOCKET_DESK_OIDC_LABEL", "has %d characters; at most 40 fit on the button", n)
	}
	if given[ca] {
		if _, err := authorities(s.DeskOIDCCA); err != nil {
			l.complain(ca, "%v", err)
		}
	}
}

// safeURL reports whether a URL has https, or http to a loopback address, and no user.
func safeURL(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopback(net.JoinHostPort(u.Hostname(), "0"))
}

// OIDCRoots are the certificates of DOCKET_DESK_OIDC_CA, nil for those of the system.
func (s Settings) OIDCRoots() (*x509.CertPool, error) {
	if s.DeskOIDCCA == "" {
		return nil, nil
	}
	pool, err := authorities(s.DeskOIDCCA)
	if err != nil {
		return nil, fmt.Errorf("read the certificates of DOCKET_DESK_OIDC_CA: %w", err)
	}
	return pool, nil
}

// deskPeers judges the addresses of the other programs. They are shown, so an error of them is not.
func (l *loader) deskPeers() {
	for i, text := range l.settings.DeskPeers {
		if _, err := target.Parse(text); err != nil {
			l.complain("DOCKET_DESK_PEERS", "entry %d %v", i+1, err)
		}
	}
}

func (l *loader) deskClients() {
	const ca, clients, cert = "DOCKET_DESK_API_CLIENT_CA", "DOCKET_DESK_API_CLIENTS", "DOCKET_DESK_API_TLS_CERT"
	s := l.settings
	if s.DeskAPIClientCA == "" {
		if len(s.DeskAPIClients) > 0 && l.fine(clients) {
			l.complain(clients, "is set without %s; no client certificate is trusted", ca)
		}
		return
	}
	if _, err := authorities(s.DeskAPIClientCA); err != nil {
		l.complain(ca, "%v", err)
	}
	if s.DeskAPITLSCert == "" && l.fine(cert) {
		l.complain(cert, "is missing; %s needs TLS", ca)
	}
	if len(s.DeskAPIClients) == 0 && l.fine(clients) {
		l.complain(clients, "is missing; without it, clients of %s have no role", ca)
	}
}

// pair looks at a certificate and its key.
func (l *loader) pair(cert, certPath, key, keyPath string) {
	if _, err := readable(keyPath); err != nil {
		l.complain(key, "%v", err)
	}
	if _, err := keyPair(certPath, keyPath); err != nil && l.fine(key) {
		l.complain(cert, "%v", err)
	}
}

// loopback reports whether only this machine reaches an address. A name is not looked up, as its address may change.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// APITLS is how the API speaks TLS, nil where it does not. The files are read as those of [Settings.CollectorTLS]. A client's
// certificate is asked for where there is somebody to sign it, and not insisted on: there are tokens, too.
func (s Settings) APITLS(told func(error)) (*tls.Config, error) {
	return (&listenerFiles{
		certVariable: "DOCKET_DESK_API_TLS_CERT", cert: s.DeskAPITLSCert, key: s.DeskAPITLSKey,
		caVariable: "DOCKET_DESK_API_CLIENT_CA", ca: s.DeskAPIClientCA, told: told,
	}).conf()
}
