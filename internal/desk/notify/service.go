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

// maxHanging is how many sends of one channel may wait for answers that do not come. shoutrrr's sends take no context, and
// those of some services (SMTP after the connection is there, Teams, Zulip) have no limit of their own: they end when the
// server hangs up. One that is left behind is a goroutine and a connection; beyond this many nothing new is begun.
const maxHanging = 3

var (
	errSlow    = errors.New("no answer in time")
	errHanging = errors.New("earlier sends still wait for their answers")
	errBroke   = errors.New("the service's own code failed")
)

// service is a service of shoutrrr's.
type service struct {
	url    string
	kind   string
	make   func(rawURL string) (types.Service, error)
	flying chan struct{}
}

// newService looks whether shoutrrr understands an address. Its own errors quote it, so none is passed on; and of its router
// only the making of services is used: the router's sending leaves a goroutine behind for ever where a send takes too long,
// even when its server hangs up.
func newService(entry string, u *url.URL) (kind string, _ *service, err error) {
	kind, _, _ = strings.Cut(strings.ToLower(u.Scheme), "+")
	// What services log quotes addresses and answers.
	r, err := router.New(log.New(io.Discard, "", 0))
	if err != nil {
		return "", nil, errors.New("shoutrrr does not start")
	}
	if _, err := r.NewService(kind); err != nil {
		// A word that is no service's name may be anything.
		return "", nil, errors.New("there is no such service; see the list of shoutrrr's services")
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

// once makes the service anew, as services keep state while they send and one before may be hanging.
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

// text is the message as the service shows it. Only some have a place for a title, and not all under one name.
func (s *service) text(m Message) (string, types.Params) {
	params := types.Params{}
	title, text := m.Title, m.text()
	switch s.kind {
	case "slack":
		// These three are how Slack's markup begins; everything else that could mean something was taken out of names.
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

// ascii is a text for a header that is not encoded.
func ascii(s string) string {
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '?'
		}
		return r
	}, s)
}
