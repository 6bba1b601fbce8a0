package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"syscall"

	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"
)

// statusError is an HTTP status that does not mean success.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("HTTP %d", int(e)) }

// why describes an error in fixed words. Errors of clients quote addresses, and those of servers anything.
func why(err error) string {
	var (
		status  statusError
		answer  jsonclient.Error
		reply   *textproto.Error
		dns     *net.DNSError
		network net.Error
		record  tls.RecordHeaderError
		verify  *tls.CertificateVerificationError
		unknown x509.UnknownAuthorityError
		name    x509.HostnameError
		op      *net.OpError
	)
	switch {
	case errors.Is(err, errSlow), errors.Is(err, errHanging), errors.Is(err, errBroke):
		return ownWords(err)
	case errors.As(err, &status):
		return status.Error()
	case errors.As(err, &answer) && answer.StatusCode != 0:
		return statusError(answer.StatusCode).Error()
	case errors.As(err, &reply):
		return fmt.Sprintf("the mail server answered %d", reply.Code)
	case errors.As(err, &dns):
		return "the host's name is not found"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection is refused"
	case errors.As(err, &record), errors.As(err, &verify), errors.As(err, &unknown), errors.As(err, &name):
		return "the TLS handshake failed"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return errSlow.Error()
	case errors.As(err, &op):
		return "the connection failed"
	}
	return "the service did not take it"
}

func ownWords(err error) string {
	for _, own := range []error{errSlow, errHanging, errBroke} {
		if errors.Is(err, own) {
			return own.Error()
		}
	}
	return ""
}
