package desk

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// replace writes a file at once: nobody reads half of it.
func replace(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// issue makes a certificate that signs itself, with its key.
func issue(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
}

// running is a desk whose tokens and certificate are files.
type running struct {
	*Program
	tokens, cert, key string
	log               *buffer
}

func start(t *testing.T, tokens string) *running {
	t.Helper()
	dir := t.TempDir()
	r := &running{tokens: filepath.Join(dir, "tokens"), cert: filepath.Join(dir, "cert"), key: filepath.Join(dir, "key"), log: &buffer{}}
	replace(t, r.tokens, []byte(tokens))
	cert, key := issue(t, 1)
	replace(t, r.cert, cert)
	replace(t, r.key, key)
	s := settings(t, nowhere("DOCKET_DESK_API_TOKENS_FILE="+r.tokens, "DOCKET_DESK_API_TLS_CERT="+r.cert, "DOCKET_DESK_API_TLS_KEY="+r.key))
	p, err := New(s, zerolog.New(r.log), prometheus.NewRegistry(), Options{TokensEvery: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r.Program = p
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		p.Close()
	})
	return r
}

// ask returns the status for a token, and the serial number of the certificate that the desk showed.
func (r *running) ask(t *testing.T, token string) (status int, serial int64) {
	t.Helper()
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+r.apiAddr()+"/api/v1/whoami", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber.Int64()
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(40 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 40 s", what)
		}
	}
}

func TestTokens_ChangeInTheirFile(t *testing.T) {
	t.Parallel()
	const first, second = "first-0123456789abcdef", "second-0123456789abcdef"
	both := fmt.Sprintf("mara:operator:%s mara:operator:sha256:%x", first, sha256.Sum256([]byte(second)))
	r := start(t, "mara:operator:"+first)
	status := func(token string) int {
		code, _ := r.ask(t, token)
		return code
	}
	if a, b := status(first), status(second); a != http.StatusOK || b != http.StatusUnauthorized {
		t.Fatalf("at the start the first token gave %d, the second %d", a, b)
	}
	replace(t, r.tokens, []byte(both))
	eventually(t, "the second token holds", func() bool { return strings.Contains(r.log.String(), "desk tokens changed") })
	if a, b := status(first), status(second); a != http.StatusOK || b != http.StatusOK {
		t.Errorf("side by side the first token gave %d, the second %d", a, b)
	}
	for i, bad := range []string{"mara:operator", "\n", "  ", "mara:operator:sha256:5ec"} {
		replace(t, r.tokens, []byte(bad))
		eventually(t, "it is told", func() bool { return strings.Count(r.log.String(), "desk tokens not reloaded") > i })
		if code := status(second); code != http.StatusOK {
			t.Errorf("while the file is %q: %d", bad, code)
		}
		replace(t, r.tokens, []byte(both))
		eventually(t, "that is over", func() bool { return strings.Count(r.log.String(), "desk tokens became readable") > i })
	}
	replace(t, r.tokens, []byte("mara:operator:"+second))
	eventually(t, "the first token is revoked", func() bool { return strings.Count(r.log.String(), "desk tokens changed") > 1 })
	if a, b := status(first), status(second); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Errorf("after its end the first token gave %d, the second %d", a, b)
	}
	if log := r.log.String(); strings.Contains(log, first) || strings.Contains(log, second) {
		t.Error("a token is in the log")
	}
}

func TestCertificate_Renewed(t *testing.T) {
	t.Parallel()
	const token = "first-0123456789abcdef"
	r := start(t, "mara:operator:"+token)
	shows := func(want int64) {
		t.Helper()
		if code, serial := r.ask(t, token); code != http.StatusOK || serial != want {
			t.Errorf("status %d by certificate %d, want %d", code, serial, want)
		}
	}
	shows(1)
	cert, key := issue(t, 2)
	replace(t, r.cert, cert) // its key is still to come
	shows(1)
	replace(t, r.key, key)
	shows(2)
}
