package collector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestState_NotReadyWhileKafkaRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.RetryAfter = 2 * time.Second })
		if !w.State().Ready {
			t.Fatal("not ready at the start")
		}
		w.kafka.answer = func(*kgo.Record) error { return fmt.Errorf("publish: %w", kerr.TopicAuthorizationFailed) }
		w.post(t, good("a"))
		want := State{Reason: "kafka_authorization", Code: "TOPIC_AUTHORIZATION_FAILED", Hint: "grant WRITE on the topic", Topic: logs}
		if got := w.State(); got != want {
			t.Errorf("%+v", got)
		}
		time.Sleep(2*time.Second + 1)
		if !w.State().Ready {
			t.Error("nobody would send an upload here any more")
		}
		w.post(t, good("a")) // fails again: it rests for longer
		time.Sleep(2*time.Second + 1)
		if w.State().Ready {
			t.Error("the second failure rests as short as the first")
		}
		for range 10 {
			time.Sleep(31 * time.Second)
			w.post(t, good("a"))
		}
		time.Sleep(30*time.Second + 1)
		if !w.State().Ready {
			t.Error("it rests for longer than half a minute")
		}
		w.post(t, good("a"))
		w.kafka.answer = nil
		w.post(t, good("a"))
		if !w.State().Ready {
			t.Error("not ready after a success")
		}
		if n := strings.Count(w.log.String(), "kafka stopped accepting decisions"); n != 1 {
			t.Errorf("%d lines for one outage", n)
		}
		if n := strings.Count(w.log.String(), "kafka accepted decisions again"); n != 1 {
			t.Errorf("%d lines for its end", n)
		}
	})
}

// DOCKET_COLLECTOR_RETRY_AFTER may be an hour. No load balancer may leave a collector out for so long after one failure.
func TestState_RestsForHalfAMinuteAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.RetryAfter = time.Hour })
		w.kafka.answer = func(*kgo.Record) error { return kerr.NotEnoughReplicas }
		for range 3 {
			w.post(t, good("a"))
			if w.State().Ready {
				t.Error("ready just after a failure")
			}
			time.Sleep(30*time.Second + 1)
			if !w.State().Ready {
				t.Fatal("it rests for longer than half a minute")
			}
		}
	})
}

func TestLog_OneLineForEachReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	errs := []error{errors.New("dial: refused"), context.DeadlineExceeded, kerr.TopicAuthorizationFailed}
	for i := range 30 {
		w.kafka.answer = func(*kgo.Record) error { return errs[i%3] }
		w.post(t, good("a"))
	}
	if n := strings.Count(w.log.String(), "kafka stopped accepting decisions"); n != 2 {
		t.Errorf("%d lines for two reasons: %s", n, w.log)
	}
	if s := w.State(); s.Code != "TOPIC_AUTHORIZATION_FAILED" {
		t.Errorf("%+v, though it is another one now", s)
	}
	w.kafka.answer = nil
	w.post(t, good("a"))
	w.kafka.answer = func(*kgo.Record) error { return errs[0] }
	w.post(t, good("a"))
	if n := strings.Count(w.log.String(), "kafka stopped accepting decisions"); n != 3 {
		t.Errorf("the next outage: %d lines", n)
	}
}

func TestState_DeadLetterTopicRefusesIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kafka.answer = func(r *kgo.Record) error {
		if r.Topic == dlq {
			return kerr.UnknownTopicOrPartition
		}
		return nil
	}
	if a := w.post(t, "["+good("a")+","+unnamed+"]"); a.Code != 503 {
		t.Errorf("%d", a.Code)
	}
	if s := w.State(); s.Ready || s.Reason != "kafka_topic_missing" {
		t.Errorf("%+v", s)
	}
	if a := w.post(t, good("b")); a.Code != 200 {
		t.Errorf("an upload without bad decisions: %d", a.Code)
	}
}

func TestState_FaultByType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err          error
		reason, code string
	}{
		{errors.New("dial tcp: refused"), "kafka_unreachable", "network"},
		{fmt.Errorf("not acknowledged: %w", context.DeadlineExceeded), "kafka_unreachable", "timeout"},
		{kerr.SaslAuthenticationFailed, "kafka_authentication", "SASL_AUTHENTICATION_FAILED"},
		{kerr.NotEnoughReplicas, "kafka_other", "NOT_ENOUGH_REPLICAS"},
		{kerr.KafkaStorageError, "kafka_other", "KAFKA_STORAGE_ERROR"},
	} {
		s := standing(wrapped{c.err})
		if s.Reason != c.reason || s.Code != c.code {
			t.Errorf("%v: %+v", c.err, s)
		}
		if plain := standing(c.err); plain.Hint == "" || plain.Ready {
			t.Errorf("%v: %+v", c.err, plain)
		}
	}
	if s := standing(fmt.Errorf("publish: %w", wrapped{kerr.TopicAuthorizationFailed})); s.Hint != "do this" {
		t.Errorf("what the publisher knows is not told: %+v", s)
	}
}

type wrapped struct{ err error }

func (w wrapped) Error() string { return w.err.Error() }
func (w wrapped) Unwrap() error { return w.err }
func (wrapped) Hint() string    { return "do this" }

func TestClose_RefusesNewAndFinishesOpenUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve(t)
	begun, release := make(chan struct{}), make(chan struct{})
	w.kafka.before = func(int) { close(begun); <-release }
	done := make(chan int)
	go func() {
		code, _ := send(t, url, strings.NewReader(good("a")))
		done <- code
	}()
	<-begun
	w.Close()
	code, header := send(t, url, strings.NewReader(good("b")))
	if code != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || w.State().Ready || w.State().Reason != "draining" {
		t.Errorf("a new one: %d %v, %+v", code, header, w.State())
	}
	close(release)
	if code := <-done; code != 200 {
		t.Errorf("the one under way: %d", code)
	}
}

func TestPanic_500AndTheNextIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kafka.before = func(int) { panic("hush") }
	a := w.post(t, good("a"))
	if a.Code != 500 || strings.Contains(w.log.String()+a.Body.String(), "hush") || !strings.Contains(w.log.String(), "stacks") {
		t.Errorf("%d %s: %s", a.Code, a.Body, w.log)
	}
	w.kafka.before = nil
	if a := w.post(t, good("a")); a.Code != 200 || w.places.taken() != 0 {
		t.Errorf("the next: %d, %d places taken", a.Code, w.places.taken())
	}
}
