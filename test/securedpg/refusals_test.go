//go:build integration

package securedpg

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"docket/internal/service/config"
)

const secret = "S3CRETpassw0rd"

// The programs run all the time and are never restarted.
func TestRefusals_EachHasItsLineAndEnds(t *testing.T) {
	t.Parallel()
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s := newServer(t)
	urlFile, root, cert, key := path(t, "url"), path(t, "root.crt"), path(t, "client.crt"), path(t, "client.key")
	give := func(p pair) { write(t, cert, p.cert); write(t, key, p.key) }
	write(t, root, s.ca.pem)
	trusting := url.Values{"sslrootcert": {root}}
	known := url.Values{"sslrootcert": {root}, "sslcert": {cert}, "sslkey": {key}}
	plain := s.url(role, secret, s.db, trusting)
	write(t, urlFile, s.url("postgres", "docket", s.db, trusting))
	w := newWorld(t, urlFile)
	if out, code := w.command("migrate"); code != 0 {
		t.Fatalf("migrate: %d\n%s", code, out)
	}
	s.exec(fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD '%s'; GRANT ALL ON ALL TABLES IN SCHEMA public TO %[1]s`, role, secret))
	write(t, urlFile, plain)
	consumer, desk := w.start(config.Consumer), w.start(config.Desk)
	for _, p := range []*program{consumer, desk} {
		until(t, "it is ready\n"+p.out.String(), func() bool { p.alive(); ok, _ := p.ready(); return ok })
	}
	another := newAuthority(t, "somebody else")

	for i, c := range []struct {
		name, code, hint string
		spoil, mend      func()
	}{
		{
			"unknown authority", "tls", "not signed by a CA in sslrootcert",
			func() { write(t, root, another.pem) }, func() { write(t, root, s.ca.pem) },
		},
		{
			"wrong name", "tls", "does not match the host",
			func() { s.certificate(s.ca.issue("db.elsewhere.test", time.Hour)) }, func() { s.certificate(s.good) },
		},
		{
			"expired", "tls", "has expired or is not valid yet",
			func() { s.certificate(s.ca.issue("127.0.0.1", -time.Hour)) }, func() { s.certificate(s.good) },
		},
		{
			"no TLS there", "tls", "does not offer TLS",
			func() { s.set("ssl", "off") }, func() { s.set("ssl", "on") },
		},
		{
			"a certificate is demanded", "28000", "asked for a client certificate",
			func() {
				s.set("ssl_ca_file", "root.crt")
				s.hba(hba + "hostssl all all all scram-sha-256 clientcert=verify-full\n")
			},
			func() { give(s.ca.issue(role, time.Hour)); write(t, urlFile, s.url(role, secret, s.db, known)) },
		},
		{
			"a certificate of an authority that the server does not know", "28000", "a pair that it trusts",
			func() { give(another.issue(role, time.Hour)) }, func() { give(s.ca.issue(role, time.Hour)) },
		},
		{
			"a certificate of ours that has expired", "tls", "the server refuses our certificate",
			func() { give(s.ca.issue(role, -time.Hour)) }, func() { give(s.ca.issue(role, time.Hour)) },
		},
		{
			"a certificate for another role", "28P01", "the name in the client certificate",
			func() { give(s.ca.issue("somebody", time.Hour)) },
			func() {
				give(s.ca.issue(role, time.Hour))
				s.hba(hbaOK)
				s.exec(`ALTER SYSTEM RESET ssl_ca_file`)
				write(t, urlFile, plain)
			},
		},
		{
			"wrong password", "28P01", "check user and password",
			func() { s.exec(`ALTER ROLE ` + role + ` PASSWORD 'another'`) },
			func() { write(t, urlFile, s.url(role, "another", s.db, trusting)) },
		},
		{
			"unknown role", "28P01", "check user and password",
			func() { write(t, urlFile, s.url("nobody", secret, s.db, trusting)) },
			func() { s.exec(`ALTER ROLE ` + role + ` PASSWORD '` + secret + `'`); write(t, urlFile, plain) },
		},
		{
			"unknown database", "3D000", "the database does not exist",
			func() { write(t, urlFile, s.url(role, secret, "nowhere", trusting)) }, func() { write(t, urlFile, plain) },
		},
		{
			"not in pg_hba.conf", "28000", "check user and pg_hba.conf",
			func() { s.hba(hba) }, func() { s.hba(hbaOK) },
		},
		{
			"no connection left", "53300", "connection",
			func() { s.exec(`ALTER ROLE ` + role + ` CONNECTION LIMIT 0`) }, func() { s.exec(`ALTER ROLE ` + role + ` CONNECTION LIMIT -1`) },
		},
	} {
		began := time.Now()
		c.spoil()
		s.reload()
		s.kick()
		n := 0
		produce := func() string {
			n++
			id := fmt.Sprintf("case-%d-%d", i, n)
			w.kafka.Values(t, topic, 0, fmt.Sprintf(`{"decision_id":%q,"timestamp":%q}`, id, time.Now().Format(time.RFC3339)))
			return id
		}
		heard := []*program{consumer}
		if c.name == "unknown authority" || c.name == "wrong password" { // it checks only every few seconds
			heard = append(heard, desk)
		}
		for _, p := range heard {
			last := time.Time{}
			until(t, c.name+": it says so", func() bool {
				p.alive()
				if p == consumer && time.Since(last) > time.Second { // a transient failure parks one batch
					last = time.Now()
					produce()
				}
				_, reasons := p.ready()
				for _, r := range reasons {
					if r.Code == c.code && strings.Contains(r.Hint, c.hint) {
						return true
					}
				}
				if time.Since(began) > 2*time.Minute {
					t.Fatalf("%s: /readyz says %+v\n%s", c.name, reasons, p.out)
				}
				return false
			})
			until(t, c.name+": a line of the log says so, which may come after /readyz", func() bool {
				return lineWith(p.out.String(), "hold began", `"code":"`+c.code+`"`, c.hint)
			})
		}
		out, code := w.command("check")
		if said := lineOf(out, "database connection"); code != 1 || !strings.Contains(said, "fail") || !strings.Contains(said, c.hint) {
			t.Errorf("%s: consumer check ended with %d and says\n%s", c.name, code, out)
		}
		if strings.Contains(out, secret) {
			t.Errorf("%s: the password in\n%s", c.name, out)
		}
		c.mend()
		s.reload()
		id := produce()
		until(t, c.name+": the row of "+id, func() bool {
			consumer.alive()
			return s.ask(`SELECT count(*)::text FROM decision_logs WHERE decision_id = '`+id+`'`) == "1"
		})
		for _, p := range []*program{consumer, desk} {
			until(t, c.name+": ready again", func() bool { p.alive(); ok, _ := p.ready(); return ok })
		}
		t.Logf("%s: %v", c.name, time.Since(began).Round(10*time.Millisecond))
	}
	for _, p := range []*program{consumer, desk} {
		for _, private := range []string{secret, "case-", "FATAL", "no pg_hba.conf entry", "authentication failed", `"nowhere"`, "PRIVATE KEY"} {
			if strings.Contains(p.out.String(), private) {
				t.Errorf("%q in the log:\n%s", private, p.out)
			}
		}
	}
}

func lineOf(text, with string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, with) {
			return line
		}
	}
	return ""
}

func lineWith(text string, all ...string) bool {
	for line := range strings.Lines(text) {
		has := true
		for _, part := range all {
			has = has && strings.Contains(line, part)
		}
		if has {
			return true
		}
	}
	return false
}
