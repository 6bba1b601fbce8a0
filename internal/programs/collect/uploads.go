package collect

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

	"docket/internal/service/config"
)

// Limits on a client, so that none can hold a connection or memory for long. DOCKET_COLLECTOR_BODY_TIMEOUT
// limits how long a body may take.
const (
	headerTimeout  = 5 * time.Second
	maxHeaderBytes = 16 << 10
	// idleTimeout is longer than that of the usual load balancer, 60 s: the side that may still send should close.
	idleTimeout = 2 * time.Minute
	// answerSlack is what an answer may take beside the body and the brokers.
	answerSlack = 30 * time.Second
)

// uploads serves OPA on a listener.
type uploads struct {
	listener net.Listener
	http     *http.Server
	within   time.Duration      // the time for uploads in progress after the stop
	cancel   context.CancelFunc // of all uploads in progress
}

func newUploads(s config.Settings, l net.Listener, speak *tls.Config, h http.Handler) *uploads {
	base, cancel := context.WithCancel(context.Background())
	if speak != nil {
		l = tls.NewListener(l, speak)
	}
	return &uploads{listener: l, within: s.ShutdownTimeout, cancel: cancel, http: &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, WriteTimeout: s.CollectorBodyTimeout + 2*s.PublishTimeout + answerSlack,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, BaseContext: func(net.Listener) context.Context { return base },
		// Its complaints are about clients and quote them.
		ErrorLog: stdlog.New(io.Discard, "", 0),
	}}
}

// run serves until ctx ends. Then it calls drain and listens for a while, so that late clients get an answer and not a refused
// connection. It closes the listener and lets uploads in progress end. Where that takes too long it calls left, and ends them without
// an answer.
func (u *uploads) run(ctx context.Context, farewell func(context.Context), drain, left func()) error {
	ended := make(chan error, 1)
	go func() { ended <- u.http.Serve(u.listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve uploads: %w", err)
	case <-ctx.Done():
	}
	drain()
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.within)
	defer cancel()
	farewell(within)
	if u.http.Shutdown(within) != nil {
		left()
		u.close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve uploads: %w", err)
	}
	return nil
}

// close ends all at once.
func (u *uploads) close() {
	u.cancel()
	_ = u.http.Close()
	_ = u.listener.Close()
}
