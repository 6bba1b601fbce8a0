package deskapp

import (
	"context"
	"fmt"
	"net"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/app"
	"docket/internal/buildinfo"
	"docket/internal/config"
	"docket/internal/desk"
	"docket/internal/deskapi"
	"docket/internal/reader"
	"docket/internal/subject"
)

// api is the HTTP API on its listener.
type api struct {
	listener net.Listener
	server   deskapi.Server
}

// openAPI listens and makes the API, where there is to be one.
func (p *Program) openAPI(trial *desk.Trial, horizon *desk.Horizon, reg *prometheus.Registry) error {
	s := p.settings
	if s.DeskAPIAddr == "" {
		return nil
	}
	auth, err := who(s)
	if err != nil {
		return err
	}
	question, err := explaining(s)
	if err != nil {
		return err
	}
	handler, err := deskapi.New(deskapi.Config{Version: buildinfo.String(), Lease: s.DeskLease, Registry: reg}, deskapi.Ports{
		Book: p.parts.ledger, Trial: trial, Horizon: horizon, Decisions: p.parts.db.Reader(), Question: question, WhereIs: whereIs(s),
	}, auth, p.log)
	if err != nil {
		return config.Complaint{Variable: "DOCKET_DESK_API_CLIENTS", Text: err.Error()}
	}
	tls, err := s.APITLS()
	if err != nil {
		return err
	}
	listener, err := app.Listen("tcp", s.DeskAPIAddr)
	if err != nil {
		return fmt.Errorf("listen on DOCKET_DESK_API_ADDR %s: %w", s.DeskAPIAddr, err)
	}
	p.api = &api{listener, deskapi.Server{Handler: handler, TLS: tls}}
	if len(auth.Tokens)+len(auth.Clients) == 0 {
		p.log.Info().Str("addr", p.apiAddr()).Str("hint", "set DOCKET_DESK_API_TOKENS or DOCKET_DESK_API_CLIENTS to allow requests").
			Msg("no API users configured")
	}
	return nil
}

func (a *api) run(ctx context.Context) error { return a.server.Run(ctx, a.listener) }

func (a *api) close() { _ = a.listener.Close() }

// apiAddr is where the API listens, empty where there is none.
func (p *Program) apiAddr() string {
	if p.api == nil {
		return ""
	}
	return p.api.listener.Addr().String()
}

// who may use the API.
func who(s config.Settings) (deskapi.Auth, error) {
	tokens, err := deskapi.ParseTokens(s.DeskAPITokens.Reveal())
	if err != nil {
		return deskapi.Auth{}, config.Complaint{Variable: "DOCKET_DESK_API_TOKENS", Text: err.Error()}
	}
	clients, err := deskapi.ParseClients(s.DeskAPIClients)
	if err != nil {
		return deskapi.Auth{}, config.Complaint{Variable: "DOCKET_DESK_API_CLIENTS", Text: err.Error()}
	}
	return deskapi.Auth{Tokens: tokens, Clients: clients}, nil
}

// explaining is how decisions are explained.
func explaining(s config.Settings) (q reader.Question, err error) {
	if q.Subject, err = subject.Parse(s.ReaderSubject); err != nil {
		return q, config.Complaint{Variable: "DOCKET_READER_SUBJECT", Text: err.Error()}
	}
	if q.Extractors, err = reader.ParseExtractors(s.ReaderExtractors); err != nil {
		return q, config.Complaint{Variable: "DOCKET_READER_EXTRACTORS", Text: err.Error()}
	}
	return q, nil
}
