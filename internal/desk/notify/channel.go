package notify

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// queueLength limits the messages that wait for a channel.
const queueLength = 64

// sender delivers one message. It returns when ctx ends, at the latest. It may be called again with the same message.
type sender interface {
	send(ctx context.Context, m Message) error
}

// channel delivers messages one after another.
type channel struct {
	name    string
	sender  sender
	log     zerolog.Logger
	results *prometheus.CounterVec
	limit   time.Duration   // for one try
	pauses  []time.Duration // between tries

	mu    sync.Mutex
	queue []Message
	wake  chan struct{}

	trouble string // of the last message; empty: none; only for Run
	lost    int    // messages since trouble began
}

func newChannel(name string, s sender, log zerolog.Logger, results *prometheus.CounterVec) *channel {
	for _, result := range []string{sent, failed, dropped} {
		results.WithLabelValues(name, result)
	}
	return &channel{
		name: name, sender: s, log: log, results: results, wake: make(chan struct{}, 1),
		limit: 10 * time.Second, pauses: []time.Duration{time.Second, 5 * time.Second},
	}
}

func (c *channel) put(m Message) {
	c.mu.Lock()
	if len(c.queue) == queueLength {
		c.queue[0].result.end(false)
		c.queue = append(c.queue[:0], c.queue[1:]...)
		c.results.WithLabelValues(c.name, dropped).Inc()
	}
	c.queue = append(c.queue, m)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *channel) take() (Message, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return Message{}, false
	}
	m := c.queue[0]
	c.queue = append(c.queue[:0], c.queue[1:]...)
	return m, true
}

func (c *channel) run(ctx context.Context) {
	defer c.leave()
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		}
		for ctx.Err() == nil {
			m, ok := c.take()
			if !ok {
				break
			}
			c.deliver(ctx, m)
		}
	}
}

// leave counts the undelivered messages.
func (c *channel) leave() {
	for {
		m, ok := c.take()
		if !ok {
			return
		}
		m.result.end(false)
		c.results.WithLabelValues(c.name, dropped).Inc()
	}
}

func (c *channel) deliver(ctx context.Context, m Message) {
	var err error
	for try := 0; ; try++ {
		if err = c.try(ctx, m); err == nil || try == len(c.pauses) || !pause(ctx, c.pauses[try]) {
			break
		}
	}
	m.result.end(err == nil)
	switch {
	case err == nil:
		c.results.WithLabelValues(c.name, sent).Inc()
		c.logRecovery()
	case ctx.Err() != nil:
		c.results.WithLabelValues(c.name, dropped).Inc()
	default:
		c.results.WithLabelValues(c.name, failed).Inc()
		c.logTrouble(why(err))
	}
}

func (c *channel) try(ctx context.Context, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	return c.sender.send(ctx, m)
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// logTrouble logs a failure once until it changes.
func (c *channel) logTrouble(trouble string) {
	c.lost++
	if trouble == c.trouble {
		return
	}
	c.trouble = trouble
	c.log.Error().Str("channel", c.name).Str("reason", trouble).
		Str("hint", "check this entry of DOCKET_DESK_ALERT_URLS and the service behind it").
		Msg("alert not delivered")
}

func (c *channel) logRecovery() {
	if c.trouble == "" {
		return
	}
	c.log.Info().Str("channel", c.name).Int("lost", c.lost).Msg("alert channel recovered")
	c.trouble, c.lost = "", 0
}

func count(lines int) string { return strconv.Itoa(lines) + " more lines" }
