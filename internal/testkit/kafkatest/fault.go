package kafkatest

import (
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Fail makes the next count requests of a kind fail with err. A negative count means all, until the handle is
// removed.
func (c *Cluster) Fail(key kmsg.Key, err *kerr.Error, count int) *kfake.FaultHandle {
	return c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Err: err, Count: count})
}

// FailTopic is Fail for the requests and parts of requests about one topic.
func (c *Cluster) FailTopic(key kmsg.Key, topic string, err *kerr.Error, count int) *kfake.FaultHandle {
	return c.Fault(kfake.Fault{Keys: []kmsg.Key{key}, Topic: topic, Err: err, Count: count})
}

// Mute makes brokers accept requests of a kind and never answer, until heal is called. The requests have no effect.
func (c *Cluster) Mute(key kmsg.Key) (heal func()) {
	var healed atomic.Bool
	c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		if healed.Load() {
			c.DropControl()
			return nil, nil, false
		}
		c.KeepControl()
		return nil, nil, true
	})
	return func() { healed.Store(true) }
}

// HangUp makes brokers close the connection on every request of a kind, until heal is called.
func (c *Cluster) HangUp(key kmsg.Key) (heal func()) {
	var healed atomic.Bool
	c.ControlKey(int16(key), func(kmsg.Request) (kmsg.Response, error, bool) {
		if healed.Load() {
			c.DropControl()
			return nil, nil, false
		}
		c.KeepControl()
		return nil, errHungUp, true
	})
	return func() { healed.Store(true) }
}

// LoseAnswers makes brokers store records of a topic and answer with an error, until heal is called.
func (c *Cluster) LoseAnswers(topic string) (heal func()) {
	return sync.OnceFunc(c.FailTopic(kmsg.Produce, topic, kerr.RequestTimedOut, -1).Remove)
}

// Watch calls seen for every request of a kind, before its effect, until stop is called. It must not block.
func (c *Cluster) Watch(key kmsg.Key, seen func(kmsg.Request)) (stop func()) {
	var stopped atomic.Bool
	c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if stopped.Load() {
			c.DropControl()
			return nil, nil, false
		}
		c.KeepControl()
		seen(req)
		return nil, nil, false
	})
	return func() { stopped.Store(true) }
}

type hungUp struct{}

func (hungUp) Error() string { return "hung up on purpose" }

var errHungUp = hungUp{}
