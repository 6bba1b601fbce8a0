package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"syscall"
)

// Codes of a [FaultError] of ReasonTLS.
const (
	codeAuthority    = "tls_unknown_authority"
	codeName         = "tls_wrong_name"
	codeExpired      = "tls_expired"
	codeCertificate  = "tls_invalid_certificate"
	codeNotSpoken    = "tls_not_spoken"
	codeNoAnswer     = "tls_no_answer"
	codeWanted       = "tls_wanted"
	codeVersion      = "tls_version"
	codeOursMissing  = "tls_client_certificate_missing"
	codeOursExpired  = "tls_client_certificate_expired"
	codeOursRefused  = "tls_client_certificate_refused"
	codeRefused      = "tls_refused_by_broker"
	codeClosedAtOnce = "closed_at_once" // for ReasonUnreachable
	codeDescriptors  = "no_descriptors" // for ReasonUnreachable
)

var tlsHints = map[string]string{
	codeAuthority:    "the broker's certificate is not signed by a trusted CA: add that CA to the file of DOCKET_KAFKA_TLS_CA; the next attempt reads it",
	codeName:         "the broker's certificate does not match its host name: use a name of the certificate in DOCKET_KAFKA_BROKERS and advertised.listeners, or have one issued for this name",
	codeExpired:      "the broker's certificate has expired or is not valid yet: renew it on the broker, or correct this machine's clock",
	codeCertificate:  "the broker's certificate is not a server certificate: have another one issued",
	codeNotSpoken:    "the server does not speak TLS: use the port of the brokers' SSL or SASL_SSL listener, or set DOCKET_KAFKA_TLS=false; a proxy whose broker is away closes connections too",
	codeNoAnswer:     "nothing answered the TLS handshake in time: use the port of the brokers' SSL or SASL_SSL listener, and check that the broker and proxies before it run",
	codeWanted:       "the listener requires TLS: set DOCKET_KAFKA_TLS=true",
	codeVersion:      "the broker does not support TLS 1.2 or later: add TLSv1.2 or TLSv1.3 to its ssl.enabled.protocols",
	codeOursMissing:  "the broker demands a client certificate: set DOCKET_KAFKA_TLS_CERT and DOCKET_KAFKA_TLS_KEY",
	codeOursExpired:  "the client certificate has expired or is not valid yet: put a new pair into the files of DOCKET_KAFKA_TLS_CERT and DOCKET_KAFKA_TLS_KEY; the next attempt reads them",
	codeOursRefused:  "the broker rejects the client certificate: it must be signed by a CA of the broker's ssl.truststore and be meant for clients",
	codeRefused:      "the broker ends the TLS handshake: check its log, and its ssl.enabled.protocols and ssl.cipher.suites for TLS 1.2 and 1.3",
	codeDescriptors:  "no file descriptor is left here: raise the limit of this process (LimitNOFILE, ulimit -n) or of the host, or find out what holds them; the brokers may be well",
	codeClosedAtOnce: "the brokers close the connection at the first request: the listener may require TLS (DOCKET_KAFKA_TLS) or SASL (DOCKET_KAFKA_SASL_MECHANISM), or a proxy's broker is away",
}

// dialError is a connection that could not be made, or that ended before its first answer.
type dialError struct {
	address string
	tls     bool   // TLS failed, not the connection below it
	code    string // one of the codes above, or none
	err     error
}

func (e *dialError) Error() string {
	switch {
	case e.code == codeWanted:
		return e.address + " answers in TLS"
	case e.tls:
		return "TLS handshake with " + e.address + " failed"
	}
	return "connection to " + e.address + " failed"
}

func (e *dialError) Unwrap() error { return e.err }

var errAlert = errors.New("an alert of TLS where there should be an answer of Kafka")

// TLS alerts by their numbers in RFC 8446, section 6.
const (
	alertBadCertificate         = 42
	alertUnsupportedCertificate = 43
	alertCertificateRevoked     = 44
	alertCertificateExpired     = 45
	alertCertificateUnknown     = 46
	alertUnknownAuthority       = 48
	alertAccessDenied           = 49
	alertProtocolVersion        = 70
	alertCertificateRequired    = 116
)

// alertOf returns the alert that a peer sent. The type in crypto/tls is not exported. Like tls.AlertError it is a
// number.
func alertOf(err error) (number uint8, ok bool) {
	var exported tls.AlertError
	if errors.As(err, &exported) {
		return uint8(exported), true
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, true
	}
	return uint8(v.Uint()), true
}

// failed explains a handshake that did not finish. silent says that the other side sent nothing.
func (e *end) failed(err error, silent bool) error {
	d := &dialError{address: e.address, tls: true, err: err}
	var (
		authority  x509.UnknownAuthorityError
		roots      x509.SystemRootsError
		name       x509.HostnameError
		invalid    x509.CertificateInvalidError
		verified   *tls.CertificateVerificationError
		header     tls.RecordHeaderError
		_, alerted = alertOf(err)
	)
	switch {
	case errors.As(err, &authority), errors.As(err, &roots):
		d.code = codeAuthority
	case errors.As(err, &name):
		d.code = codeName
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		d.code = codeExpired
	case errors.As(err, &invalid), errors.As(err, &verified):
		d.code = codeCertificate
	case errors.As(err, &header):
		d.code = codeNotSpoken
	case alerted:
		d.code = e.refusal(err)
	case ranOut(err):
		d.code = codeNoAnswer
	case silent && cut(err):
		d.code = codeNotSpoken
	case cut(err):
		d.code = e.refusal(err)
	default:
		d.code = codeRefused
	}
	return d
}

// closed explains a connection that ended before the first answer.
func (e *end) closed(err error) error {
	d := &dialError{address: e.address, err: err}
	_, alerted := alertOf(err)
	switch {
	case alerted, e.tls && e.asked && cut(err):
		d.tls, d.code = true, e.refusal(err)
	case cut(err):
		d.code = codeClosedAtOnce
	default:
		return err
	}
	return d
}

// refusal says why a broker ended the handshake. Facts about the own certificate say more than the broker's alert.
func (e *end) refusal(err error) string {
	alert, _ := alertOf(err)
	switch {
	case e.asked && e.shown == nil:
		return codeOursMissing
	case e.expired():
		return codeOursExpired
	}
	switch alert {
	case alertCertificateExpired:
		return codeOursExpired
	case alertCertificateRequired:
		return codeOursMissing
	case alertBadCertificate, alertUnsupportedCertificate, alertCertificateRevoked, alertCertificateUnknown, alertUnknownAuthority, alertAccessDenied:
		return codeOursRefused
	case alertProtocolVersion:
		return codeVersion
	}
	return codeRefused
}

// ranOut reports whether an error is a timeout.
func ranOut(err error) bool {
	var late net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &late) && late.Timeout()
}

// cut reports whether the other side ended the connection.
func cut(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
