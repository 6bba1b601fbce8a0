package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// SignatureHeader has "sha256=" and the hex of HMAC-SHA256 over the body, if a webhook has a secret.
const SignatureHeader = "Docket-Signature"

const secretParameter = "docket_secret"

type webhook struct {
	url    string
	secret []byte // nil: no signature
	client *http.Client
}

// hookBody is the body for a webhook.
type hookBody struct {
	Version  int       `json:"version"`
	ID       string    `json:"id"`
	SentAt   time.Time `json:"sent_at"`
	Kind     Kind      `json:"kind"`
	Key      string    `json:"key"`
	Severity Severity  `json:"severity"`
	Title    string    `json:"title"`
	Lines    []string  `json:"lines"`
}

func newWebhook(u *url.URL) (*webhook, error) {
	if u.Host == "" {
		return nil, errors.New("the host is missing")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errors.New("its parameters are not well-formed")
	}
	w := &webhook{client: &http.Client{
		Transport: http.DefaultTransport,
		// A message for one host must not go to another.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	if query.Has(secretParameter) {
		if w.secret = []byte(query.Get(secretParameter)); len(w.secret) == 0 {
			return nil, errors.New(secretParameter + " is empty")
		}
		query.Del(secretParameter)
		u.RawQuery = query.Encode()
	}
	u.Fragment = ""
	w.url = u.String()
	return w, nil
}

func (w *webhook) send(ctx context.Context, m Message) error {
	lines := m.Lines
	if lines == nil {
		lines = []string{}
	}
	body, err := json.Marshal(hookBody{
		Version: 1, ID: m.id, SentAt: m.at, Kind: m.Kind, Key: m.Key, Severity: m.Severity, Title: m.Title, Lines: lines,
	})
	if err != nil {
		return fmt.Errorf("write a message as JSON: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "docket")
	if w.secret != nil {
		req.Header.Set(SignatureHeader, Sign(w.secret, body))
	}
	res, err := w.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	// The body is ignored. It is read so that the connection can be reused.
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return statusError(res.StatusCode)
	}
	return nil
}

// Sign returns the value of [SignatureHeader].
func Sign(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}
