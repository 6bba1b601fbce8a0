package errclass

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"slices"
	"syscall"
)

type symptom struct {
	weight weight
	code   string
}

// stateless recognises one error without a SQLSTATE by its type or behaviour.
func stateless(err error) symptom {
	switch {
	case is(err, context.Canceled):
		return symptom{weighsCancelled, CodeCanceled}
	case err == syscall.EMFILE, err == syscall.ENFILE:
		return symptom{weighsDescriptors, CodeDescriptors}
	case isTLS(err):
		return symptom{weighsTLS, CodeTLS}
	case isMissingHost(err):
		return symptom{weighsDNS, CodeDNS}
	case isTimeout(err):
		return symptom{weighsTimeout, CodeTimeout}
	case isNetwork(err):
		return symptom{weighsNetwork, CodeNetwork}
	}
	return symptom{}
}

// is checks this error alone; errors.Is would check all below it too.
func is(err, target error) bool {
	if err == target {
		return true
	}
	asks, ok := err.(interface{ Is(error) bool })
	return ok && asks.Is(target)
}

func isTLS(err error) bool {
	switch e := err.(type) {
	case x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError,
		x509.SystemRootsError, x509.ConstraintViolationError, x509.InsecureAlgorithmError,
		x509.UnhandledCriticalExtension,
		*tls.CertificateVerificationError, *tls.ECHRejectionError,
		tls.RecordHeaderError, tls.AlertError:
		return true
	case *net.OpError:
		// The type of a TLS alert in crypto/tls is not exported. The operation identifies it.
		return e.Op == "remote error" || e.Op == "local error"
	}
	return false
}

func isMissingHost(err error) bool {
	e, ok := err.(*net.DNSError)
	return ok && e.IsNotFound && !e.IsTemporary && !e.IsTimeout
}

func isTimeout(err error) bool {
	if is(err, context.DeadlineExceeded) {
		return true
	}
	e, ok := err.(interface{ Timeout() bool }) // os.ErrDeadlineExceeded is one of them
	return ok && e.Timeout()
}

var networkErrnos = []syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
	syscall.EHOSTUNREACH, syscall.EHOSTDOWN, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ENETRESET,
	syscall.ENOTCONN, syscall.ESHUTDOWN, syscall.EADDRNOTAVAIL,
}

func isNetwork(err error) bool {
	// Every errno is a net.Error, also those of files.
	if errno, ok := err.(syscall.Errno); ok {
		return slices.Contains(networkErrnos, errno)
	}
	if _, ok := err.(net.Error); ok {
		return true
	}
	for _, closed := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed} {
		if is(err, closed) {
			return true
		}
	}
	return false
}
