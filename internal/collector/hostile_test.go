package collector

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/redact"
	"docket/internal/record/subject"
	"docket/internal/testkit/kafkatest"
)

func TestStranger_HoldsNoPlaceByAMissingBody(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Auth, c.BodyTimeout, c.Uploads = Auth{Tokens: tokens}, 200*time.Millisecond, 1 })
	address := strings.TrimPrefix(w.serve(t), "http://")
	for what, begin := range map[string]string{
		"a length":     "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[",
		"chunks":       "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
		"a wrong one":  "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer wrong\r\nContent-Length: 100\r\n\r\n",
		"another verb": "PUT /logs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n",
		"he may wait":  "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, begin)
		_ = conn.SetReadDeadline(time.Now().Add(kafkatest.Timeout))
		answer, err := io.ReadAll(conn) // the server hangs up
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 40") {
			t.Errorf("%s: %q, %v", what, answer, err)
		}
		if n := w.places.taken(); n != 0 {
			t.Errorf("%s: %d places are taken", what, n)
		}
		_ = conn.Close()
	}
	if used := w.memory.used.Load(); used != 0 || len(w.kafka.kept) != 0 {
		t.Errorf("%d bytes are taken, %d records kept", used, len(w.kafka.kept))
	}
}

// TestBodyTimeout_EndsWithTheBody sees to it that a connection whose upload waits for Kafka does not pass for one that broke off.
func TestBodyTimeout_EndsWithTheBody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.BodyTimeout = 100 * time.Millisecond })
		w.kafka.before = func(int) { time.Sleep(400 * time.Millisecond) }
		gone := make(chan error, 1)
		client := virtually(t, http.HandlerFunc(func(a http.ResponseWriter, r *http.Request) {
			w.ServeHTTP(a, r)
			gone <- r.Context().Err()
		}))
		if code, _ := sendBy(t, client, "http://127.0.0.1:80", strings.NewReader(good("a"))); code != 200 {
			t.Errorf("%d", code)
		}
		if err := <-gone; err != nil {
			t.Errorf("the request ended before its answer: %v", err)
		}
	})
}

// TestKey_LongSubjectFits has a caller who chooses a name that alone is more than the brokers take.
func TestKey_LongSubjectFits(t *testing.T) {
	t.Parallel()
	spec, err := subject.Parse("input:/user")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Key = spec })
	const most = 1 << 20
	w.kafka.answer = func(r *kgo.Record) error {
		if len(r.Key)+len(r.Value) > most {
			return kerr.MessageTooLarge
		}
		return nil
	}
	var keys []string
	for i, user := range []string{strings.Repeat("u", 700<<10), strings.Repeat("u", 700<<10), strings.Repeat("v", 700<<10), strings.Repeat("w", 256)} {
		w.kafka.kept = nil
		a := w.post(t, fmt.Sprintf(`{"decision_id":"%d","timestamp":"2026-03-01T12:00:00Z","input":{"user":%q}}`, i, user))
		if kept := w.kafka.in(logs); a.Code != 200 || len(kept) != 1 || decision.IsGzip(kept[0].Value) {
			t.Fatalf("%d: %d, %d kept", i, a.Code, len(kept))
		}
		keys = append(keys, string(w.kafka.kept[0].Key))
	}
	if keys[0] != keys[1] || keys[0] == keys[2] || len(keys[0]) > 100 || !strings.HasPrefix(keys[0], "sha256:") || keys[3] != strings.Repeat("w", 256) {
		t.Errorf("keys %.80q", keys)
	}
}

// TestMemory_IncludesMasking masks values that are shorter than the mask.
func TestMemory_IncludesMasking(t *testing.T) { //nolint:paralleltest // it measures the whole process
	for _, rule := range []string{"/input/*", "/input/a"} {
		rules, err := redact.Parse(nil, []string{rule})
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, func(c *Config) { c.Redact, c.Memory = rules, 24<<20 })
		w.publisher = forgetful{}
		input := "[" + strings.Repeat("1,", 2<<20) + "1]"
		if rule == "/input/a" {
			input = "{" + strings.Repeat(`"a":1,`, 700_000) + `"a":1}`
		}
		body := gz(`[{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","input":` + input + "}]")
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		a := w.post(t, body)
		runtime.ReadMemStats(&after)
		if grew := after.TotalAlloc - before.TotalAlloc; a.Code != 413 || grew > 2*24<<20 {
			t.Errorf("%s: %d after %d MiB", rule, a.Code, grew>>20)
		}
	}
}

func TestLooseOutlay_NeverBelowTheCount(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "[]", "[0,0,0]", `[{"a":[1,{"b":2}]},{"a":"},{:,"}]`, good("a") + "\n" + good("b"), "{}\n{}\n", "[0,it\"s\n{}\n{\"a\":1}\n", "[" + good("a") + "," + good("b") + "]"} {
		if loose, exact := looseOutlay([]byte(body)), outlayOf([]byte(body)); loose.decisions < exact.decisions || loose.nodes < exact.nodes {
			t.Errorf("%q: %+v, and %+v were counted", body, loose, exact)
		}
	}
}

func TestStranger_TakesNoPlace(t *testing.T) {
	t.Parallel()
	tokens, err := ParseTokens("opa:" + secret)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(c *Config) { c.Auth, c.Uploads = Auth{Tokens: tokens}, 1 })
	w.places.take("another", time.Now())
	if code := w.postAlone(t, good("a")); code != http.StatusUnauthorized {
		t.Errorf("a stranger is told %d", code)
	}
	if a := w.post(t, good("a"), "Authorization", "Bearer "+secret); a.Code != http.StatusTooManyRequests {
		t.Errorf("one who may upload is told %d", a.Code)
	}
}

func TestMemory_HeldUntilKafkaAnswers(t *testing.T) {
	t.Parallel()
	const n = 500
	var parts []string
	for i := range n {
		parts = append(parts, good(fmt.Sprint(i)))
	}
	body := strings.Join(parts, "\n")
	for _, memory := range []int64{64 << 20, 2 << 20} { // enough for a loose bound, and not
		w := newWorld(t, func(c *Config) { c.Memory = memory })
		held := int64(0)
		w.kafka.before = func(int) { held = w.memory.used.Load() }
		if a := w.post(t, body); a.Code != 200 {
			t.Fatalf("%d: %d", memory, a.Code)
		}
		if least := int64(n*eachDecision + len(body)); held < least || held > least+int64(3*len(body))+leastBuffer+eachNode*n*16 {
			t.Errorf("of %d: %d bytes are held, at least %d have to be", memory, held, least)
		}
	}
}
