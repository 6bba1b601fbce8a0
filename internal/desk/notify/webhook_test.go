package notify

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

func TestWebhook_SignedJSON(t *testing.T) {
	t.Parallel()
	h := &hook{status: []int{500}}
	server := httptest.NewServer(h)
	defer server.Close()
	c, log := start(t, server.URL+"/in?team=a&docket_secret=s3cret&x=%20y")
	running(t, c)
	c.Send(example)
	until(t, "the second try", func() bool { return c.count("webhook 1", sent) == 1 })
	got := h.got()
	if len(got) != 2 || !bytes.Equal(got[0].body, got[1].body) {
		t.Fatalf("%d posts, or a second try with another id", len(got))
	}
	p := got[1]
	if p.url != "/in?team=a&x=+y" || p.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", p.url, p.header)
	}
	if p.header.Get(SignatureHeader) != Sign([]byte("s3cret"), p.body) || Sign([]byte("s3cret"), p.body) == Sign([]byte("other"), p.body) {
		t.Errorf("signature %q", p.header.Get(SignatureHeader))
	}
	// Case 2 of RFC 4231: the header is that of any HMAC library.
	if s := Sign([]byte("Jefe"), []byte("what do ya want for nothing?")); s != "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" {
		t.Error(s)
	}
	var body map[string]any
	if err := json.Unmarshal(p.body, &body); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{
		"version": 1.0, "kind": "alert", "key": "unresolved", "severity": "warning", "title": example.Title,
	} {
		if body[key] != want {
			t.Errorf("%s is %v, not %v", key, body[key], want)
		}
	}
	if at, err := time.Parse(time.RFC3339Nano, body["sent_at"].(string)); err != nil || time.Since(at) > time.Minute || body["id"] == "" || len(body["lines"].([]any)) != 2 {
		t.Errorf("%s", p.body)
	}
	if s := log.String(); strings.Contains(s, "s3cret") || strings.Contains(s, server.URL) || !strings.Contains(s, example.Title) {
		t.Error(s)
	}
}

func TestWebhook_NoSecretAndNoRedirects(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	var signed atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed.Store(r.Header.Get(SignatureHeader) != "")
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	c, log := start(t, server.URL)
	running(t, c)
	c.Send(example)
	until(t, "the redirect counts as a failure", func() bool { return c.count("webhook 1", failed) == 1 })
	if signed.Load() || elsewhere.Load() != 0 {
		t.Errorf("signed %v, %d posts elsewhere", signed.Load(), elsewhere.Load())
	}
	until(t, "the reason is logged", func() bool { return strings.Contains(log.String(), `"channel":"webhook 1","reason":"HTTP 307"`) })
}

func TestChannel_FailureIsLoggedOnce(t *testing.T) {
	t.Parallel()
	h := &hook{status: []int{500, 500, 500, 500, 500, 500, 503, 503, 503}}
	server := httptest.NewServer(h)
	defer server.Close()
	c, log := start(t, server.URL+"/T0KEN")
	running(t, c)
	for range 4 {
		c.Send(example)
	}
	until(t, "one is taken", func() bool { return c.count("webhook 1", sent) > 0 })
	if n := c.count("webhook 1", failed); n != 3 || len(h.got()) != 10 {
		t.Fatalf("%d failed, %d posts", n, len(h.got()))
	}
	until(t, "it is well", func() bool { return strings.Contains(log.String(), `"lost":3`) })
	s := log.String()
	if strings.Count(s, `"HTTP 500"`) != 1 || strings.Count(s, `"HTTP 503"`) != 1 || strings.Contains(s, "T0KEN") || strings.Contains(s, "127.0.0.1") {
		t.Error(s)
	}
}

func TestChannel_FailureStopsNoOther(t *testing.T) {
	t.Parallel()
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := refusing.Addr().String()
	_ = refusing.Close()
	release := make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer silent.Close()
	defer close(release)
	h := &hook{}
	well := httptest.NewServer(h)
	defer well.Close()
	c, log := start(t, "http://"+refused+"/A \n"+silent.URL+"/B\t"+well.URL)
	c.channels[1].limit = 20 * time.Millisecond
	running(t, c)
	began := time.Now()
	for range 5 {
		c.Send(example)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("sending took %s", took)
	}
	until(t, "the healthy channel has all, the others have failed", func() bool {
		return c.count("webhook 3", sent) == 5 && c.count("webhook 1", failed) == 5 && c.count("webhook 2", failed) == 5
	})
	if n := len(h.got()); n != 5 || c.count("log", sent) != 5 {
		t.Errorf("%d posts", n)
	}
	for _, want := range []string{`"channel":"webhook 1","reason":"the connection is refused"`, `"channel":"webhook 2","reason":"no answer in time"`} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("%s in %s", want, log)
		}
	}
}

func TestChannel_FullQueueDropsTheOldest(t *testing.T) {
	t.Parallel()
	h := &hook{}
	server := httptest.NewServer(h)
	defer server.Close()
	c, _ := start(t, server.URL)
	for i := range queueLength + 3 { // nobody takes any
		c.Send(Message{Kind: Report, Title: "t", Key: string(rune('A' + i))})
	}
	if n := c.count("webhook 1", dropped); n != 3 {
		t.Errorf("%d dropped", n)
	}
	running(t, c)
	until(t, "the rest is sent", func() bool { return c.count("webhook 1", sent) == queueLength })
	if first := string(h.got()[0].body); !strings.Contains(first, `"key":"D"`) || !strings.Contains(first, `"lines":[]`) {
		t.Error(first)
	}
}

func TestRun_CountsUndelivered(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 9), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		arrived <- struct{}{}
		<-release
	}))
	defer server.Close()
	defer close(release)
	c, _ := start(t, server.URL)
	c.channels[0].limit = time.Hour
	stop := running(t, c)
	c.Send(example)
	c.Send(example)
	<-arrived
	stop()
	if n := c.count("webhook 1", dropped); n != 2 {
		t.Errorf("%d dropped", n)
	}
}

func TestNew_InvalidEntryIsNotQuoted(t *testing.T) {
	t.Parallel()
	secrets := "slack://T0KEN1@ T0KEN2://x:y@z https:///T0KEN3 %zzT0KEN4 smtp://u:T0KEN5@h:25/?nonsense=1 https://h/?docket_secret= " +
		"https://h/;T0KEN6?a;b=%zz discord+https://T0KEN7@x ok"
	_, err := New(secrets, zerolog.Nop(), nil)
	if err == nil {
		t.Fatal("all is understood")
	}
	text := err.Error()
	if strings.Contains(text, "T0KEN") || strings.Contains(strings.ToLower(text), "t0ken") {
		t.Error(text)
	}
	for _, want := range []string{
		"entry 1 (slack) is not understood", "entry 2 is not understood", "entry 3 (webhook) is not understood", "entry 4 is not understood",
		"entry 5 (smtp) is not understood", "entry 6 (webhook) is not understood: docket_secret is empty", "entry 7 (webhook)",
		"entry 8 (discord) is not understood", "entry 9 is not understood",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	c, err := New(" \n\t", zerolog.Nop(), nil)
	if err != nil || len(c.Names()) != 1 {
		t.Errorf("the log alone: %v %v", c.Names(), err)
	}
}
