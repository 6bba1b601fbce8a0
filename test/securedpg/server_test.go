//go:build integration

package securedpg

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/testkit/testenv"
)

// authority signs certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	var der []byte
	a.key, der = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
	})
	var err error
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.pem = block("CERTIFICATE", der)
	return a
}

// sign signs with the authority's key, or with the new one if there is none yet.
func (a *authority) sign(c *x509.Certificate) (*ecdsa.PrivateKey, []byte) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		a.t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, der
}

// pair is a certificate and its key, both in PEM form.
type pair struct{ cert, key string }

// issue makes a certificate for a name, or an IP address, valid for this long. A negative duration means expired.
func (a *authority) issue(name string, good time.Duration) pair {
	a.t.Helper()
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(good),
	}
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	key, der := a.sign(c)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair{block("CERTIFICATE", der), block("PRIVATE KEY", private)}
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

// write replaces a file like a secret store: it writes beside it, then renames.
func write(t testing.TB, path, text string) {
	t.Helper()
	beside := path + ".new"
	if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
}

// server is a Postgres with TLS, and one role and one database for Docket.
type server struct {
	t     testing.TB
	admin string // URL of a superuser, without TLS
	addr  string
	db    string
	ca    *authority
	good  pair
}

const (
	role  = "docket_app"
	hba   = "local all all trust\nhostnossl all all all scram-sha-256\n" // Docket must use TLS, other tests connect without
	hbaOK = hba + "hostssl all all all scram-sha-256\n"
)

func newServer(t testing.TB) *server {
	t.Helper()
	s := &server{t: t, ca: newAuthority(t, "Docket's tests")}
	s.admin = testenv.Postgres(t).Database(t) // the other tests connect without TLS
	u, err := url.Parse(s.admin)
	if err != nil {
		t.Fatal(err)
	}
	s.addr, s.db = u.Host, strings.TrimPrefix(u.Path, "/")
	host, _, _ := net.SplitHostPort(s.addr)
	s.good = s.ca.issue(host, time.Hour)
	s.certificate(s.good)
	s.file("root.crt", s.ca.pem)
	s.set("ssl_cert_file", "server.crt")
	s.set("ssl_key_file", "server.key")
	s.hba(hbaOK)
	s.set("ssl", "on")
	s.reload()
	return s
}

func (s *server) exec(sql string) {
	s.t.Helper()
	conn, err := pgx.Connect(context.WithoutCancel(s.t.Context()), s.admin)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(s.t.Context())) }()
	if _, err := conn.Exec(context.WithoutCancel(s.t.Context()), sql); err != nil {
		s.t.Fatalf("%.80s: %v", sql, err)
	}
}

func (s *server) ask(sql string) (answer string) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.admin)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = conn.Close(s.t.Context()) }()
	if err := conn.QueryRow(s.t.Context(), sql).Scan(&answer); err != nil {
		s.t.Fatalf("%.80s: %v", sql, err)
	}
	return answer
}

// file writes a file beside the server's data that only the server can read.
func (s *server) file(name, text string) {
	s.t.Helper()
	s.exec(fmt.Sprintf(`COPY (SELECT unnest(string_to_array('%s', E'\n'))) TO PROGRAM 'umask 077; cat > %s.new && mv %[2]s.new %[2]s'`, strings.TrimSpace(text), name))
}

func (s *server) certificate(p pair) {
	s.t.Helper()
	s.file("server.crt", p.cert)
	s.file("server.key", p.key)
}

func (s *server) hba(text string) { s.t.Helper(); s.file("pg_hba.conf", text) }

func (s *server) set(name, value string) {
	s.t.Helper()
	s.exec(fmt.Sprintf(`ALTER SYSTEM SET %s = '%s'`, name, value))
}

// reload makes the server read its files, and waits until it has.
func (s *server) reload() {
	s.t.Helper()
	const loaded = `SELECT pg_conf_load_time()::text`
	before := s.ask(loaded)
	s.exec(`SELECT pg_reload_conf()`)
	until(s.t, "the server has read its files", func() bool { return s.ask(loaded) != before })
}

// kick ends all sessions in the database except the superuser's, so that all clients have to reconnect.
func (s *server) kick() {
	s.t.Helper()
	s.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename <> 'postgres' AND datname = current_database()`)
}

// url returns Docket's connection URL.
func (s *server) url(user, password, database string, more url.Values) string {
	q := url.Values{"sslmode": {"verify-full"}}
	for k, v := range more {
		q[k] = v
	}
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: s.addr, Path: "/" + database, RawQuery: q.Encode()}).String()
}

// until polls until is returns true.
func until(t testing.TB, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func path(t testing.TB, name string) string { return filepath.Join(t.TempDir(), name) }
