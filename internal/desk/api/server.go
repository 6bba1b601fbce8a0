package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"time"
)

// Limits for a client, so that it cannot hold a connection or memory for long.
const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
	// writeSlack is the time to write an answer, besides the work for it.
	writeSlack = 30 * time.Second
)

// Server serves the API on a listener.
type Server struct {
	Handler http.Handler
	// TLS has the certificate and, for client certificates, the authorities; nil: no TLS. The least version is TLS
	// 1.2, whatever it says.
	TLS *tls.Config
	// LongTimeout is that of [Config]; zero: its default.
	LongTimeout time.Duration
	// Bye is how long running requests may take to end when the server stops; zero: 5 s.
	Bye time.Duration
}

type stoppingKey struct{}

// Stopping is closed when the request's server stops; nil: it is never closed.
func Stopping(ctx context.Context) <-chan struct{} { return stopping(ctx) }

// stopping is closed when the request's server stops; nil: it is never closed.
func stopping(ctx context.Context) <-chan struct{} {
	done, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return done
}

// Run serves until ctx ends, and then waits for running requests. It closes l. An error means that it could not serve
// while ctx lasted.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	base, stop := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx.Done()))
	defer stop()
	long := Config{LongTimeout: s.LongTimeout}.withDefaults().LongTimeout
	h := &http.Server{
		Handler: s.Handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: long + writeSlack, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		// The server's log messages are about clients and quote them.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}
	if s.TLS != nil {
		c := s.TLS.Clone()
		c.MinVersion, c.NextProtos = max(c.MinVersion, tls.VersionTLS12), []string{"http/1.1"}
		l = tls.NewListener(l, c)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve the API: %w", err)
	case <-ctx.Done():
	}
	wait := s.Bye
	if wait == 0 {
		wait = 5 * time.Second
	}
	bye, cancel := context.WithTimeout(base, wait)
	defer cancel()
	if h.Shutdown(bye) != nil {
		stop()
		_ = h.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the API: %w", err)
	}
	return nil
}
