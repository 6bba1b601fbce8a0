package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// dialer connects for one client and notes the stage that failed, because the advice to an operator depends on it.
type dialer struct {
	Config
	files changeLog
}

func newDialer(c Config, logger kgo.Logger) *dialer {
	return &dialer{Config: c, files: changeLog{logger: logger}}
}

// secured returns the present TLS settings, nil if TLS is off.
func (d *dialer) secured() *tls.Config {
	if d.FreshTLS == nil {
		return d.TLS
	}
	conf, err := d.FreshTLS()
	d.files.say("kafka TLS files not reloaded", err)
	return conf
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.DialTimeout)
	defer cancel()
	connect := d.Dialer
	if connect == nil {
		connect = (&net.Dialer{}).DialContext
	}
	conn, err := connect(ctx, network, address)
	if err != nil {
		failed := &dialError{address: address, err: err}
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			failed.code = codeDescriptors
		}
		return nil, failed
	}
	conf := d.secured()
	if conf == nil {
		return &firstRead{Conn: conn, end: end{address: address}}, nil
	}
	return shakeHands(ctx, conn, address, conf)
}

func shakeHands(ctx context.Context, conn net.Conn, address string, conf *tls.Config) (net.Conn, error) {
	e := end{address: address, tls: true}
	conf = conf.Clone()
	if conf.ServerName == "" {
		conf.ServerName, _, _ = net.SplitHostPort(address)
	}
	if conf.GetClientCertificate == nil {
		conf.GetClientCertificate = e.choose(conf.Certificates)
	}
	wire := &counted{Conn: conn}
	secure := tls.Client(wire, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the first error is the one to report
		return nil, e.failed(err, !wire.answered.Load())
	}
	return &firstRead{Conn: secure, end: e}, nil
}

// counted notes whether anything was read.
type counted struct {
	net.Conn
	answered atomic.Bool
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.answered.Load() {
		c.answered.Store(true)
	}
	return n, err
}

// firstRead explains a connection that ends before the broker's first answer. Since TLS 1.3 a broker refuses a
// client's certificate at that moment, after the client's handshake.
type firstRead struct {
	net.Conn
	end      end
	answered atomic.Bool
}

func (c *firstRead) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.answered.Load() {
		return n, err
	}
	switch {
	case n > 0 && !c.end.tls && isAlert(p[:n]):
		return 0, &dialError{address: c.end.address, tls: true, code: codeWanted, err: errAlert}
	case n > 0:
		c.answered.Store(true)
	case err != nil:
		err = c.end.closed(err)
	}
	return n, err
}

// Write explains a connection that ended between two writes.
func (c *firstRead) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if err != nil && !c.answered.Load() {
		err = c.end.closed(err)
	}
	return n, err
}

// isAlert reports whether bytes begin like a TLS alert. No answer of a broker has such a length.
func isAlert(b []byte) bool { return len(b) >= 2 && b[0] == 21 && b[1] == 3 }

// end collects facts about one end of a connection, to explain a failure.
type end struct {
	address string
	tls     bool
	asked   bool // the broker asked for a certificate
	shown   *tls.Certificate
}

// choose sends the broker the first certificate, even if the broker does not list its authority. The broker's refusal
// says more than a missing certificate.
func (e *end) choose(have []tls.Certificate) func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		e.asked = true
		if len(have) == 0 {
			return &tls.Certificate{}, nil
		}
		e.shown = &have[0]
		return e.shown, nil
	}
}

// expired reports whether the certificate that was sent is not valid now, by the local clock.
func (e *end) expired() bool {
	if e.shown == nil || e.shown.Leaf == nil {
		return false
	}
	now := time.Now()
	return now.After(e.shown.Leaf.NotAfter) || now.Before(e.shown.Leaf.NotBefore)
}
