package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestCollector_DefaultsAreEnough(t *testing.T) {
	t.Parallel()
	s, warnings, err := Load(Collector, []string{
		"DOCKET_DATABASE_URL=nonsense", "DOCKET_KAFKA_GROUP=a", "DOCKET_PARKING_GROUP=a", "DOCKET_KAFKA_PARKING_TOPIC=decision-logs", "DOCKET_SPOOL_DIR= ",
	})
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load: %v, warnings %v", err, warnings)
	}
	want := Settings{
		KafkaBrokers: []string{"localhost:9092"}, KafkaTopic: "decision-logs", KafkaDLQTopic: "decision-logs-dlq", PublishTimeout: 5 * time.Second,
		HTTPAddr: ":8084", LogLevel: "info", LogFormat: "json", MaxRefused: 100, ShutdownTimeout: 25 * time.Second,
		CollectorAddr: "127.0.0.1:8085", CollectorKey: "requested_by", CollectorUploadBytes: 8 << 20, CollectorInflated: 64 << 20, CollectorUploads: 512,
		CollectorMemory: 256 << 20, CollectorBodyTimeout: 15 * time.Second, CollectorRetryAfter: 2 * time.Second,
	}
	if diff := cmp.Diff(want, s, cmpopts.IgnoreUnexported(Settings{})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestCollector_SettingsStopNoOtherProgram(t *testing.T) {
	t.Parallel()
	for _, p := range []Program{Consumer, Replayer, Desk} {
		_, warnings, err := LoadWith(p, []string{
			database, "DOCKET_COLLECTOR_ADDR=:1", "DOCKET_COLLECTOR_TOKENS_FILE=/nowhere/at/all", "DOCKET_COLLECTOR_TLS_KEY=/nowhere", "DOCKET_COLLECTOR_MEMORY=1MiB",
		}, Judges{"DOCKET_COLLECTOR_TOKENS": func(string) string { return "never" }})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, warnings %v", p, err, warnings)
		}
	}
}

func TestComplaints_CollectorAndArchive(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	dir := t.TempDir()
	at := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certPEM, keyPEM := written(t, 1)
	junk, cert, key := at("junk", []byte("no certificate")), at("cert", certPEM), at("key", keyPEM)
	pair := []string{"DOCKET_COLLECTOR_TLS_CERT=" + cert, "DOCKET_COLLECTOR_TLS_KEY=" + key}
	beyond := append([]string{"DOCKET_COLLECTOR_ADDR=:8085"}, pair...)
	tokens := "DOCKET_COLLECTOR_TOKENS=opa:" + planted
	for name, c := range map[string]struct {
		p    Program
		env  []string
		want string // empty: none
	}{
		"nowhere":                    {Collector, []string{"DOCKET_COLLECTOR_ADDR=here"}, `DOCKET_COLLECTOR_ADDR: "here" is not host:port`},
		"where health is":            {Collector, []string{"DOCKET_HTTP_ADDR=127.0.0.1:8085"}, `DOCKET_COLLECTOR_ADDR: "127.0.0.1:8085" is already used by DOCKET_HTTP_ADDR`},
		"any two ports":              {Collector, []string{"DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_COLLECTOR_ADDR=127.0.0.1:0"}, ""},
		"beyond loopback":            {Collector, []string{"DOCKET_COLLECTOR_ADDR=:8085", tokens}, `DOCKET_COLLECTOR_TLS_CERT: is missing; DOCKET_COLLECTOR_ADDR is ":8085", which is not loopback`},
		"beyond on a name":           {Collector, []string{"DOCKET_COLLECTOR_ADDR=collector.internal:8085", tokens}, "DOCKET_COLLECTOR_TLS_CERT: is missing"},
		"beyond in plain text":       {Collector, []string{"DOCKET_COLLECTOR_ADDR=:8085", tokens, "DOCKET_COLLECTOR_PLAINTEXT=true"}, ""},
		"beyond for anybody":         {Collector, beyond, `DOCKET_COLLECTOR_TOKENS: is missing; DOCKET_COLLECTOR_ADDR is ":8085"`},
		"plain text for anybody":     {Collector, []string{"DOCKET_COLLECTOR_ADDR=:8085", "DOCKET_COLLECTOR_PLAINTEXT=true"}, "DOCKET_COLLECTOR_TOKENS: is missing"},
		"beyond, anybody told so":    {Collector, append(beyond, "DOCKET_COLLECTOR_ANONYMOUS=true"), ""},
		"beyond with tokens":         {Collector, append(beyond, tokens), ""},
		"beyond with certificates":   {Collector, append(beyond, "DOCKET_COLLECTOR_CLIENT_CA="+cert), ""},
		"anybody, and tokens":        {Collector, []string{tokens, "DOCKET_COLLECTOR_ANONYMOUS=true"}, "DOCKET_COLLECTOR_ANONYMOUS: is true while DOCKET_COLLECTOR_TOKENS"},
		"TLS, and plain text":        {Collector, append(beyond, tokens, "DOCKET_COLLECTOR_PLAINTEXT=true"), "DOCKET_COLLECTOR_PLAINTEXT: is true while DOCKET_COLLECTOR_TLS_CERT"},
		"certificate without key":    {Collector, pair[:1], "DOCKET_COLLECTOR_TLS_KEY: is missing"},
		"key without certificate":    {Collector, pair[1:], "DOCKET_COLLECTOR_TLS_CERT: is missing; DOCKET_COLLECTOR_TLS_KEY needs"},
		"certificate is junk":        {Collector, []string{"DOCKET_COLLECTOR_TLS_CERT=" + junk, "DOCKET_COLLECTOR_TLS_KEY=" + key}, "DOCKET_COLLECTOR_TLS_CERT: certificate and key are not a pair"},
		"authority is junk":          {Collector, append(beyond, "DOCKET_COLLECTOR_CLIENT_CA="+junk), "DOCKET_COLLECTOR_CLIENT_CA: the file holds no certificate"},
		"authority without TLS":      {Collector, []string{"DOCKET_COLLECTOR_CLIENT_CA=" + cert}, "DOCKET_COLLECTOR_TLS_CERT: is missing; DOCKET_COLLECTOR_CLIENT_CA needs TLS"},
		"clients that nobody signs":  {Collector, []string{"DOCKET_COLLECTOR_CLIENTS=opa"}, "DOCKET_COLLECTOR_CLIENTS: is set without DOCKET_COLLECTOR_CLIENT_CA"},
		"a client without a name":    {Collector, append(beyond, "DOCKET_COLLECTOR_CLIENT_CA="+cert, "DOCKET_COLLECTOR_CLIENTS=a,,b"), "DOCKET_COLLECTOR_CLIENTS: entry 2 is empty"},
		"less inflated than it came": {Collector, []string{"DOCKET_COLLECTOR_INFLATED_BYTES=1MiB"}, "DOCKET_COLLECTOR_INFLATED_BYTES: 1MiB is less than DOCKET_COLLECTOR_UPLOAD_BYTES (8MiB)"},
		"memory of no upload":        {Collector, []string{"DOCKET_COLLECTOR_MEMORY=71MiB"}, "DOCKET_COLLECTOR_MEMORY: 71MiB is less than DOCKET_COLLECTOR_UPLOAD_BYTES and DOCKET_COLLECTOR_INFLATED_BYTES together (72MiB)"},
		"memory of one upload":       {Collector, []string{"DOCKET_COLLECTOR_MEMORY=72MiB"}, ""},
		"two homes on one topic":     {Collector, []string{"DOCKET_KAFKA_DLQ_TOPIC=decision-logs"}, `DOCKET_KAFKA_DLQ_TOPIC: "decision-logs" is already the topic of DOCKET_KAFKA_TOPIC`},
		"tokens in a wrong place":    {Collector, []string{"DOCKET_COLLECTOR_TOKENS_FILE=" + planted}, "DOCKET_COLLECTOR_TOKENS_FILE: the file cannot be read"},

		"archive in a bucket":        {Desk, []string{"DOCKET_ARCHIVE_TO=s3://logs/docket", "DOCKET_ARCHIVE_S3_ENDPOINT=http://127.0.0.1:7070"}, ""},
		"archive in a directory":     {Desk, []string{"DOCKET_ARCHIVE_TO=/var/lib/docket"}, ""},
		"archive somewhere else":     {Desk, []string{"DOCKET_ARCHIVE_TO=gs://logs"}, "DOCKET_ARCHIVE_TO: is neither a path nor s3://bucket/prefix"},
		"archive in no bucket":       {Desk, []string{"DOCKET_ARCHIVE_TO=s3:///docket"}, "DOCKET_ARCHIVE_TO: has no valid bucket"},
		"no URL":                     {Desk, []string{"DOCKET_ARCHIVE_S3_ENDPOINT=s3.example.org"}, "DOCKET_ARCHIVE_S3_ENDPOINT: is not an http or https URL"},
		"a password in the URL":      {Desk, []string{"DOCKET_ARCHIVE_S3_ENDPOINT=https://u:" + planted + "@s3"}, "DOCKET_ARCHIVE_S3_ENDPOINT: contains a user or a password"},
		"a bucket in the URL":        {Desk, []string{"DOCKET_ARCHIVE_S3_ENDPOINT=https://s3/logs"}, "DOCKET_ARCHIVE_S3_ENDPOINT: has more than scheme, host and port"},
		"access key without secret":  {Desk, []string{"DOCKET_ARCHIVE_S3_ACCESS_KEY=a"}, "DOCKET_ARCHIVE_S3_SECRET_KEY: is missing"},
		"secret without access key":  {Desk, []string{"DOCKET_ARCHIVE_S3_SECRET_KEY=" + planted}, "DOCKET_ARCHIVE_S3_ACCESS_KEY: is missing"},
		"authority of the archive":   {Desk, []string{"DOCKET_ARCHIVE_S3_CA=" + junk}, "DOCKET_ARCHIVE_S3_CA: the file holds no certificate"},
		"archive of no other's care": {Consumer, []string{"DOCKET_ARCHIVE_TO=gs://logs"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := Load(c.p, append([]string{database}, c.env...))
			var all Complaints
			switch {
			case c.want == "" && err != nil:
				t.Errorf("complains: %v", err)
			case c.want != "" && (!errors.As(err, &all) || !strings.HasPrefix(err.Error(), c.want) || len(all) != 1):
				t.Errorf("got  %v\nwant %s, alone", err, c.want)
			case err != nil && strings.Contains(err.Error(), planted):
				t.Errorf("a secret shows: %v", err)
			}
		})
	}
}

func TestCertificate_RenewedWithoutRestart(t *testing.T) {
	t.Parallel()
	for prefix, c := range map[string]struct {
		program Program
		speak   func(Settings, func(error)) (*tls.Config, error)
		more    []string
	}{
		"DOCKET_COLLECTOR": {Collector, Settings.CollectorTLS, nil},
		"DOCKET_DESK_API":  {Desk, Settings.APITLS, []string{"DOCKET_DATABASE_URL=postgres://u@h/x", "DOCKET_DESK_API_CLIENTS=ada:admin"}},
	} {
		t.Run(prefix, func(t *testing.T) {
			t.Parallel()
			renewed(t, prefix, c.program, c.speak, c.more)
		})
	}
}

func renewed(t *testing.T, prefix string, program Program, speak func(Settings, func(error)) (*tls.Config, error), more []string) {
	t.Helper()
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
	write("cert", cert1)
	write("key", key1)
	write("ca", cert1)
	s, _, err := Load(program, append([]string{prefix + "_TLS_CERT=" + at("cert"), prefix + "_TLS_KEY=" + at("key"), prefix + "_CLIENT_CA=" + at("ca")}, more...))
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	conf, err := speak(s, func(err error) {
		if err == nil {
			told = append(told, "well")
			return
		}
		told = append(told, err.Error())
	})
	if err != nil {
		t.Fatal(err)
	}
	tells := func(want ...string) {
		t.Helper()
		if len(told) != len(want) {
			t.Fatalf("told %q, want %q", told, want)
		}
		for i := range want {
			if !strings.Contains(told[i], want[i]) || strings.Contains(told[i], dir) {
				t.Errorf("told %q, want %q", told[i], want[i])
			}
		}
		told = nil
	}
	shows := func(serial int64) {
		t.Helper()
		near, far := net.Pipe()
		server := tls.Server(far, conf)
		done := make(chan error, 1)
		go func() { done <- server.Handshake() }()
		var seen *x509.Certificate
		client := tls.Client(near, &tls.Config{InsecureSkipVerify: true, VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) (err error) {
			seen, err = x509.ParseCertificate(raw[0])
			return err
		}})
		if err := client.Handshake(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		_, _ = near.Close(), far.Close()
		if got := seen.SerialNumber.Int64(); got != serial {
			t.Errorf("certificate %d, want %d", got, serial)
		}
	}
	shows(1)
	tells()
	write("cert", cert2) // its key is still to come
	shows(1)
	shows(1)
	tells(prefix + "_TLS_CERT")
	write("key", key2)
	shows(2)
	tells("well")
	if err := os.Remove(at("key")); err != nil {
		t.Fatal(err)
	}
	shows(2)
	tells(prefix + "_TLS_CERT")
	before, _ := conf.GetConfigForClient(nil)
	write("ca", cert2) // a certificate that cannot be used delays no change of the authorities
	if after, _ := conf.GetConfigForClient(nil); after.ClientCAs.Equal(before.ClientCAs) || after.ClientAuth != tls.VerifyClientCertIfGiven {
		t.Error("the signers of client certificates are not read again")
	}
	before, _ = conf.GetConfigForClient(nil)
	write("ca", nil)
	if after, _ := conf.GetConfigForClient(nil); !after.ClientCAs.Equal(before.ClientCAs) {
		t.Error("a file without a certificate replaced the signers")
	}
	tells(prefix + "_CLIENT_CA")
	write("key", key2)
	write("ca", cert2)
	shows(2)
	tells("well")
	if none, err := speak(Settings{}, nil); none != nil || err != nil {
		t.Errorf("without a certificate: %v, %v", none, err)
	}
	if _, err := speak(s, nil); err != nil {
		t.Error(err)
	}
	if err := os.Remove(at("cert")); err != nil {
		t.Fatal(err)
	}
	if _, err := speak(s, nil); err == nil || strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), prefix+"_TLS_CERT") {
		t.Errorf("without the file: %v", err)
	}
}
