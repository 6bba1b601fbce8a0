package collect

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/kafkatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const planted = "hunter2marker-hunter2marker"

func brokers(t *testing.T) *kafkatest.Cluster {
	t.Helper()
	return kafkatest.New(t, kfake.SeedTopics(1, "decision-logs", "decision-logs-dlq"))
}

func settings(t *testing.T, brokers []string, more ...string) config.Settings {
	t.Helper()
	s, _, err := config.LoadWith(config.Collector, append([]string{
		"DOCKET_KAFKA_BROKERS=" + strings.Join(brokers, ","), "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_COLLECTOR_ADDR=127.0.0.1:0",
	}, more...), Judges())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// running is a collector at work.
type running struct {
	*Program
	t     *testing.T
	stop  func()
	ended chan error
	http  *http.Client
	tls   bool
	lines *lines
}

// lines are what was logged.
type lines struct {
	mu   sync.Mutex
	text string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(p)
	return len(p), nil
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text, part)
}

func run(t *testing.T, s config.Settings, o Options) *running {
	t.Helper()
	log := &lines{}
	p, err := New(s, zerolog.New(log), prometheus.NewRegistry(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{Program: p, t: t, lines: log, stop: stop, ended: make(chan error, 1), tls: s.CollectorTLSCert != "",
		http: &http.Client{Timeout: kafkatest.Timeout, Transport: &http.Transport{}}}
	go func() { r.ended <- p.Run(ctx); close(r.ended) }()
	t.Cleanup(func() {
		stop()
		r.http.CloseIdleConnections()
		<-r.ended
		p.Close()
	})
	return r
}

// decision is one as OPA sends it.
func decision(id string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-01-01T00:00:00.1Z","labels":{"id":"opa"},"path":"a/b","requested_by":"10.0.0.9:4711","result":true}`, id)
}

// upload posts decisions as OPA does, and returns the answer with its body read.
func (r *running) upload(token string, decisions ...string) (*http.Response, string) {
	r.t.Helper()
	resp, body, err := r.send(token, decisions...)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp, body
}

func (r *running) send(token string, decisions ...string) (*http.Response, string, error) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(z, "["+strings.Join(decisions, ",")+"]")
	if err := z.Close(); err != nil {
		return nil, "", err
	}
	url := "http://" + r.Uploads().String() + "/logs"
	if r.tls {
		url = strings.Replace(url, "http", "https", 1)
	}
	req, err := http.NewRequest(http.MethodPost, url, &zipped)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp, string(body), err
}

// readyz is its status and body.
func (r *running) readyz() (int, string) {
	r.t.Helper()
	resp, err := r.http.Get("http://" + r.Addr() + "/readyz")
	if err != nil {
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func (r *running) becomes(status int, part string) {
	r.t.Helper()
	kafkatest.Eventually(r.t, fmt.Sprintf("/readyz to be %d with %q", status, part), func() bool {
		got, body := r.readyz()
		return got == status && strings.Contains(body, part)
	})
}

func (r *running) end() {
	r.t.Helper()
	select {
	case err := <-r.ended:
		if err != nil {
			r.t.Errorf("stopped, it ended with %v", err)
		}
	case <-time.After(kafkatest.Timeout):
		r.t.Fatal("it does not end")
	}
}

func TestUpload_RecordPerDecision(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	r := run(t, settings(t, k.Brokers(), "DOCKET_COLLECTOR_KEY=decision_id"), Options{})
	r.becomes(http.StatusOK, `"ready":true`)
	if _, body := r.readyz(); strings.Contains(body, "assigned") || strings.Contains(body, "joined") {
		t.Errorf("it tells of a group that it is no member of: %s", body)
	}
	if resp, body := r.upload("", decision("1"), decision("2")); resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, body)
	}
	got := k.ReadAll(t, "decision-logs")
	if len(got) != 2 || string(got[0].Value) != decision("1") || string(got[1].Key) != "2" {
		t.Errorf("records: %v", got)
	}
	resp, err := r.http.Get("http://" + r.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	metrics, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{`docket_collector_decisions_total{home="topic"} 2`, `docket_build_info{goversion="go1.`, `program="collector",revision="`, "go_goroutines ", `docket_hold{reason="kafka_unreachable"} 0`} {
		if !strings.Contains(string(metrics), line) {
			t.Errorf("no %s", line)
		}
	}
}

func TestStop_UploadsInProgressEnd(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	leave := make(chan struct{})
	r := run(t, settings(t, k.Brokers()), Options{Farewell: func(context.Context) { <-leave }})
	r.becomes(http.StatusOK, "")
	asked, release := make(chan struct{}), make(chan struct{})
	k.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(asked)
		k.SleepControl(func() { <-release })
		return nil, nil, false
	})
	type answer struct {
		status int
		err    error
	}
	answered := make(chan answer, 1)
	go func() {
		resp, _, err := r.send("", decision("1"))
		if err != nil {
			answered <- answer{err: err}
			return
		}
		answered <- answer{status: resp.StatusCode}
	}()
	<-asked
	r.stop()
	r.becomes(http.StatusServiceUnavailable, "stopping")
	resp, body := r.upload("", decision("2"))
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "2" || !resp.Close {
		t.Errorf("an upload after the stop: %s, Retry-After %q, close %v, %s", resp.Status, resp.Header.Get("Retry-After"), resp.Close, body)
	}
	select {
	case a := <-answered:
		t.Fatalf("the upload under way was answered before Kafka did: %+v", a)
	default:
	}
	close(leave) // the listener goes, the upload stays
	kafkatest.Eventually(t, "the listener to be closed", func() bool {
		conn, err := net.Dial("tcp", r.Uploads().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(release)
	if a := <-answered; a.err != nil || a.status != http.StatusOK {
		t.Errorf("the upload under way: %+v", a)
	}
	r.end()
	if got := k.ReadAll(t, "decision-logs"); len(got) != 1 || string(got[0].Value) != decision("1") {
		t.Errorf("records: %v", got)
	}
}

func TestStop_UploadHangs(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	r := run(t, settings(t, k.Brokers(), "DOCKET_SHUTDOWN_TIMEOUT=200ms", "DOCKET_COLLECTOR_BODY_TIMEOUT=10m"), Options{})
	r.becomes(http.StatusOK, "")
	conn, err := net.Dial("tcp", r.Uploads().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST /logs HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n["); err != nil {
		t.Fatal(err)
	}
	kafkatest.Eventually(t, "the upload to be under way", func() bool {
		resp, err := r.http.Get("http://" + r.Addr() + "/metrics")
		if err != nil {
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		text, _ := io.ReadAll(resp.Body)
		return strings.Contains(string(text), "docket_collector_uploads_in_flight 1")
	})
	began := time.Now()
	r.stop()
	r.end()
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	if r.lines.count("uploads interrupted by shutdown") != 1 {
		t.Error("nothing is said of the upload that was left")
	}
}

// replace writes a file at once: nobody reads half of it.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// TestRights_Reloaded: the file of rights is read again, beside the tokens, and a file that cannot be used changes nothing.
func TestRights_Reloaded(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	tokens, rights := filepath.Join(t.TempDir(), "tokens"), filepath.Join(t.TempDir(), "rights.json")
	const first, second = "first-0123456789abcdef", "second-0123456789abcdef"
	replace(t, tokens, "opa:"+first)
	replace(t, rights, `{"somebody":{}}`)
	r := run(t, settings(t, k.Brokers(), "DOCKET_COLLECTOR_TOKENS_FILE="+tokens, "DOCKET_COLLECTOR_CLIENTS_FILE="+rights), Options{TokensEvery: 5 * time.Millisecond})
	status := func(token string) int {
		t.Helper()
		resp, _ := r.upload(token, decision("1"))
		return resp.StatusCode
	}
	if got := status(first); got != http.StatusForbidden {
		t.Fatalf("a client that is not named: %d", got)
	}
	replace(t, rights, `{"opa":{}}`)
	kafkatest.Eventually(t, "the client to be named", func() bool { return status(first) == http.StatusOK })
	for i, bad := range []string{"", "{", `{"opa":{"ids":[]}}`} {
		replace(t, rights, bad)
		kafkatest.Eventually(t, "it to be told", func() bool { return r.lines.count("client rights not reloaded") > i })
		if got := status(first); got != http.StatusOK {
			t.Errorf("while the file is %q: %d", bad, got)
		}
		replace(t, rights, `{"opa":{}}`)
		kafkatest.Eventually(t, "that to be over", func() bool { return r.lines.count("client rights became readable") > i })
	}
	replace(t, tokens, "opa:"+second)
	kafkatest.Eventually(t, "the second token to hold", func() bool { return status(second) == http.StatusOK })
	replace(t, rights, `{"other":{}}`)
	kafkatest.Eventually(t, "the client to be unnamed", func() bool { return status(second) == http.StatusForbidden })
	if got := status(first); got != http.StatusUnauthorized {
		t.Errorf("rights brought a token back that is gone: %d", got)
	}
}

func TestTokens_Reloaded(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	path := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) { replace(t, path, text) }
	const first, second = "first-0123456789abcdef", "second-0123456789abcdef"
	write("opa:" + first)
	r := run(t, settings(t, k.Brokers(), "DOCKET_COLLECTOR_TOKENS_FILE="+path), Options{TokensEvery: 5 * time.Millisecond})
	status := func(token string) int {
		t.Helper()
		resp, _ := r.upload(token, decision("1"))
		return resp.StatusCode
	}
	if got := status(first); got != http.StatusOK {
		t.Fatalf("the first token: %d", got)
	}
	if a, b := status(second), status(""); a != http.StatusUnauthorized || b != http.StatusUnauthorized {
		t.Errorf("a token of nobody: %d, none: %d", a, b)
	}
	write("opa:" + first + " opa:" + second)
	kafkatest.Eventually(t, "the second token to hold", func() bool { return status(second) == http.StatusOK })
	if got := status(first); got != http.StatusOK {
		t.Errorf("the first beside the second: %d", got)
	}
	for i, bad := range []string{"opa", "\n", "  "} { // half written, empty, blank: nobody is let in or thrown out by that
		write(bad)
		kafkatest.Eventually(t, "it to be told", func() bool { return r.lines.count("collector tokens not reloaded") > i })
		if a, b := status(second), status(""); a != http.StatusOK || b != http.StatusUnauthorized {
			t.Errorf("while the file is %q: the second token %d, none %d", bad, a, b)
		}
		write("opa:" + first + " opa:" + second)
		kafkatest.Eventually(t, "that to be over", func() bool { return r.lines.count("collector tokens became readable") > i })
	}
	write("opa:" + second)
	kafkatest.Eventually(t, "the first token to be nobody's", func() bool { return status(first) == http.StatusUnauthorized })
	if r.lines.count(first)+r.lines.count(second) > 0 {
		t.Error("a token is in the log")
	}
	if got := status(second); got != http.StatusOK {
		t.Errorf("the second alone: %d", got)
	}
}

func TestTLS_ClientCertificate(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	a := authority(t)
	r := run(t, settings(t, k.Brokers(), "DOCKET_COLLECTOR_TLS_CERT="+a.server.cert, "DOCKET_COLLECTOR_TLS_KEY="+a.server.key,
		"DOCKET_COLLECTOR_CLIENT_CA="+a.ca, "DOCKET_COLLECTOR_CLIENTS=opa"), Options{})
	for _, c := range []struct {
		by   *pair
		want int
	}{{&a.client, http.StatusOK}, {&a.stranger, http.StatusUnauthorized}, {nil, http.StatusUnauthorized}} {
		conf := &tls.Config{RootCAs: a.pool}
		if c.by != nil {
			conf.Certificates = []tls.Certificate{c.by.pair}
		}
		r.http.CloseIdleConnections()
		r.http = &http.Client{Timeout: kafkatest.Timeout, Transport: &http.Transport{TLSClientConfig: conf, ForceAttemptHTTP2: true}}
		if resp, body := r.upload("", decision("1")); resp.StatusCode != c.want || resp.ProtoMajor != 1 {
			t.Errorf("%s, want %d: %s", resp.Status, c.want, body)
		}
	}
}

func TestReadiness_FollowsBrokers(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	var away atomic.Bool
	away.Store(true)
	r := run(t, settings(t, k.Brokers()), Options{DialKafka: func(ctx context.Context, network, address string) (net.Conn, error) {
		if away.Load() {
			return nil, syscall.ECONNREFUSED
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}})
	r.becomes(http.StatusServiceUnavailable, "kafka_unreachable")
	var told struct{ Reasons []app.Reason }
	if _, body := r.readyz(); json.Unmarshal([]byte(body), &told) != nil || len(told.Reasons) != 1 || told.Reasons[0].Hint == "" || told.Reasons[0].Since == nil {
		t.Errorf("%s", body)
	}
	if h := r.Health(); !h.Healthy {
		t.Error("a restart would not bring the brokers back")
	}
	away.Store(false)
	r.becomes(http.StatusOK, `"ready":true`)
}

func TestNew_AddressTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for _, variable := range []string{"DOCKET_HTTP_ADDR", "DOCKET_COLLECTOR_ADDR"} {
		_, err := New(settings(t, []string{"127.0.0.1:1"}, variable+"="+l.Addr().String()), zerolog.Nop(), prometheus.NewRegistry(), Options{})
		if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s: %v", variable, err)
		}
	}
}

func TestJudges_QuoteNoSecret(t *testing.T) {
	t.Parallel()
	blank := []string{"DOCKET_COLLECTOR_ADDR=:8085", "DOCKET_COLLECTOR_PLAINTEXT=true", "DOCKET_COLLECTOR_TOKENS=  "}
	if _, _, err := config.LoadWith(config.Collector, blank, Judges()); err == nil || !strings.Contains(err.Error(), "DOCKET_COLLECTOR_TOKENS: it has no token") {
		t.Errorf("tokens that are none would let everybody in: %v", err)
	}
	_, _, err := config.LoadWith(config.Collector, []string{
		"DOCKET_COLLECTOR_TOKENS=" + planted + " opa:short", "DOCKET_COLLECTOR_KEY=nobody", "DOCKET_COLLECTOR_DROP=password", "DOCKET_COLLECTOR_MASK=/decision_id",
	}, Judges())
	for _, part := range []string{"DOCKET_COLLECTOR_TOKENS: entry 1", "entry 2", "DOCKET_COLLECTOR_KEY: ", "DOCKET_COLLECTOR_DROP: ", "DOCKET_COLLECTOR_MASK: "} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("nothing is said of %s: %v", part, err)
		}
	}
	if err != nil && (strings.Contains(err.Error(), planted) || strings.Count(err.Error(), "\n") != 3) {
		t.Errorf("a secret shows, or a complaint has several lines: %v", err)
	}
}

// A client keeps its connection after a refusal. It shows a new certificate only with the next one.
func TestTLS_NewCertificateAfterRefusal(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	a := authority(t)
	r := run(t, settings(t, k.Brokers(), "DOCKET_COLLECTOR_TLS_CERT="+a.server.cert, "DOCKET_COLLECTOR_TLS_KEY="+a.server.key,
		"DOCKET_COLLECTOR_CLIENT_CA="+a.ca, "DOCKET_COLLECTOR_CLIENTS=opa"), Options{})
	shown := &a.stranger
	r.http = &http.Client{Timeout: kafkatest.Timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: a.pool, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &shown.pair, nil },
	}}}
	if resp, body := r.upload("", decision("1")); resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("the old one: %s: %s", resp.Status, body)
	}
	shown = &a.client
	if resp, body := r.upload("", decision("1")); resp.StatusCode != http.StatusOK {
		t.Errorf("the new one: %s: %s", resp.Status, body)
	}
}

// Certificates of the brokers that cannot be read now leave those before in use, for the look at the brokers, too.
func TestReadiness_BrokenFilesOfBrokers(t *testing.T) {
	t.Parallel()
	a := authority(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	text, err := os.ReadFile(a.ca)
	if err != nil {
		t.Fatal(err)
	}
	replace(t, ca, string(text))
	dialled := atomic.Int64{}
	r := run(t, settings(t, []string{"127.0.0.1:1"}, "DOCKET_KAFKA_TLS=true", "DOCKET_KAFKA_TLS_CA="+ca), Options{DialKafka: func(context.Context, string, string) (net.Conn, error) {
		dialled.Add(1)
		return nil, syscall.ECONNREFUSED
	}})
	replace(t, ca, "half")
	before := dialled.Load()
	if h := r.ask(t.Context()); h.Reason != "kafka_unreachable" || dialled.Load() == before {
		t.Errorf("the brokers were not asked: %+v", h)
	}
}

// A renewed certificate that cannot be used is told before the old one ends.
func TestTLS_BrokenFilesAreTold(t *testing.T) {
	t.Parallel()
	k := brokers(t)
	a := authority(t)
	r := run(t, settings(t, k.Brokers(), "DOCKET_COLLECTOR_TLS_CERT="+a.server.cert, "DOCKET_COLLECTOR_TLS_KEY="+a.server.key,
		"DOCKET_COLLECTOR_CLIENT_CA="+a.ca), Options{})
	key, err := os.ReadFile(a.server.key)
	if err != nil {
		t.Fatal(err)
	}
	uploads := func() {
		t.Helper()
		r.http.CloseIdleConnections()
		r.http = &http.Client{Timeout: kafkatest.Timeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.client.pair}}}}
		if resp, body := r.upload("", decision("1")); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", resp.Status, body)
		}
	}
	uploads()
	replace(t, a.server.key, "half")
	uploads()
	uploads()
	replace(t, a.server.key, string(key))
	uploads()
	if told, over := r.lines.count("listener certificates not reloaded"), r.lines.count("listener certificates became readable"); told != 1 || over != 1 {
		t.Errorf("told %d times, and %d times that it is over", told, over)
	}
}

// A pipe gives the rights once. A second open of it waits for somebody who writes.
func TestRights_PipeIsReadOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rights")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := make(chan error, 1)
	go func() {
		_, err := freshClients(path, "{}")
		fresh <- err
	}()
	select {
	case err := <-fresh:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it waits")
		_ = os.WriteFile(path, []byte("late"), 0o600)
		<-fresh
	}
}
