package kafka_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
	"docket/internal/testkit/output"
)

// loggedPublish publishes one record with this login and returns the log.
func loggedPublish(t *testing.T, c *kafkatest.Cluster, login kafka.Login, timeout time.Duration) (string, error) {
	t.Helper()
	var out output.Buffer
	cfg := fast(c)
	cfg.Login = login
	p, err := kafka.NewPublisher(cfg, kafka.PublisherConfig{Timeout: timeout}, zerolog.New(&out), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = p.Publish(context.Background(), []*kgo.Record{{Topic: topic, Value: []byte("a")}})[0]
	p.Close()
	return out.String(), err
}

func TestLogin_PasswordReadAtEachLogin(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "docket", "right"))
	var asked atomic.Int32
	out, err := loggedPublish(t, c, kafka.Login{Mechanism: "SCRAM-SHA-256", User: "docket", Password: func() (string, error) {
		if asked.Add(1) == 1 {
			return "right", nil
		}
		return "right", errors.New("the file is empty")
	}}, 20*time.Second)
	if err != nil || asked.Load() < 2 {
		t.Errorf("%v after %d questions", err, asked.Load())
	}
	if n := strings.Count(out, "the file is empty"); n != 1 || strings.Contains(out, "right\"") {
		t.Errorf("told %d times, want once:\n%s", n, out)
	}
}

func TestLog_NoTextOfARefusal(t *testing.T) {
	t.Parallel()
	const quoted = "quoted-by-the-broker"
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
			resp.ErrorCode, resp.ErrorMessage = kerr.SaslAuthenticationFailed.Code, kmsg.StringPtr(quoted)
			return resp, nil, true
		})
		out, err := loggedPublish(t, c, kafka.Login{Mechanism: "PLAIN", User: "docket", Password: func() (string, error) { return "s3cret", nil }}, 2*time.Second)
		if err == nil || !strings.Contains(out, "SASL_AUTHENTICATION_FAILED") {
			t.Errorf("%v; logged:\n%s", err, out)
		}
		if strings.Contains(out, quoted) || strings.Contains(out, "s3cret") {
			t.Errorf("logged:\n%s", out)
		}
	}, kfake.SeedTopics(1, topic), kfake.EnableSASL(), kfake.Superuser("PLAIN", "docket", "another"))
}

func TestLogin_NoTextOfTheBroker(t *testing.T) {
	t.Parallel()
	const quoted = "quoted-by-the-broker"
	virtually(t, func(t *testing.T, c *kafkatest.Cluster) {
		c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
			resp.SASLAuthBytes = []byte(quoted + ",s=c2FsdA==,i=4096")
			return resp, nil, true
		})
		out, err := loggedPublish(t, c, kafka.Login{Mechanism: "SCRAM-SHA-256", User: "docket", Password: func() (string, error) { return "s3cret", nil }}, 2*time.Second)
		if err == nil || strings.Contains(out+err.Error(), quoted) || !strings.Contains(out, "login_answer") {
			t.Errorf("%v; logged:\n%s", err, out)
		}
	}, kfake.SeedTopics(1, topic), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-256", "docket", "s3cret"))
}

func TestPublish_LogsAMissingRight(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	c.FailTopic(kmsg.Produce, topic, kerr.TopicAuthorizationFailed, 1)
	var out output.Buffer
	p, err := kafka.NewPublisher(fast(c), kafka.PublisherConfig{Timeout: 20 * time.Second}, zerolog.New(&out), nil)
	if err != nil {
		t.Fatal(err)
	}
	record := []*kgo.Record{{Topic: topic, Value: []byte("a")}}
	refused := p.Publish(context.Background(), record)[0]
	if !errors.Is(refused, kerr.TopicAuthorizationFailed) {
		t.Errorf("got %v", refused)
	}
	knows := interface{ Hint() string }(nil)
	if !errors.As(refused, &knows) || !strings.HasPrefix(knows.Hint(), "grant the principal WRITE on the topic "+topic) {
		t.Errorf("%v does not say what to do", refused)
	}
	if err := p.Publish(context.Background(), record)[0]; err != nil {
		t.Errorf("got %v", err)
	}
	p.Close()
	for _, part := range []string{`"acl":"WRITE on topic ` + topic + `"`, "grant the principal WRITE on the topic " + topic, "kafka fault ended"} {
		if strings.Count(out.String(), part) != 1 {
			t.Errorf("%q is not there once:\n%s", part, out.String())
		}
	}
}
