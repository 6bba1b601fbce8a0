//go:build integration

package e2e

import (
	"context"
	"crypto/tls"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
)

// loginFault is a way to come to the brokers that cannot work.
type loginFault struct {
	name         string
	env          func(p principal) []string
	reason, code string
	hint         string // a part of it
}

func loginFaults(t *testing.T, k *testenv.SecuredKafka) []loginFault {
	at := k.At
	scram := func(listener, mechanism string, change func(p *principal)) func(principal) []string {
		return func(p principal) []string {
			k.User(t, p.name, p.password)
			change(&p)
			return p.scram(t, at(listener), mechanism)
		}
	}
	trusting := func(listener string) func(principal) []string {
		return func(p principal) []string { return p.tls(at(listener)) }
	}
	const sasl, mtls = testenv.ListenerSASL, testenv.ListenerMTLS
	return []loginFault{
		{"unknown authority", trusting(testenv.ListenerOtherCA), "tls", "tls_unknown_authority", "DOCKET_KAFKA_TLS_CA"},
		{"wrong name", trusting(testenv.ListenerWrongName), "tls", "tls_wrong_name", "advertised.listeners"},
		{"expired server certificate", trusting(testenv.ListenerExpired), "tls", "tls_expired", "renew it on the broker"},
		{"expired client certificate", func(p principal) []string { return p.mtls(t, at(mtls), k.CA, time.Now().Add(-time.Hour)) },
			"tls", "tls_client_certificate_expired", "DOCKET_KAFKA_TLS_CERT"},
		{"client certificate of another CA", func(p principal) []string { return p.mtls(t, at(mtls), k.Other, tomorrow()) },
			"tls", "tls_client_certificate_refused", "ssl.truststore"},
		{"no client certificate", trusting(mtls), "tls", "tls_client_certificate_missing", "DOCKET_KAFKA_TLS_CERT"},
		{"plain text to a TLS listener", func(principal) []string { return []string{"DOCKET_KAFKA_BROKERS=" + at(testenv.ListenerOtherCA)} },
			"tls", "tls_wanted", "DOCKET_KAFKA_TLS=true"},
		{"TLS to a plain listener", trusting(testenv.ListenerHarness), "tls", "tls_not_spoken", "DOCKET_KAFKA_TLS=false"},
		{"TLS 1.1 at most", func(p principal) []string { return p.tls(oldServer(t, k)) }, "tls", "tls_version", "ssl.enabled.protocols"},
		{"wrong password, SCRAM-SHA-256", scram(sasl, "SCRAM-SHA-256", func(p *principal) { p.password = "wr0ng-s3cret" }),
			"authentication", "SASL_AUTHENTICATION_FAILED", "password"},
		{"wrong password, SCRAM-SHA-512", scram(sasl, "SCRAM-SHA-512", func(p *principal) { p.password = "wr0ng-s3cret" }),
			"authentication", "SASL_AUTHENTICATION_FAILED", "password"},
		{"wrong password, PLAIN", func(p principal) []string {
			p.name, p.password = testenv.PlainUser, "wr0ng-s3cret"
			return p.scram(t, at(testenv.ListenerReauth), "PLAIN")
		}, "authentication", "SASL_AUTHENTICATION_FAILED", "password"},
		{"unknown user", scram(sasl, "SCRAM-SHA-256", func(p *principal) { p.name = "nobody" }), "authentication", "SASL_AUTHENTICATION_FAILED", "user name"},
		{"wrong mechanism", scram(sasl, "PLAIN", func(*principal) {}), "authentication", "UNSUPPORTED_SASL_MECHANISM", "sasl.enabled.mechanisms"},
		{"no login", trusting(sasl), "unreachable", "closed_at_once", "DOCKET_KAFKA_SASL_MECHANISM"},
	}
}

// oldServer speaks TLS as it was before 1.2. A broker's Java no longer does.
func oldServer(t *testing.T, k *testenv.SecuredKafka) string {
	t.Helper()
	pair, err := k.CA.Server("127.0.0.1", tomorrow())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func(conn net.Conn) { _ = conn.Close() }(conn)
				_, _ = conn.Read(make([]byte, 1)) // shakes hands, which fails
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); serving.Wait() })
	return listener.Addr().String()
}

// floodWindow is how long lines are counted, and most how many may come of one program in that time.
const (
	floodWindow = 10 * time.Second
	most        = 10
)

func TestLogin_EachFaultHasItsLine(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	dsn := testenv.Postgres(t).Database(t)
	bareSystem(t, k.KafkaServer, dsn).migrate()
	faults := loginFaults(t, k)
	type trial struct {
		s        *system
		p        *process
		checked  string
		exit     int
		secret   string
		quiet    int
		awaiting chan struct{}
	}
	trials := make([]*trial, len(faults))
	places := make(chan struct{}, 4)
	for i, f := range faults {
		s := bareSystem(t, k.KafkaServer, dsn)
		who := newPrincipal(t, k, s.places.Topic+"u")
		env := f.env(who)
		tr := &trial{s: s, p: s.consumer(env...), secret: who.password, awaiting: make(chan struct{})}
		trials[i] = tr
		go func() {
			defer close(tr.awaiting)
			places <- struct{}{}
			defer func() { <-places }()
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			check := exec.CommandContext(ctx, filepath.Join(bin, "consumer"), "check")
			check.Dir, check.Env = s.dir, append(append([]string{}, s.env...), env...)
			out, _ := check.CombinedOutput() // its exit code is looked at
			tr.checked, tr.exit = string(out), check.ProcessState.ExitCode()
		}()
	}
	for i, f := range faults {
		tr := trials[i]
		eventually(t, patience, f.name+" is told", func() error { return tr.p.told(f.reason, f.code, f.hint) })
		tr.p.awaitHold("kafka_" + f.reason)
	}
	for _, tr := range trials {
		tr.quiet = strings.Count(tr.p.out.String(), "\n")
	}
	time.Sleep(floodWindow)    // lines of that time are counted
	for i, f := range faults { //nolint:paralleltest // what was started together is looked at one after another
		tr := trials[i]
		<-tr.awaiting
		t.Run(f.name, func(t *testing.T) {
			if n := strings.Count(tr.p.out.String(), "\n") - tr.quiet; n > most {
				t.Errorf("%d lines in %v, want at most %d:\n%s", n, floodWindow, most, tail(tr.p.out.String(), 12))
			}
			if err := tr.p.told(f.reason, f.code, f.hint); err != nil {
				t.Errorf("after a while: %v", err)
			}
			if n := strings.Count(tr.p.out.String(), `"message":"kafka fault began"`); n > 2 {
				t.Errorf("%d lines tell the same fault", n)
			}
			select {
			case <-tr.p.ended:
				t.Error("the program has ended")
			default:
			}
			tr.p.silentAbout(tr.secret, "wr0ng-s3cret")
			if tr.exit != 1 || !strings.Contains(tr.checked, f.code) || !strings.Contains(tr.checked, f.hint) {
				t.Errorf("check ended with %d, want 1 and a line with %q and %q:\n%s", tr.exit, f.code, f.hint, tr.checked)
			}
			if strings.Contains(tr.checked, tr.secret) || strings.Contains(tr.checked, "wr0ng-s3cret") {
				t.Error("check shows a secret")
			}
			if code := tr.p.stop(); code != 0 {
				t.Errorf("ended with %d after SIGTERM", code)
			}
		})
	}
}
