package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"docket/internal/collector"
	"docket/internal/consumer/lanes"
	"docket/internal/record/redact"
	"docket/internal/record/subject"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/service/telemetry"
)

const (
	keyVariable     = "DOCKET_COLLECTOR_KEY"
	dropVariable    = "DOCKET_COLLECTOR_DROP"
	maskVariable    = "DOCKET_COLLECTOR_MASK"
	tokensVariable  = "DOCKET_COLLECTOR_TOKENS"
	clientsVariable = "DOCKET_COLLECTOR_CLIENTS_FILE"
)

// Judges check the settings that only the collector understands.
func Judges() config.Judges {
	said := func(err error) string {
		if err == nil {
			return ""
		}
		return strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return config.Judges{
		tokensVariable: func(text string) string {
			_, err := tokens(config.Secret(text))
			return said(err)
		},
		keyVariable: func(text string) string {
			_, err := subject.Parse(text)
			return said(err)
		},
		dropVariable: func(text string) string {
			_, err := redact.Parse(pointers(text), nil)
			return said(err)
		},
		maskVariable: func(text string) string {
			_, err := redact.Parse(nil, pointers(text))
			return said(err)
		},
	}
}

// pointers splits as settings are split.
func pointers(text string) []string {
	all := strings.Split(text, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// Agree refuses settings that contradict each other. An error is a [config.Complaint].
func Agree(s config.Settings) error {
	if readOnce(s.CollectorClientsFile) {
		s.CollectorClientsFile = "" // New reads it
	}
	_, _, err := work(s)
	return err
}

// unread names the file of rights if Agree leaves it to the program.
func unread(s config.Settings) []config.Complaint {
	if !readOnce(s.CollectorClientsFile) {
		return nil
	}
	return []config.Complaint{{Variable: clientsVariable, Text: "this file is a pipe and was left unread for the program: its rights were not checked"}}
}

// work makes the limits and rules of the collector from settings and credentials. An error is a [config.Complaint].
func work(s config.Settings) (collector.Config, credentials, error) {
	key, err := subject.Parse(s.CollectorKey)
	if err != nil {
		return collector.Config{}, credentials{}, config.Complaint{Variable: keyVariable, Text: err.Error()}
	}
	rules, err := redact.Parse(s.CollectorDrop, s.CollectorMask)
	if err != nil {
		return collector.Config{}, credentials{}, config.Complaint{Variable: maskVariable, Text: "does not go with " + dropVariable + ": " + err.Error()}
	}
	for variable, pointers := range map[string][]string{dropVariable: s.CollectorDrop, maskVariable: s.CollectorMask} {
		if one, err := redact.Parse(pointers, nil); err == nil && one.Covers(key.FullPointer()) {
			return collector.Config{}, credentials{}, config.Complaint{Variable: keyVariable, Text: fmt.Sprintf("%s is what %s takes out before there are keys, "+
				"so that no order by it could hold: key by something else, or leave it in", key, variable)}
		}
	}
	clients, err := readClients(s.CollectorClientsFile)
	if err != nil {
		return collector.Config{}, credentials{}, config.Complaint{Variable: clientsVariable, Text: err.Error()}
	}
	in := credentials{s.CollectorTokens, clients}
	auth, err := authOf(s, in)
	if err != nil {
		return collector.Config{}, credentials{}, err
	}
	return collector.Config{
		Topic: s.KafkaTopic, DLQTopic: s.KafkaDLQTopic, Lanes: laneTopics(s), Routing: s.Routing(), Key: key, Redact: rules,
		UploadBytes: int64(s.CollectorUploadBytes), InflatedBytes: int64(s.CollectorInflated), Memory: int64(s.CollectorMemory), MaxRefused: s.MaxRefused, Uploads: s.CollectorUploads,
		BodyTimeout: s.CollectorBodyTimeout, PublishTimeout: s.PublishTimeout, RetryAfter: s.CollectorRetryAfter, Auth: auth, Keys: s.HeaderKeys(),
	}, in, nil
}

// laneTopics are the topics of all lanes.
func laneTopics(s config.Settings) map[lanes.Lane]string {
	topics := map[lanes.Lane]string{}
	for _, l := range s.Lanes() {
		topics[l.Lane] = l.Topic
	}
	return topics
}

var errNoTokens = errors.New("it has no token")

// tokens are those of a setting. A setting that is not empty has at least one: without any, all clients might upload.
func tokens(text config.Secret) ([]collector.Token, error) {
	all, err := collector.ParseTokens(text.Reveal())
	if err == nil && len(all) == 0 && text != "" {
		err = errNoTokens
	}
	return all, err
}

// mostClients is the largest file of rights, in bytes.
const mostClients = 1 << 20

// readClients is the text of that file; empty: there is none.
func readClients(path string) (config.Secret, error) {
	if path == "" {
		return "", nil
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the file cannot be read: %w", bare(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, mostClients+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the file cannot be read: %w", bare(err))
	case len(text) > mostClients:
		return "", fmt.Errorf("the file has more than %d bytes", mostClients)
	case len(text) == 0:
		return "", errors.New("the file is empty")
	}
	return config.Secret(text), nil
}

// freshClients reads the file of rights again. A file that cannot be read twice, such as a pipe, has what was loaded.
func freshClients(path string, loaded config.Secret) (config.Secret, error) {
	if readOnce(path) {
		return loaded, nil
	}
	return readClients(path)
}

// readOnce reports whether a file cannot be read twice: a second open of a pipe waits.
func readOnce(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// bare is an error of the file system without the path.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// credentials can change in their files while the collector runs.
type credentials struct {
	tokens  config.Secret
	clients config.Secret // the rights of each client; empty: all may upload everything
}

// authOf returns the clients that may upload, with their rights. An error is a [config.Complaint].
func authOf(s config.Settings, c credentials) (collector.Auth, error) {
	all, err := tokens(c.tokens)
	if err != nil {
		return collector.Auth{}, config.Complaint{Variable: tokensVariable, Text: err.Error()}
	}
	auth := collector.Auth{Tokens: all, ClientCA: s.CollectorClientCA != "", Clients: slices.Clone(s.CollectorClients)}
	if c.clients == "" {
		return auth, nil
	}
	if len(all) == 0 && !auth.ClientCA {
		return collector.Auth{}, config.Complaint{Variable: clientsVariable, Text: "needs " + tokensVariable + " or DOCKET_COLLECTOR_CLIENT_CA, without which no client has a name"}
	}
	if auth.Rights, err = collector.ParseRights([]byte(c.clients.Reveal())); err != nil {
		return collector.Auth{}, config.Complaint{Variable: clientsVariable, Text: err.Error()}
	}
	return auth, nil
}

// admission has the clients that may upload now.
type admission struct {
	mu sync.Mutex
	in credentials
}

// admit replaces the clients and their rights.
func (p *Program) admit(change func(*credentials)) error {
	p.admission.mu.Lock()
	defer p.admission.mu.Unlock()
	next := p.admission.in
	change(&next)
	auth, err := authOf(p.settings, next)
	if err == nil {
		p.admission.in = next
		p.service.Admit(auth)
	}
	return err
}

// renewRights reads the file of rights again where it has changed, until ctx ends.
func (p *Program) renewRights(ctx context.Context) {
	app.Renewal{
		Loaded: p.admission.in.clients, Every: p.options.TokensEvery,
		Read: func(now config.Secret) (config.Secret, error) {
			return freshClients(p.settings.CollectorClientsFile, now)
		},
		Use: func(fresh config.Secret) error {
			return p.admit(func(c *credentials) { c.clients = fresh })
		},
		Broken: func(err error) {
			p.log.Warn().Str(telemetry.KeyReason, strings.ReplaceAll(err.Error(), "\n", "; ")).
				Str(telemetry.KeyHint, "correct the file in DOCKET_COLLECTOR_CLIENTS_FILE; the last readable rights stay in use").
				Msg("client rights not reloaded")
		},
		Readable: func() { p.log.Info().Msg("client rights became readable") },
		Changed:  func() { p.log.Info().Msg("client rights changed") },
	}.Run(ctx)
}

// renew reads the file of tokens again where it has changed, until ctx ends.
func (p *Program) renew(ctx context.Context) {
	app.Renewal{
		Loaded: p.settings.CollectorTokens, Every: p.options.TokensEvery,
		Read: func(now config.Secret) (config.Secret, error) { return p.settings.Fresh(tokensVariable, now) },
		Use: func(fresh config.Secret) error {
			return p.admit(func(c *credentials) { c.tokens = fresh })
		},
		Broken: func(err error) {
			p.log.Warn().Str(telemetry.KeyReason, strings.ReplaceAll(err.Error(), "\n", "; ")).
				Str(telemetry.KeyHint, "correct the file in DOCKET_COLLECTOR_TOKENS_FILE; the last readable tokens stay in use").
				Msg("collector tokens not reloaded")
		},
		Readable: func() { p.log.Info().Msg("collector tokens became readable") },
		Changed:  func() { p.log.Info().Msg("collector tokens changed") },
	}.Run(ctx)
}
