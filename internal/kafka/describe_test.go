package kafka_test

import (
	"context"
	"crypto/tls"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"docket/internal/kafka"
	"docket/internal/testkit/kafkatest"
)

func TestDescribe_Facts(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.NumBrokers(3))
	err := c.CreateTopic(topic, 6, map[string]string{"max.message.bytes": "2097152", "retention.ms": "604800000", "min.insync.replicas": "2", "cleanup.policy": "delete", "unclean.leader.election.enable": "true"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
	defer cancel()
	got, err := kafka.Describe(ctx, fast(c), []string{topic, dlq}, []string{group})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Brokers) != 3 || got.Version == "" || len(got.Topics) != 2 || len(got.Groups) != 1 {
		t.Fatalf("got %+v", got)
	}
	is, isNot := got.Topics[0], got.Topics[1]
	if is.Err != nil || is.ConfigErr != nil || is.Partitions != 6 || is.Replication < 1 || is.MaxMessageBytes != 2<<20 ||
		is.Retention != 7*24*time.Hour || !is.RetentionKnown || is.MinInSyncReplicas != 2 || is.CleanupPolicy != "delete" || is.Leaderless != 0 || !is.UncleanElection {
		t.Errorf("topic %+v", is)
	}
	if isNot.Name != dlq || reason(isNot.Err) != kafka.ReasonTopicMissing {
		t.Errorf("missing topic %+v", isNot)
	}
	if got.Groups[0].Err != nil {
		t.Errorf("group %+v", got.Groups[0])
	}
}

func TestDescribe_MissingRights(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic, dlq))
	c.FailTopic(kmsg.Metadata, dlq, kerr.TopicAuthorizationFailed, -1)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeGroups}, Group: group, Err: kerr.GroupAuthorizationFailed, Count: -1})
	got, err := kafka.Describe(context.Background(), fast(c), []string{topic, dlq}, []string{group})
	if err != nil {
		t.Fatal(err)
	}
	if got.Topics[0].Err != nil || reason(got.Topics[1].Err) != kafka.ReasonAuthorization || reason(got.Groups[0].Err) != kafka.ReasonAuthorization {
		t.Errorf("got %+v", got)
	}
}

func TestDescribe_WaitsForTheCoordinator(t *testing.T) {
	t.Parallel()
	c := kafkatest.New(t, kfake.SeedTopics(1, topic))
	var refused atomic.Int32
	c.ControlKey(int16(kmsg.FindCoordinator), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if refused.Add(1)%6 == 0 { // more often than the client itself retries
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
		for _, key := range req.(*kmsg.FindCoordinatorRequest).CoordinatorKeys {
			one := kmsg.NewFindCoordinatorResponseCoordinator()
			one.Key, one.NodeID, one.ErrorCode = key, -1, kerr.CoordinatorNotAvailable.Code
			resp.Coordinators = append(resp.Coordinators, one)
		}
		return resp, nil, true
	})
	got, err := kafka.Describe(t.Context(), fast(c), nil, []string{group})
	if err != nil || got.Groups[0].Err != nil || refused.Load() < 6 {
		t.Errorf("describe: %+v, %v after %d questions", got, err, refused.Load())
	}
	r, err := kafka.NewReader(fast(c))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if committed, err := r.Committed(t.Context(), group+"-2", topic); err != nil || len(committed) != 0 || refused.Load() < 12 {
		t.Errorf("committed: %v, %v after %d questions", committed, err, refused.Load())
	}
}

func TestPing_Errors(t *testing.T) {
	t.Parallel()
	const password = "s3cret-passw0rd"
	open := kafkatest.New(t)
	refusing := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "docket", "another"))
	refusing.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		refusing.KeepControl() // the fake hangs up where a broker gives a reason
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode, resp.ErrorMessage = kerr.SaslAuthenticationFailed.Code, kmsg.StringPtr("for "+password)
		return resp, nil, true
	})
	guarded := kafkatest.New(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "docket", "another"))
	var down atomic.Bool
	down.Store(true)

	away := fast(open)
	away.Dialer = downable(&down)
	wrong := fast(refusing)
	wrong.SASL = plain.Auth{User: "docket", Pass: password}.AsMechanism()
	right := fast(guarded)
	right.SASL = plain.Auth{User: "docket", Pass: "another"}.AsMechanism()
	encrypted := fast(open)
	encrypted.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	hangsUp := fast(open)
	hangsUp.Dialer = hungUp
	certificate, roots := selfSigned(t)
	secure := kafkatest.New(t, kfake.TLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: certificate, ClientAuth: tls.RequireAnyClientCert}))
	plainly := fast(secure)
	unproven := fast(secure)
	unproven.TLS = &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots}
	for name, tt := range map[string]struct {
		cfg  kafka.Config
		want kafka.Reason
	}{
		"well":                    {fast(open), ""},
		"right password":          {right, ""},
		"unreachable":             {away, kafka.ReasonUnreachable},
		"wrong password":          {wrong, kafka.ReasonAuthentication},
		"TLS to a plain listener": {encrypted, kafka.ReasonTLS},
		"hangs up at once":        {hangsUp, kafka.ReasonUnreachable},
		"plain to a TLS listener": {plainly, kafka.ReasonUnreachable},
		"no certificate to show":  {unproven, kafka.ReasonTLS},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(context.Background(), kafkatest.Timeout)
			defer cancel()
			err := kafka.Ping(ctx, tt.cfg)
			if reason(err) != tt.want || (err != nil) != (tt.want != "") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Error("the password is in the error")
			}
		})
	}
}

func TestNewSource_RefusesBadSettings(t *testing.T) {
	t.Parallel()
	for name, sc := range map[string]kafka.SourceConfig{
		"no topic":                            {Group: group},
		"a drain beyond the rebalance budget": {Topic: topic, Group: group, Drain: 73 * time.Second},
		"a negative batch":                    {Topic: topic, Group: group, BatchRecords: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := kafka.NewSource(kafka.Config{Brokers: []string{"localhost:1"}}, sc, nop, nil); err == nil {
				t.Error("accepted")
			}
		})
	}
	if _, err := kafka.NewSource(kafka.Config{}, kafka.SourceConfig{Topic: topic, Group: group}, nop, nil); err == nil {
		t.Error("accepted without brokers")
	}
}
