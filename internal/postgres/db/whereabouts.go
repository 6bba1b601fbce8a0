package db

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/errclass"
)

// whereabouts say how to connect, as the URL and the files that it names say it at the time. So a new password or a new
// certificate needs no restart. Where a file cannot be read, or is half written, the last good one stays in use.
// It is safe for concurrent use.
type whereabouts struct {
	cfg Config
	log zerolog.Logger

	certless atomic.Bool // a server asked for a certificate, and there is none of an authority that it knows

	mu   sync.Mutex
	url  string
	last *pgx.ConnConfig
	lame bool // the last look failed, and that was told
}

// now is how to connect just now, for the caller to keep. Parsing takes well under what dialling does.
func (w *whereabouts) now() *pgx.ConnConfig {
	w.mu.Lock()
	defer w.mu.Unlock()
	url, err := w.cfg.URL, error(nil)
	if w.cfg.Fresh != nil {
		url, err = w.cfg.Fresh()
		if err != nil { // the log names the fault without its cause, which is another's text
			err = &ConfigError{Reason: "the file that has it cannot be read, or is empty"}
		}
	}
	if err == nil {
		err = w.read(url)
	}
	switch {
	case err != nil && !w.lame:
		w.log.Warn().Str("reason", reason(err)).
			Str("hint", "correct DOCKET_DATABASE_URL_FILE or the files that the URL names; the last readable ones stay in use").
			Msg("database credentials not reloaded")
	case err == nil && w.lame:
		w.log.Info().Msg("database credentials became readable")
	}
	w.lame = err != nil
	cc := w.last.Copy()
	if w.cfg.ReadOnly && len(cc.Fallbacks) > 0 {
		cc.ValidateConnect = primaryFirst() // of this connection
	}
	return cc
}

// read takes over a URL, and the files that it names as they are now.
func (w *whereabouts) read(url string) error {
	cfg := w.cfg
	cfg.URL = url
	pc, err := poolConfig(cfg)
	if err != nil {
		return err
	}
	if w.last != nil && w.url != url {
		w.log.Info().Msg("database URL changed")
	}
	w.last, w.url = pc.ConnConfig, url
	w.watchDemands(w.last)
	return nil
}

// watchDemands notes where a server asks for a certificate that we do not have. The SQLSTATE of its refusal is the same
// as that of a user whom pg_hba.conf does not know.
func (w *whereabouts) watchDemands(cc *pgx.ConnConfig) {
	watch := func(c *tls.Config) {
		if c == nil || c.GetClientCertificate != nil {
			return
		}
		ours := c.Certificates
		c.GetClientCertificate = func(demanded *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			for i := range ours {
				if demanded.SupportsCertificate(&ours[i]) == nil {
					w.certless.Store(false)
					return &ours[i], nil
				}
			}
			w.certless.Store(true)
			return &tls.Certificate{}, nil
		}
	}
	watch(cc.TLSConfig)
	for _, f := range cc.Fallbacks {
		watch(f.TLSConfig)
	}
}

// before is how the pool connects.
func (w *whereabouts) before(_ context.Context, cc *pgx.ConnConfig) error {
	*cc = *w.now()
	return nil
}

// clean is clean of what a connection failed with, and knows what the server asked for.
func (w *whereabouts) clean(act string, err error) error {
	err = Clean(act, err)
	if said, ok := AsServerError(err); ok && said.code == "28000" && w.certless.Load() {
		said.certless = true
	}
	return err
}

// reason is why it could not be read, in words that quote nothing.
func reason(err error) string {
	if wrong := (*ConfigError)(nil); errors.As(err, &wrong) {
		return wrong.Reason
	}
	return errclass.CodeConfig
}
