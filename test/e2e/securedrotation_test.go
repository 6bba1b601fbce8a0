//go:build integration

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/internal/testkit/testenv"
)

// stores sends one decision and waits for its row.
func (s *system) stores(id string) {
	s.t.Helper()
	s.send(logOf(id, ""))
	eventually(s.t, patience, id+" has its row", func() error {
		if n := s.rows("decision_id = '" + id + "'"); n != 1 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
}

// still does something while the process is stopped.
func (p *process) still(do func()) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		p.t.Fatalf("stop %s: %v", p.name, err)
	}
	defer func() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }() // one that has ended meanwhile shows elsewhere
	do()
}

// faultsOf returns the codes of the faults that were told, in their order.
func faultsOf(p *process) (codes []string) {
	for line := range strings.Lines(p.out.String()) {
		var got struct{ Message, Code string }
		if json.Unmarshal([]byte(line), &got) == nil && got.Message == "kafka fault began" {
			codes = append(codes, got.Code)
		}
	}
	return codes
}

// filesFaults returns the faults whose cause may be a file. The others follow from a connection that was cut before the
// broker's first answer, which can happen to any attempt.
func filesFaults(p *process) []string {
	cut := []string{"closed_at_once", "tls_refused_by_broker", "tls_not_spoken", "tls_no_answer"}
	return slices.DeleteFunc(faultsOf(p), func(code string) bool { return slices.Contains(cut, code) })
}

func TestCertificates_ReadAnew(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	s := securedSystem(t, k)
	p := newPrincipal(t, k, s.places.Topic+"consumer")
	rights, _ := s.rights()
	k.Grant(t, p.name, rights...)
	c := s.consumer(p.mtls(t, k.At(testenv.ListenerWired), k.CA, tomorrow())...)
	s.stores("before")

	// The files hold what is over: nothing works until another pair is there.
	p.show(t, k.CA, time.Now().Add(-time.Minute))
	k.Wire.Cut()
	eventually(t, patience, "the end of the certificate is told", func() error {
		return c.told("tls", "tls_client_certificate_expired", "DOCKET_KAFKA_TLS_KEY")
	})
	p.show(t, k.CA, tomorrow())
	s.stores("with a new pair")
	eventually(t, patience, "no attempt with the old pair is left", func() error {
		if code, body := c.get("/readyz"); code != http.StatusOK {
			return fmt.Errorf("/readyz: %d %s", code, body)
		}
		return nil
	})

	// The certificate of the next pair without its key: the one before is used, and a line says so.
	told := filesFaults(c)
	next, err := k.CA.Client(p.name, tomorrow())
	if err != nil {
		t.Fatal(err)
	}
	p.write(t, "cert.pem", next.Cert)
	k.Wire.Cut()
	s.stores("with half a pair")
	eventually(t, patience, "a line tells of the half pair", func() error { return c.logged("kafka TLS files not reloaded", nil, "") })
	p.write(t, "key.pem", next.Key)
	p.write(t, "ca.pem", k.CA.PEM[:len(k.CA.PEM)/2])
	k.Wire.Cut()
	s.stores("with half a CA")
	if now := filesFaults(c); !slices.Equal(now, told) {
		t.Errorf("files that are being written made faults: %q, before %q", now, told)
	}

	// The file has another CA alone, until that of the broker joins it.
	p.write(t, "ca.pem", k.Other.PEM)
	k.Wire.Cut()
	eventually(t, patience, "the unknown CA is told", func() error {
		return c.told("tls", "tls_unknown_authority", "DOCKET_KAFKA_TLS_CA")
	})
	p.write(t, "ca.pem", slices.Concat(k.Other.PEM, k.CA.PEM))
	s.stores("with both CAs")
	c.sound()
	c.silentAbout(p.password)
}

func TestPasswordFile_ReadAnew(t *testing.T) {
	t.Parallel()
	k := testenv.Secured(t)
	s := securedSystem(t, k)
	p := newPrincipal(t, k, s.places.Topic+"consumer")
	rights, _ := s.rights()
	k.User(t, p.name, p.password)
	k.Grant(t, p.name, rights...)
	c := s.consumer(p.scram(t, k.At(testenv.ListenerReauth), "SCRAM-SHA-512")...)
	s.stores("before")

	// Broker and file change together: a client that logs in again every few seconds does so with the new one. The program
	// holds meanwhile, as one of the two is first, and a login may come between them.
	const second, third = "s3cond-s3cret", "th1rd-s3cret"
	c.still(func() {
		p.write(t, "password", []byte(second))
		k.User(t, p.name, second)
	})
	for i := range 4 {
		s.stores(fmt.Sprintf("after the change %d", i))
		time.Sleep(1500 * time.Millisecond) // two times as long, all together, as a login lasts
	}
	if faults := faultsOf(c); len(faults) > 0 {
		t.Errorf("faults %q:\n%s", faults, tail(c.out.String(), 10))
	}

	// The broker's comes first: it holds until the file follows.
	k.User(t, p.name, third)
	eventually(t, patience, "the refusal is told", func() error {
		return c.told("authentication", "SASL_AUTHENTICATION_FAILED", "password file is read again")
	})
	p.write(t, "password", []byte(third))
	s.stores("with the third")
	c.sound()
	c.silentAbout(p.password, second, third)
}
