package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Channels are all destinations of messages. Use [New] to make them.
type Channels struct {
	log      zerolog.Logger
	channels []*channel
	results  *prometheus.CounterVec
}

// The label of the log, and the counted results.
const (
	logName = "log"
	sent    = "sent"
	failed  = "failed"  // after the last try
	dropped = "dropped" // the queue was full, or the program ended
)

// New reads addresses separated by white space. http:// and https:// are webhooks of Docket; all others are
// shoutrrr's. The log is always a channel. If reg is not nil, docket_desk_notifications_total is registered there.
// The error names each invalid entry by its position and kind, and quotes none. New does not connect.
func New(urls string, log zerolog.Logger, reg prometheus.Registerer) (*Channels, error) {
	c := &Channels{log: log, results: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "docket_desk_notifications_total", Help: "Messages to people, by channel and result.",
	}, []string{"channel", "result"})}
	var wrong []error
	for i, entry := range strings.Fields(urls) {
		kind, sender, err := open(entry)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("entry %d%s is not understood: %w", i+1, inBrackets(kind), err))
			continue
		}
		name := kind + " " + strconv.Itoa(i+1)
		c.channels = append(c.channels, newChannel(name, sender, log, c.results))
	}
	if len(wrong) > 0 {
		return nil, errors.Join(wrong...)
	}
	c.results.WithLabelValues(logName, sent)
	if reg != nil {
		if err := reg.Register(c.results); err != nil {
			return nil, fmt.Errorf("register the metrics of notifications: %w", err)
		}
	}
	return c, nil
}

func inBrackets(kind string) string {
	if kind == "" {
		return ""
	}
	return " (" + kind + ")"
}

// Names returns the names of the channels in log lines and metrics, with the log.
func (c *Channels) Names() []string {
	names := []string{logName}
	for _, ch := range c.channels {
		names = append(names, ch.name)
	}
	return names
}

// Send passes a message to every channel. It does not wait. A full channel drops its oldest message, and counts it.
func (c *Channels) Send(m Message) { c.Deliver(m, func(bool) {}) }

// Deliver is Send, and calls done once: with true as soon as a channel has taken the message, or with false after each
// has given up. Without channels the log is enough. done is called from any goroutine, and must not wait.
func (c *Channels) Deliver(m Message, done func(taken bool)) {
	m = m.tidy()
	m.result = &result{left: len(c.channels), done: done}
	m.id, m.at = rand.Text(), time.Now().UTC()
	c.write(m)
	for _, ch := range c.channels {
		ch.put(m)
	}
	if len(c.channels) == 0 {
		done(true)
	}
}

// result is how a message fares in its channels.
type result struct {
	mu   sync.Mutex
	left int              // channels that have it still
	done func(taken bool) // nil: it was called
}

// end says how the message ended in one channel.
func (r *result) end(taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left--; r.done != nil && (taken || r.left == 0) {
		r.done(taken)
		r.done = nil
	}
}

func (c *Channels) write(m Message) {
	level := zerolog.InfoLevel
	switch m.Severity {
	case Warning:
		level = zerolog.WarnLevel
	case Error:
		level = zerolog.ErrorLevel
	}
	c.log.WithLevel(level).Str("kind", string(m.Kind)).Str("key", m.Key).Str("title", m.Title).Strs("lines", m.Lines).Msg("notification raised")
	c.results.WithLabelValues(logName, sent).Inc()
}

// Run delivers until ctx ends, and returns nil then. Messages not delivered by then count as dropped. It does not
// wait for a hanging send of shoutrrr, which ends when the server closes the connection.
func (c *Channels) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, ch := range c.channels {
		all.Go(func() { ch.run(ctx) })
	}
	all.Wait()
	return nil
}

// open makes the sender of an entry. The kind may be shown.
func open(entry string) (kind string, s sender, err error) {
	u, err := url.Parse(entry)
	if err != nil || u.Scheme == "" {
		// The error of url.Parse quotes the entry.
		return "", nil, errors.New("it has to begin with https://, slack://, smtp:// or another service of shoutrrr")
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		s, err := newWebhook(u)
		return "webhook", s, err
	}
	return newService(entry, u)
}
