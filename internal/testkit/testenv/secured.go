//go:build integration

package testenv

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/testcontainers/testcontainers-go"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Listeners of a [SecuredKafka]. All except Harness have a certificate, which is valid unless noted.
const (
	ListenerHarness   = "HARNESS"   // no TLS, all rights: for tests that look from outside
	ListenerSASL      = "SASL"      // SASL_SSL: SCRAM-SHA-256 and SCRAM-SHA-512
	ListenerReauth    = "REAUTH"    // SASL_SSL: PLAIN and SCRAM-SHA-512, with a new login every 3 s
	ListenerMTLS      = "MTLS"      // SSL, requires a client certificate
	ListenerWired     = "WIRED"     // as MTLS, over Wire, which cuts connections
	ListenerWrongName = "WRONGNAME" // SSL: the certificate is for another name
	ListenerExpired   = "EXPIRED"   // SSL: the certificate has expired
	ListenerOtherCA   = "OTHERCA"   // SSL: the certificate is from Other
)

// PlainUser and PlainPassword are the login by PLAIN.
const (
	PlainUser     = "plainuser"
	PlainPassword = "pl41n-s3cret"
)

// SecuredKafka is a broker with authentication and authorization.
type SecuredKafka struct {
	*KafkaServer // over ListenerHarness

	CA    *Authority // signs the broker's certificates, and those of clients
	Other *Authority // signs that of ListenerOtherCA
	Wire  *Wire      // before ListenerWired

	at map[string]string
}

// Secured returns the secured broker that all tests of the binary share. Principals, topics and groups must be a
// test's own.
func Secured(t testing.TB) *SecuredKafka {
	t.Helper()
	docker := engine(t)
	server, err := shared.secured.get(func() (*SecuredKafka, error) { return startSecured(docker) })
	must(t, "secured Kafka", err)
	return server
}

// At returns the address of a listener.
func (k *SecuredKafka) At(listener string) string { return k.at[listener] }

const secrets = "/etc/kafka/secrets/"

func startSecured(docker *testcontainers.DockerClient) (*SecuredKafka, error) {
	k := &SecuredKafka{at: map[string]string{}}
	files, err := k.certificates()
	if err != nil {
		return nil, err
	}
	protocols := []struct{ name, protocol string }{
		{ListenerHarness, "PLAINTEXT"}, {ListenerSASL, "SASL_SSL"}, {ListenerReauth, "SASL_SSL"}, {ListenerMTLS, "SSL"}, {ListenerWired, "SSL"},
		{ListenerWrongName, "SSL"}, {ListenerExpired, "SSL"}, {ListenerOtherCA, "SSL"},
	}
	ports := map[string]string{}
	listeners, advertised, kinds := []string{"INTERNAL://:19092", "CONTROLLER://:9093"}, []string{"INTERNAL://localhost:19092"}, []string{"INTERNAL:PLAINTEXT", "CONTROLLER:PLAINTEXT"}
	for i, l := range protocols {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		inner := fmt.Sprint(9200 + i)
		ports[inner+"/tcp"] = addr
		if l.name == ListenerWired {
			if k.Wire, err = newWire(addr); err != nil {
				return nil, err
			}
			addr = k.Wire.Addr()
		}
		k.at[l.name] = addr
		listeners = append(listeners, l.name+"://:"+inner)
		advertised = append(advertised, l.name+"://"+addr)
		kinds = append(kinds, l.name+":"+l.protocol)
	}
	env := brokerEnv(map[string]string{
		"KAFKA_NODE_ID":                        "1",
		"KAFKA_CONTROLLER_QUORUM_VOTERS":       "1@localhost:9093",
		"KAFKA_LISTENERS":                      strings.Join(listeners, ","),
		"KAFKA_ADVERTISED_LISTENERS":           strings.Join(advertised, ","),
		"KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": strings.Join(kinds, ","),

		"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR":                 "1",
		"KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS":                     strconv.Itoa(coordinators),
		"KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR":         "1",
		"KAFKA_TRANSACTION_STATE_LOG_MIN_ISR":                    "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
		"KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR":            "1",
		"KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS":                     "1000",
		"KAFKA_HEAP_OPTS":                                        "-Xms256m -Xmx512m",
		"KAFKA_NUM_NETWORK_THREADS":                              "2",

		"KAFKA_AUTHORIZER_CLASS_NAME":       "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"KAFKA_SUPER_USERS":                 "User:ANONYMOUS", // clients without TLS
		"KAFKA_SSL_PRINCIPAL_MAPPING_RULES": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
		"KAFKA_SSL_KEYSTORE_TYPE":           "PEM",
		"KAFKA_SSL_KEYSTORE_LOCATION":       secrets + "server.pem",
		"KAFKA_SSL_TRUSTSTORE_TYPE":         "PEM",
		"KAFKA_SSL_TRUSTSTORE_LOCATION":     secrets + "ca.pem",

		"KAFKA_LISTENER_NAME_MTLS_SSL_CLIENT_AUTH":            "required",
		"KAFKA_LISTENER_NAME_WIRED_SSL_CLIENT_AUTH":           "required",
		"KAFKA_LISTENER_NAME_WRONGNAME_SSL_KEYSTORE_LOCATION": secrets + "wrongname.pem",
		"KAFKA_LISTENER_NAME_EXPIRED_SSL_KEYSTORE_LOCATION":   secrets + "expired.pem",
		"KAFKA_LISTENER_NAME_OTHERCA_SSL_KEYSTORE_LOCATION":   secrets + "otherca.pem",

		"KAFKA_LISTENER_NAME_SASL_SASL_ENABLED_MECHANISMS":                       "SCRAM-SHA-256,SCRAM-SHA-512",
		"KAFKA_LISTENER_NAME_SASL_SCRAM___SHA___256_SASL_JAAS_CONFIG":            scramModule,
		"KAFKA_LISTENER_NAME_SASL_SCRAM___SHA___512_SASL_JAAS_CONFIG":            scramModule,
		"KAFKA_LISTENER_NAME_REAUTH_SASL_ENABLED_MECHANISMS":                     "PLAIN,SCRAM-SHA-512",
		"KAFKA_LISTENER_NAME_REAUTH_SCRAM___SHA___512_SASL_JAAS_CONFIG":          scramModule,
		"KAFKA_LISTENER_NAME_REAUTH_SCRAM___SHA___512_CONNECTIONS_MAX_REAUTH_MS": "3000",
		"KAFKA_LISTENER_NAME_REAUTH_PLAIN_SASL_JAAS_CONFIG":                      `org.apache.kafka.common.security.plain.PlainLoginModule required user_` + PlainUser + `="` + PlainPassword + `";`,
		"KAFKA_LISTENER_NAME_REAUTH_PLAIN_CONNECTIONS_MAX_REAUTH_MS":             "3000",
		"KAFKA_CONNECTION_FAILED_AUTHENTICATION_DELAY_MS":                        "100",
	})
	maps.Copy(env, steady)
	req := testcontainers.ContainerRequest{Image: KafkaImage, Env: env, Files: files}
	addr := k.at[ListenerHarness]
	k.KafkaServer = &KafkaServer{addr: addr}
	k.node, err = launch(docker, req, ports, func(ctx context.Context) error {
		if err := serves(ctx, addr, 1); err != nil {
			return err
		}
		return coordinates(ctx, addr)
	})
	if err != nil {
		k.Wire.Close()
		return nil, err
	}
	return k, nil
}

// coordinators is the number of partitions of the groups' offsets.
const coordinators = 6

// coordinates asks for many groups, so that every coordinator is asked. Each begins to serve at its own time after
// the first request for any group. A group that is joined earlier is refused, which a program would report as a
// fault.
func coordinates(ctx context.Context, addr string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return err
	}
	defer cl.Close()
	for n := range 10 * coordinators {
		if _, err := kadm.NewClient(cl).FetchOffsets(ctx, "asked-for-"+strconv.Itoa(n)); err != nil {
			return fmt.Errorf("a group has no coordinator: %w", err)
		}
	}
	return nil
}

const scramModule = "org.apache.kafka.common.security.scram.ScramLoginModule required;"

// certificates makes all certificates that the broker uses and trusts.
func (k *SecuredKafka) certificates() ([]testcontainers.ContainerFile, error) {
	var err error
	if k.CA, err = NewAuthority("docket test"); err != nil {
		return nil, err
	}
	if k.Other, err = NewAuthority("another"); err != nil {
		return nil, err
	}
	files := []testcontainers.ContainerFile{{Reader: bytes.NewReader(k.CA.PEM), ContainerFilePath: secrets + "ca.pem", FileMode: 0o644}}
	day := time.Now().Add(24 * time.Hour)
	for _, s := range []struct {
		file, host string
		by         *Authority
		until      time.Time
	}{
		{"server", loopback, k.CA, day}, {"wrongname", "broker.invalid", k.CA, day}, {"expired", loopback, k.CA, time.Now().Add(-time.Hour)}, {"otherca", loopback, k.Other, day},
	} {
		pair, err := s.by.Server(s.host, s.until)
		if err != nil {
			return nil, err
		}
		files = append(files, testcontainers.ContainerFile{Reader: bytes.NewReader(pair.Store()), ContainerFilePath: secrets + s.file + ".pem", FileMode: 0o644})
	}
	return files, nil
}

// Admin is a client with every right.
func (k *SecuredKafka) Admin(t testing.TB) *kadm.Client {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.Brokers()...))
	must(t, "make a client", err)
	t.Cleanup(cl.Close)
	return kadm.NewClient(cl)
}

// User makes a user for both kinds of SCRAM, or changes the password. It waits until the broker accepts the login,
// which may be later than its answer.
func (k *SecuredKafka) User(t testing.TB, name, password string) {
	t.Helper()
	for _, m := range []kadm.ScramMechanism{kadm.ScramSha256, kadm.ScramSha512} { // separate requests: a broker accepts a user once in a request
		done, err := k.Admin(t).AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: name, Mechanism: m, Iterations: 4096, Password: password}})
		if err == nil {
			err = done.Error()
		}
		must(t, "make the user "+name, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(k.CA.PEM)
	cl, err := kgo.NewClient(kgo.SeedBrokers(k.At(ListenerSASL)), kgo.DialTLSConfig(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}),
		kgo.SASL(scram.Auth{User: name, Pass: password}.AsSha512Mechanism()))
	must(t, "make a client", err)
	defer cl.Close()
	k.await(t, "log in as "+name, func(ctx context.Context) (bool, error) {
		err := cl.Ping(ctx)
		if errors.Is(err, kerr.SaslAuthenticationFailed) {
			return false, nil
		}
		return err == nil, err
	})
}

// ACL is one right: an operation on a topic or on a group.
type ACL struct {
	Operation    kadm.ACLOperation
	Topic, Group string
}

func (a ACL) builder(user string) *kadm.ACLBuilder {
	b := kadm.NewACLs().Allow("User:" + user).AllowHosts("*").Operations(a.Operation).ResourcePatternType(kadm.ACLPatternLiteral)
	if a.Topic != "" {
		return b.Topics(a.Topic)
	}
	return b.Groups(a.Group)
}

// Grant gives a user rights. It waits until the broker applies them, which may be later than its answer.
func (k *SecuredKafka) Grant(t testing.TB, user string, rights ...ACL) {
	t.Helper()
	admin := k.Admin(t)
	for _, right := range rights {
		done, err := admin.CreateACLs(t.Context(), right.builder(user))
		for _, d := range done {
			if err == nil {
				err = d.Err
			}
		}
		must(t, "grant", err)
	}
	for _, right := range rights {
		k.await(t, "see a right that was granted", func(ctx context.Context) (bool, error) {
			seen, err := admin.DescribeACLs(ctx, right.builder(user))
			for _, s := range seen {
				if s.Err != nil || len(s.Described) == 0 {
					return false, s.Err
				}
			}
			return err == nil && len(seen) > 0, err
		})
	}
}

// await calls so until it returns true.
func (k *SecuredKafka) await(t testing.TB, what string, so func(ctx context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stopWait)
	defer cancel()
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	for {
		done, err := so(ctx)
		must(t, what, err)
		if done {
			return
		}
		<-tick.C
	}
}
