package collectorapp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"docket/internal/app"
	"docket/internal/collector"
	"docket/internal/config"
	"docket/internal/redact"
	"docket/internal/subject"
	"docket/internal/telemetry"
)

const (
	keyVariable    = "DOCKET_COLLECTOR_KEY"
	dropVariable   = "DOCKET_COLLECTOR_DROP"
	maskVariable   = "DOCKET_COLLECTOR_MASK"
	tokensVariable = "DOCKET_COLLECTOR_TOKENS"
)

// Judges know what those settings mean that only the collector understands.
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

// Agree says what does not go together of settings of which each is fine. An error is a [config.Complaint].
func Agree(s config.Settings) error {
	_, err := work(s)
	return err
}

// work is what the collector keeps to. An error is a [config.Complaint].
func work(s config.Settings) (collector.Config, error) {
	key, err := subject.Parse(s.CollectorKey)
	if err != nil {
		return collector.Config{}, config.Complaint{Variable: keyVariable, Text: err.Error()}
	}
	rules, err := redact.Parse(s.CollectorDrop, s.CollectorMask)
	if err != nil {
		return collector.Config{}, config.Complaint{Variable: maskVariable, Text: "does not go with " + dropVariable + ": " + err.Error()}
	}
	for variable, pointers := range map[string][]string{dropVariable: s.CollectorDrop, maskVariable: s.CollectorMask} {
		if one, err := redact.Parse(pointers, nil); err == nil && one.Covers(key.Place()) {
			return collector.Config{}, config.Complaint{Variable: keyVariable, Text: fmt.Sprintf("%s is what %s takes out before there are keys, "+
				"so that no order by it could hold: key by something else, or leave it in", key, variable)}
		}
	}
	auth, err := who(s, s.CollectorTokens)
	if err != nil {
		return collector.Config{}, config.Complaint{Variable: tokensVariable, Text: err.Error()}
	}
	return collector.Config{
		Topic: s.KafkaTopic, DLQTopic: s.KafkaDLQTopic, Key: key, Redact: rules,
		UploadBytes: int64(s.CollectorUploadBytes), InflatedBytes: int64(s.CollectorInflated), Memory: int64(s.CollectorMemory), Uploads: s.CollectorUploads,
		BodyTimeout: s.CollectorBodyTimeout, PublishTimeout: s.PublishTimeout, RetryAfter: s.CollectorRetryAfter, Auth: auth, Keys: s.HeaderKeys(),
	}, nil
}

var errNoTokens = errors.New("it has no token")

// tokens are those of a setting, which holds one at least where it holds anything: with none everybody might upload.
func tokens(text config.Secret) ([]collector.Token, error) {
	all, err := collector.ParseTokens(text.Reveal())
	if err == nil && len(all) == 0 && text != "" {
		err = errNoTokens
	}
	return all, err
}

// who may upload.
func who(s config.Settings, text config.Secret) (collector.Auth, error) {
	all, err := tokens(text)
	if err != nil {
		return collector.Auth{}, err
	}
	return collector.Auth{Tokens: all, ClientCA: s.CollectorClientCA != "", Clients: slices.Clone(s.CollectorClients)}, nil
}

// renew takes over tokens that have changed in their file, until ctx ends.
func (p *Program) renew(ctx context.Context) {
	app.Renewal{
		Settings: p.settings, Variable: tokensVariable, Loaded: p.settings.CollectorTokens, Every: p.options.TokensEvery,
		Use: func(fresh config.Secret) error {
			auth, err := who(p.settings, fresh)
			if err == nil {
				p.service.Admit(auth)
			}
			return err
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
