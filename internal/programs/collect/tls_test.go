package collect

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pair is a certificate with its key, and where they are.
type pair struct {
	pair      tls.Certificate
	cert, key string
}

// signed is an authority and whom it knows: a server, a client called opa and one called stranger.
type signed struct {
	ca                       string
	pool                     *x509.CertPool
	server, client, stranger pair
}

func authority(t *testing.T) signed {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var root *x509.Certificate
	var rootKey *ecdsa.PrivateKey
	issue := func(name string, ca bool) (*x509.Certificate, *ecdsa.PrivateKey) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
			IsCA: ca, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		parent, by := root, rootKey
		if ca {
			parent, by = template, key
			template.KeyUsage = x509.KeyUsageCertSign
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made, key
	}
	leaf := func(name string) pair {
		cert, key := issue(name, false)
		der, err := x509.MarshalPKCS8PrivateKey(key)
		if err != nil {
			t.Fatal(err)
		}
		return pair{tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, write(name+".crt", "CERTIFICATE", cert.Raw), write(name+".key", "PRIVATE KEY", der)}
	}
	root, rootKey = issue("authority", true)
	a := signed{ca: write("ca.crt", "CERTIFICATE", root.Raw), pool: x509.NewCertPool(), server: leaf("server"), client: leaf("opa"), stranger: leaf("stranger")}
	a.pool.AddCert(root)
	return a
}
