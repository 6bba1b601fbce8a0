package desk

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"docket/internal/audit/inspect"
	"docket/internal/desk/api"
	"docket/internal/desk/worker"
	"docket/internal/history/cold"
	"docket/internal/history/cold/cache"
	"docket/internal/history/complete"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/subject"
	"docket/internal/service/app"
	"docket/internal/service/buildinfo"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

// listener is the HTTP API on its address.
type listener struct {
	listener net.Listener
	server   api.Server
	handler  *api.Handler
}

// tokensVariable is the setting with the tokens of the API.
const tokensVariable = "DOCKET_DESK_API_TOKENS"

// clientsVariable is the setting with the client certificates of the API.
const clientsVariable = "DOCKET_DESK_API_CLIENTS"

// openAPI listens and makes the API, where an address is set.
func (p *Program) openAPI(trial *worker.Trial, horizon *worker.Horizon, reg prometheus.Registerer) error {
	s := p.settings
	if s.DeskAPIAddr == "" {
		return nil
	}
	auth, err := authOf(s, s.DeskAPITokens)
	if err != nil {
		return err
	}
	question, err := explaining(s)
	if err != nil {
		return err
	}
	rows := historydb.NewReader(p.parts.asked.DB)
	days := inspect.ArchivedDays(s, p.parts.asked, shelfOf(s))
	p.days = days
	if days.CacheFault != nil { // the work on dead letters does not need it
		hint := "check DOCKET_CACHE_DIR; until then each question reads the object storage"
		if unsafe := (*cache.UnsafeError)(nil); errors.As(days.CacheFault, &unsafe) {
			hint = unsafe.Hint()
		}
		p.log.Warn().Err(days.CacheFault).Str(telemetry.KeyHint, hint).Msg("cache not opened")
	}
	decisions, states := inspect.Decisions(rows, days), state.Store(rows)
	p.complete = NewWatch(s, p.parts.reader)
	look := shareLook(s, p.parts.asked, inspect.Sight{Topics: p.parts.reader, Days: days, Quiet: p.quiet})
	if s.CacheDir != "" && s.ArchiveTo != "" {
		caches := []*cold.Days{days}
		if all := p.parts.everywhere; all != nil {
			caches = all.Archived()
		}
		reg.MustRegister(newColdMetrics(caches))
	}
	answers := &complete.Answers{Books: rows, Status: func(context.Context) complete.Status { return p.complete.Status() }}
	if s.Share() != nil { // the other shards are not asked, so no answer is complete
		answers = &complete.Answers{}
	}
	var shards []lookup.ShardLook
	if all := p.parts.everywhere; all != nil {
		decisions, states, look, answers = all.Decisions, all.States, lookup.NewShared(all.Look), p.watchShards(all)
		shards = all.Look.Shards
	}
	calendar := Calendar(rows, days, time.Now)
	if s.Share() != nil || p.parts.everywhere != nil { // each shard has days of its own
		calendar = nil
	}
	archives := p.archivesOf(s, days)
	handler, err := api.New(api.Config{Version: buildinfo.String(), MaxRecordBytes: int64(s.MaxRecordBytes), Lease: s.DeskLease, Registry: reg}, api.Ports{
		Book: ledgerdb.New(p.parts.asked.DB), Trial: trial, Horizon: horizon, Decisions: decisions, Question: question,
		Backlog: func(ctx context.Context) (worker.Backlog, error) { return Backlog(ctx, s) },
		WhereIs: whereIs(s, look.Find, shards), Elsewhere: look.Find, Around: look.Around, Complete: answers,
		Verify: verifyIn(s), Inventory: archives.inventory, Prove: archives.prove, Forget: archives.forget, ForgetLetters: archives.forgetLetters,
		States: states, Calendar: calendar, Check: func(ctx context.Context) []api.Finding { return findings(ctx, s) },
	}, auth, p.log)
	if err != nil {
		return config.Complaint{Variable: clientsVariable, Text: err.Error()}
	}
	tls, err := s.APITLS(app.ListenerFiles(p.log))
	if err != nil {
		return err
	}
	socket, err := app.Listen("tcp", s.DeskAPIAddr)
	if err != nil {
		return fmt.Errorf("listen on DOCKET_DESK_API_ADDR %s: %w", s.DeskAPIAddr, err)
	}
	pages, err := p.openConsole(handler, tls != nil)
	if err != nil {
		_ = socket.Close()
		return err
	}
	p.api = &listener{socket, api.Server{Handler: pages, TLS: tls}, handler}
	if !handler.Used() && s.DeskOIDCIssuer == "" {
		p.log.Info().Str("addr", p.apiAddr()).Str("hint", "set DOCKET_DESK_API_TOKENS or DOCKET_DESK_API_CLIENTS to allow requests").
			Msg("no API users configured")
	}
	return nil
}

// watchShards makes a watch for each shard, and answers that join them.
func (p *Program) watchShards(all *inspect.Everywhere) *complete.Answers {
	answers := make([]*complete.Answers, len(all.Shards))
	for i, one := range all.Shards {
		w := NewWatch(one.Settings, p.parts.watched[i])
		p.shards = append(p.shards, w)
		answers[i] = &complete.Answers{Books: one.Rows, Status: func(context.Context) complete.Status { return w.Status() }}
	}
	return complete.Joined(answers...)
}

// quiet is what the watch knows of the topics.
func (p *Program) quiet() lookup.Quiet {
	s := p.complete.Status()
	until, nothing := s.Read()
	note, noted := s.Spools()
	return lookup.Quiet{Until: until, Nothing: nothing, Slow: s.Slow(), Spools: lookup.Noted{Note: note, Known: noted}}
}

func (a *listener) run(ctx context.Context) error { return a.server.Run(ctx, a.listener) }

func (a *listener) close() { _ = a.listener.Close() }

// apiAddr is where the API listens, empty where there is none.
func (p *Program) apiAddr() string {
	if p.api == nil {
		return ""
	}
	return p.api.listener.Addr().String()
}

// renew reads the file of tokens again where it has changed, until ctx ends.
func (p *Program) renew(ctx context.Context) {
	app.Renewal{
		Loaded: p.settings.DeskAPITokens, Every: p.options.TokensEvery,
		Read: func(now config.Secret) (config.Secret, error) { return p.settings.Fresh(tokensVariable, now) },
		Use:  p.admit,
		Broken: func(err error) {
			p.log.Warn().Str(telemetry.KeyReason, err.Error()).
				Str(telemetry.KeyHint, "correct the file in DOCKET_DESK_API_TOKENS_FILE; the last readable tokens stay in use").
				Msg("desk tokens not reloaded")
		},
		Readable: func() { p.log.Info().Msg("desk tokens became readable") },
		Changed:  func() { p.log.Info().Msg("desk tokens changed") },
	}.Run(ctx)
}

// admit changes the tokens of the API. A file without one changes nothing: it may be half written.
func (p *Program) admit(text config.Secret) error {
	auth, err := authOf(p.settings, text)
	if err != nil {
		return err
	}
	if len(auth.Tokens) == 0 {
		return errNoTokens
	}
	return p.api.handler.Admit(auth)
}

var errNoTokens = errors.New("it has no token")

// authOf returns the tokens of the API and their rights.
func authOf(s config.Settings, text config.Secret) (api.Auth, error) {
	tokens, err := api.ParseTokens(text.Reveal())
	if err != nil {
		return api.Auth{}, config.Complaint{Variable: tokensVariable, Text: err.Error()}
	}
	clients, err := api.ParseClients(s.DeskAPIClients)
	if err != nil {
		return api.Auth{}, config.Complaint{Variable: clientsVariable, Text: err.Error()}
	}
	return api.Auth{Tokens: tokens, Clients: clients}, nil
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
