package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// written is a certificate and its key in PEM form.
func written(t *testing.T, serial int64) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now(), NotAfter: time.Now().Add(time.Hour)}
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

func TestCredentials_LastGoodOutlivesABadFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, content []byte) {
		t.Helper()
		if err := os.WriteFile(at(name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert1, key1 := written(t, 1)
	cert2, key2 := written(t, 2)
	write("ca", cert1)
	write("cert", cert1)
	write("key", key1)
	write("password", []byte("first"))
	s, _, err := Load(Consumer, []string{
		"DOCKET_DATABASE_URL=postgres://u:p@db/x", "DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CA=" + at("ca"), "DOCKET_KAFKA_TLS_CERT=" + at("cert"),
		"DOCKET_KAFKA_TLS_KEY=" + at("key"), "DOCKET_KAFKA_SASL_MECHANISM=PLAIN", "DOCKET_KAFKA_SASL_USERNAME=u", "DOCKET_KAFKA_SASL_PASSWORD_FILE=" + at("password"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Credentials()
	if err != nil {
		t.Fatal(err)
	}
	shows := func(serial int64, complaint string) {
		t.Helper()
		conf, err := c.TLS()
		if complaint == "" && err != nil || complaint != "" && (err == nil || !strings.Contains(err.Error(), complaint)) {
			t.Errorf("error %v, want %q", err, complaint)
		}
		if err != nil && strings.Contains(err.Error(), dir) {
			t.Errorf("the error quotes a path: %v", err)
		}
		if got := conf.Certificates[0].Leaf.SerialNumber.Int64(); got != serial || conf.RootCAs == nil || conf.InsecureSkipVerify {
			t.Errorf("certificate %d, want %d", got, serial)
		}
	}
	shows(1, "")
	write("cert", cert2) // its key is still to come
	shows(1, "DOCKET_KAFKA_TLS_CERT")
	write("key", key2)
	shows(2, "")
	write("cert", cert2[:len(cert2)/2])
	shows(2, "DOCKET_KAFKA_TLS_CERT")
	write("cert", cert2)
	before, _ := c.TLS()
	write("ca", slices.Concat(cert1, cert2[:len(cert2)-10])) // two of them, the second not yet whole
	shows(2, "DOCKET_KAFKA_TLS_CA")
	if after, _ := c.TLS(); !after.RootCAs.Equal(before.RootCAs) {
		t.Error("half a file of authorities was taken")
	}
	write("ca", slices.Concat(cert1, cert2))
	if after, err := c.TLS(); err != nil || after.RootCAs.Equal(before.RootCAs) {
		t.Errorf("the new authorities were not taken: %v", err)
	}

	proves := func(want string, complains bool) {
		t.Helper()
		if got, err := c.Password(); got != want || (err != nil) != complains {
			t.Errorf("password %q, %v; want %q", got, err, want)
		}
	}
	proves("first", false)
	write("password", []byte("second\n"))
	proves("second", false)
	write("password", nil)
	proves("second", true)
	if err := os.Remove(at("password")); err != nil {
		t.Fatal(err)
	}
	proves("second", true)
}
