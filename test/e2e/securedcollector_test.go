//go:build integration

package e2e

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// collectorRights are what the collector needs as its own principal, and nothing else.
func (s *system) collectorRights() []testenv.ACL {
	return []testenv.ACL{{Operation: kadm.OpWrite, Topic: s.places.Topic}, {Operation: kadm.OpWrite, Topic: s.places.DLQTopic}}
}

// patient has an answer that is late on a busy machine be no refusal.
const patient = "DOCKET_PUBLISH_TIMEOUT=20s"

// securedTopics are the four topics of a secured broker, for programs that need no database.
func securedTopics(t *testing.T, k *testenv.SecuredKafka) *system {
	t.Helper()
	s := bareSystem(t, k.KafkaServer, "")
	for _, topic := range []string{s.places.Topic, s.places.DLQTopic, s.places.ParkingTopic, s.places.ParkingDLQ} {
		k.CreateTopic(t, topic, 1, nil)
	}
	return s
}

// answer is what a collector said to an upload.
type answer struct {
	code        int
	again, body string // again is Retry-After
}

// uploaded posts decisions to a collector.
func uploaded(t *testing.T, addr string, decisions ...string) answer {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+"/logs", strings.NewReader("["+strings.Join(decisions, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+opaToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("Retry-After"), string(body)}
}

// connected waits until a collector has reached the brokers.
func (p *process) connected() {
	p.t.Helper()
	eventually(p.t, patience, p.name+" is ready", func() error {
		if code, body := p.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
}

func TestCollector_LeastRightsSufficeAndNoMore(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	s := securedTopics(t, k)
	who := newPrincipal(t, k, s.places.Topic+"collector")
	k.User(t, who.name, who.password)
	k.Grant(t, who.name, s.collectorRights()...)
	env := append(who.scram(t, k.At(testenv.ListenerSASL), "SCRAM-SHA-512"), patient)
	addr := freeAddr(t)
	c := s.collector(addr, env...)
	c.connected()
	eventually(t, patience, "the upload is taken", func() error {
		if a := uploaded(t, addr, logOf("good", ""), `{"bad":1}`); a.code != http.StatusOK {
			return fmt.Errorf("%d %s", a.code, a.body)
		}
		return nil
	})
	if got := s.forwarded(s.places.DLQTopic, home.DeadLetter); got["missing_field"] == 0 || len(got) != 1 {
		t.Errorf("dead letters %v", got)
	}
	if strings.Contains(c.out.String(), "kafka fault began") {
		t.Error("it complained")
	}
	c.silentAbout(who.password, opaToken)
	if out, code := s.command(append(env, "DOCKET_COLLECTOR_TOKENS=opa:"+opaToken), "collector", "check"); code != 0 {
		t.Errorf("check ended with %d:\n%s", code, out)
	}

	for act, err := range who.triesOf(t, k, s) {
		if denied, ok := errors.AsType[*kerr.Error](err); !ok || !slices.Contains([]*kerr.Error{kerr.TopicAuthorizationFailed, kerr.GroupAuthorizationFailed, kerr.ClusterAuthorizationFailed}, denied) {
			t.Errorf("whoever has its password may %s: %v", act, err)
		}
	}
}

// triesOf are what the broker says to all that the collector's principal has no business to do.
func (p principal) triesOf(t *testing.T, k *testenv.SecuredKafka, s *system) map[string]error {
	t.Helper()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(k.CA.PEM)
	versions := kversion.Stable()
	versions.SetMaxKeyVersion(kmsg.Fetch.Int16(), 12) // the last that names topics and not their ids; the client sets it
	client, err := kgo.NewClient(kgo.MaxVersions(versions), kgo.SeedBrokers(k.At(testenv.ListenerSASL)), kgo.DialTLSConfig(&tls.Config{RootCAs: authorities}),
		kgo.SASL(scram.Auth{User: p.name, Pass: p.password}.AsSha512Mechanism()), kgo.ConsumeTopics(s.places.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	told := map[string]error{}
	for _, topic := range []string{s.places.ParkingTopic, s.places.ParkingDLQ} {
		told["write to "+topic] = client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("x")}).FirstErr()
	}
	for _, topic := range []string{s.places.Topic, s.places.DLQTopic} {
		told["read "+topic] = errors.New("no answer")
		fetch := kmsg.NewFetchRequest()
		fetch.ReplicaID = -1
		of, part := kmsg.NewFetchRequestTopic(), kmsg.NewFetchRequestTopicPartition()
		of.Topic, part.PartitionMaxBytes = topic, 1<<20
		of.Partitions = append(of.Partitions, part)
		fetch.Topics, fetch.MaxBytes = append(fetch.Topics, of), 1<<20
		answer, err := client.Broker(1).Request(ctx, &fetch)
		if err != nil {
			told["read "+topic] = err
		} else if got := answer.(*kmsg.FetchResponse); len(got.Topics) == 1 && len(got.Topics[0].Partitions) == 1 {
			told["read "+topic] = kerr.ErrorForCode(got.Topics[0].Partitions[0].ErrorCode)
		}
	}
	admin := kadm.NewClient(client)
	offsets, err := admin.FetchOffsets(ctx, s.places.Group)
	told["see the group "+s.places.Group] = cmp.Or(err, offsets.Error())
	_, err = admin.DeleteTopic(ctx, s.places.Topic)
	told["delete its topic"] = err
	_, err = admin.CreateTopic(ctx, 1, 1, nil, s.places.Topic+"-other")
	told["create a topic"] = err
	deleted, err := admin.DeleteRecords(ctx, kadm.Offsets{s.places.Topic: {0: {Topic: s.places.Topic, At: 1}}})
	told["delete records of its topic"] = cmp.Or(err, deleted.Error())
	done, err := admin.CreateACLs(ctx, kadm.NewACLs().Allow("User:"+p.name).AllowHosts("*").Operations(kadm.OpRead).ResourcePatternType(kadm.ACLPatternLiteral).Topics(s.places.Topic))
	for _, d := range done {
		err = cmp.Or(err, d.Err)
	}
	told["give itself rights"] = err
	return told
}

func TestCollector_EachMissingRightIsNamedAnd503(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	for lacking, upload := range map[int][]string{0: {logOf("good", "")}, 1: {logOf("good", ""), `{"bad":1}`}} {
		t.Run(fmt.Sprint(lacking), func(t *testing.T) {
			t.Parallel()
			s := securedTopics(t, k)
			who := newPrincipal(t, k, s.places.Topic+"collector")
			rights := s.collectorRights()
			lack, has := rights[lacking], rights[1-lacking]
			k.Grant(t, who.name, has)
			addr := freeAddr(t)
			env := append(who.mtls(t, k.At(testenv.ListenerMTLS), k.CA, tomorrow()), patient)
			c := s.collector(addr, env...)
			c.connected()
			hint := "grant the principal WRITE on the topic " + lack.Topic
			eventually(t, patience, "the missing right is named", func() error {
				a := uploaded(t, addr, upload...)
				if a.code != http.StatusServiceUnavailable || a.again != "2" || !strings.Contains(a.body, `"reason":"kafka"`) {
					return fmt.Errorf("%d, Retry-After %q, %s", a.code, a.again, a.body)
				}
				if code, body := c.get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "kafka_authorization") || !strings.Contains(body, hint) {
					return fmt.Errorf("/readyz: %d %s", code, body)
				}
				return errors.Join(c.logged("kafka fault began", map[string]string{"reason": "authorization", "acl": nameOf(lack), "topic": lack.Topic}, hint),
					c.logged("kafka stopped accepting decisions", map[string]string{"reason": "kafka_authorization", "topic": lack.Topic}, hint))
			})
			out, code := s.command(append(env, "DOCKET_COLLECTOR_TOKENS=opa:"+opaToken), "collector", "check")
			if code != 1 || !lineWith(out, "fail", lack.Topic, "--operation WRITE") {
				t.Errorf("check ended with %d:\n%s", code, out)
			}
			k.Grant(t, who.name, lack)
			eventually(t, patience, "the upload is taken", func() error {
				if a := uploaded(t, addr, upload...); a.code != http.StatusOK {
					return fmt.Errorf("%d %s", a.code, a.body)
				}
				return nil
			})
			c.connected()
			for _, line := range []string{"kafka fault ended", "kafka accepted decisions again"} {
				if !strings.Contains(c.out.String(), line) {
					t.Errorf("it did not say %q", line)
				}
			}
		})
	}
}
