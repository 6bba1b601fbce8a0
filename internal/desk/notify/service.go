package notify

import (
	"context"
	"errors"
	"io"
	"log"
	"net/url"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
)

// maxHanging limits the sends of one channel that wait for a missing answer. shoutrrr's sends take no context. Those
// of some services (SMTP after it connected, Teams, Zulip) have no time limit and end when the server closes the
// connection. Each keeps a goroutine and a connection. Beyond this number no new send begins.
const maxHanging = 3

var (
	errSlow    = errors.New("no answer in time")
	errHanging = errors.New("earlier sends still wait for their answers")
	errBroke   = errors.New("the service's own code failed")
)

// service is a service of shoutrrr.
type service struct {
	url    string
	kind   string
	make   func(rawURL string) (types.Service, error)
	flying chan struct{}
}

// newService checks whether shoutrrr understands an address. Its errors quote the address, so none is returned. Its
// router is only used to make services: the router's own sends leak a goroutine when they take too long.
func newService(entry string, u *url.URL) (kind string, _ *service, err error) {
	kind, _, _ = strings.Cut(strings.ToLower(u.Scheme), "+")
	// Logs of services quote addresses and answers.
	r, err := router.New(log.New(io.Discard, "", 0))
	if err != nil {
		return "", nil, errors.New("shoutrrr does not start")
	}
	if _, err := r.NewService(kind); err != nil {
		// A word that is not a service's name may be a secret.
		return "", nil, errors.New("unknown service; see the list of shoutrrr's services")
	}
	// Matrix logs in while it is made, which is too early here.
	if kind != "matrix" {
		if _, err := r.Locate(entry); err != nil {
			return kind, nil, errors.New("the service does not take it; see shoutrrr's page on it")
		}
	}
	return kind, &service{url: entry, kind: kind, make: r.Locate, flying: make(chan struct{}, maxHanging)}, nil
}

func (s *service) send(ctx context.Context, m Message) error {
	select {
	case s.flying <- struct{}{}:
	default:
		return errHanging
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-s.flying }()
		done <- s.once(m)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errSlow
	}
}

// once makes a new service for each send, because services keep state while they send, and an earlier send may be
// hanging.
func (s *service) once(m Message) (err error) {
	defer func() {
		if recover() != nil {
			err = errBroke
		}
	}()
	made, err := s.make(s.url)
	if err != nil {
		return err
	}
	text, params := s.text(m)
	return made.Send(text, &params)
}

// text returns the message in the service's form. Only some services have a title, under different names.
func (s *service) text(m Message) (string, types.Params) {
	params := types.Params{}
	title, text := m.Title, m.text()
	switch s.kind {
	case "slack":
		// Slack's markup begins with these three. Other special characters were removed from names.
		escape := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
		params["title"] = escape.Replace(title)
		if text == "" {
			text = title
		}
		return escape.Replace(text), params
	case "smtp":
		params["subject"] = "[docket] " + ascii(title)
		text += "\n\n" + m.at.Format(time.RFC3339)
	}
	return strings.TrimSuffix(title+"\n"+text, "\n"), params
}

// ascii makes a text for a header that is not encoded.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, s)
}
