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

// Limits on a client, so that none can hold a connection or memory for long.
const (
	headerTimeout  = 5 * time.Second
	idleTimeout    = time.Minute
	maxHeaderBytes = 16 << 10
	// writeSlack is what an answer may take beside the work for it.
	writeSlack = 30 * time.Second
)

// Server serves the API on a listener.
type Server struct {
	Handler http.Handler
	// TLS has the certificate and, where clients may bring certificates, who signs those; nil: no TLS. Less than TLS 1.2 is
	// not spoken, whatever it says.
	TLS *tls.Config
	// LongTimeout is that of [Config]; zero: its default.
	LongTimeout time.Duration
	// Bye is how long requests that are worked on may take to end when the server stops; zero: 5 s.
	Bye time.Duration
}

type stoppingKey struct{}

// stopping ends when the server that a request came by is to stop; nil: it says nothing of that.
func stopping(ctx context.Context) <-chan struct{} {
	done, _ := ctx.Value(stoppingKey{}).(<-chan struct{})
	return done
}

// Run serves until ctx ends, and then lets requests that are worked on end. It closes l. An error means that it could not
// serve any more while ctx lasted.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	base, stop := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), stoppingKey{}, ctx.Done()))
	defer stop()
	long := Config{LongTimeout: s.LongTimeout}.withDefaults().LongTimeout
	h := &http.Server{
		Handler: s.Handler, ReadHeaderTimeout: headerTimeout, WriteTimeout: long + writeSlack, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		// Its complaints are about clients and quote them.
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
