package collector

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/testkit/kafkatest"
)

// serve puts the collector behind a real server.
func (w *world) serve(t testing.TB) string {
	t.Helper()
	s := httptest.NewServer(w)
	t.Cleanup(s.Close)
	return s.URL
}

// virtually puts a handler behind a server on a network inside the process, for use in a bubble of testing/synctest: a deadline is
// missed there by what waits, and never by a machine that is busy.
func virtually(t testing.TB, h http.Handler) *http.Client {
	t.Helper()
	network := new(kfake.VirtualNetwork)
	l, err := network.Listen("tcp", "127.0.0.1:80")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h} //nolint:gosec // its only client is the test
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-ended
	})
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: network.DialContext}}
}

func send(t testing.TB, url string, body io.Reader) (int, http.Header) {
	t.Helper()
	return sendBy(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, url, body)
}

func sendBy(t testing.TB, client *http.Client, url string, body io.Reader) (int, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/any/path/at/all", body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	a, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return 0, nil
	}
	defer a.Body.Close()
	_, _ = io.Copy(io.Discard, a.Body)
	return a.StatusCode, a.Header
}

// until polls.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(kafkatest.Timeout); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestUpload_ChunksWithoutLength(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	url := w.serve(t)
	if code, _ := send(t, url, struct{ io.Reader }{strings.NewReader(gz("[" + good("a") + "]"))}); code != 200 || len(w.kafka.in(logs)) != 1 {
		t.Errorf("%d, %d kept", code, len(w.kafka.in(logs)))
	}
	if code, _ := send(t, url, struct{ io.Reader }{strings.NewReader(strings.Repeat(" ", 1<<20+1))}); code != 413 {
		t.Errorf("one that is too large: %d", code)
	}
}

func TestUpload_OneByteBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	const most = 4 << 10
	padded := func(n int) string { return good("a") + strings.Repeat(" ", n-len(good("a"))) }
	for name, c := range map[string]struct {
		upload, inflated int64
		pack             func(string) string
		reason           reason
	}{
		"as it comes":  {most, 1 << 20, strings.Clone, reasonUploadBytes},
		"after gunzip": {1 << 20, most, gz, reasonInflatedBytes},
		"never zipped": {1 << 20, most, strings.Clone, reasonInflatedBytes},
	} {
		w := newWorld(t, func(cfg *Config) { cfg.UploadBytes, cfg.InflatedBytes = c.upload, c.inflated })
		url := w.serve(t)
		for extra, want := range map[int]int{0: 200, 1: 413, 2: 413} {
			body := c.pack(padded(most + extra))
			// With its length told, and in chunks that tell none.
			if a := w.post(t, body); a.Code != want || want != 200 && problem(t, a).Reason != c.reason {
				t.Errorf("%s, %d more: %d %s", name, extra, a.Code, a.Body)
			}
			if code, _ := send(t, url, struct{ io.Reader }{strings.NewReader(body)}); code != want {
				t.Errorf("%s, %d more, in chunks: %d", name, extra, code)
			}
		}
	}
}

func TestBody_LateIs408AndFreesEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.BodyTimeout, c.Uploads = 200*time.Millisecond, 1 })
	address := strings.TrimPrefix(w.serve(t), "http://")
	for name, begin := range map[string]string{
		"nothing comes":    "Content-Length: 100\r\n\r\n",
		"a byte comes":     "Content-Length: 100\r\n\r\n[",
		"chunks trickle":   "Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
		"a length too big": "Content-Length: 1000000\r\n\r\n" + strings.Repeat(" ", 100_000),
	} {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s", begin)
		answer, err := io.ReadAll(conn) // the server hangs up
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
		_ = conn.Close()
	}
	until(t, "memory and place are free", func() bool { return w.memory.used.Load() == 0 && w.places.taken() == 0 })
	// A busy machine may not bring a body in that little time either.
	until(t, "the next upload is taken", func() bool {
		code, _ := send(t, "http://"+address, strings.NewReader(good("a")))
		return code == 200
	})
}

func TestUpload_OutlivesBodyTimeoutInKafka(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *Config) { c.BodyTimeout = 100 * time.Millisecond })
		w.kafka.before = func(int) { time.Sleep(300 * time.Millisecond) }
		if code, _ := sendBy(t, virtually(t, w), "http://127.0.0.1:80", strings.NewReader(good("a"))); code != 200 {
			t.Errorf("%d", code)
		}
	})
}

func TestBody_BrokenOffKeepsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.serve(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n\r\n%s", good("a"))
	_ = conn.Close()
	until(t, "it is counted", func() bool { return w.metric(t, "docket_collector_refused_total", "body_broken") == 1 })
	if len(w.kafka.in(logs)) != 0 {
		t.Error("half an upload was kept")
	}
}

// A client that sends headers and no body takes none of the places.
func TestPlaces_NoneForHeadersAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.serve(t), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	body := good("a")
	fmt.Fprintf(conn, "POST /logs HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body))
	line := make([]byte, len("HTTP/1.1 100 Continue"))
	if _, err := io.ReadFull(conn, line); err != nil || string(line) != "HTTP/1.1 100 Continue" { // it reads the body
		t.Fatalf("%q, %v", line, err)
	}
	if n := w.places.taken(); n != 0 {
		t.Errorf("%d places are taken", n)
	}
	_, _ = io.WriteString(conn, body[:1])
	until(t, "it has a place", func() bool { return w.places.taken() == 1 })
	_, _ = io.WriteString(conn, body[1:])
	until(t, "it is kept, and the place is free", func() bool { return len(w.kafka.in(logs)) == 1 && w.places.taken() == 0 })
}

func TestPlaces_TooManyUploadsArePutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Uploads = 2 })
	url := w.serve(t)
	release := make(chan struct{})
	w.kafka.before = func(int) { <-release }
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			if code, _ := send(t, url, strings.NewReader(good("a"))); code != 200 {
				t.Errorf("one that had a place: %d", code)
			}
		})
	}
	until(t, "both have a place", func() bool { return w.metric(t, "docket_collector_uploads_in_flight") == 2 })
	code, header := send(t, url, strings.NewReader(good("b")))
	if code != 429 || header.Get("Retry-After") != "2" {
		t.Errorf("the third: %d, Retry-After %q", code, header.Get("Retry-After"))
	}
	close(release)
	all.Wait()
	if code, _ := send(t, url, strings.NewReader(good("b"))); code != 200 {
		t.Errorf("and afterwards %d", code)
	}
}

// bomb is so many MiB of blanks, gzipped.
func bomb(t testing.TB, mib int) string {
	t.Helper()
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	blanks := bytes.Repeat([]byte(" "), 1<<20)
	for range mib {
		_, _ = z.Write(blanks)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInflate_BombEndsAtTheLimit(t *testing.T) { //nolint:paralleltest // it measures the whole process
	w := newWorld(t)
	body := bomb(t, 64)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := w.post(t, body)
	runtime.ReadMemStats(&after)
	if a.Code != 413 || problem(t, a).Reason != reasonInflatedBytes {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if grew := after.TotalAlloc - before.TotalAlloc; grew > 32<<20 {
		t.Errorf("%d bytes were allocated for 8 MiB that are allowed", grew)
	}
	if got := w.metric(t, "docket_collector_inflated_bytes_total"); got > 8<<20+1 {
		t.Errorf("%v bytes were inflated", got)
	}
}

func TestMemory_NeverFitsIs413(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Memory = 100 << 10 })
	for name, body := range map[string]string{
		"as it comes":   strings.Repeat(" ", 200<<10) + good("a"),
		"after gunzip":  gz(strings.Repeat(" ", 200<<10) + good("a")),
		"its decisions": "[" + strings.Repeat("0,", 1000) + "0]",
	} {
		if a := w.post(t, body); a.Code != 413 || problem(t, a).Reason != reasonMemorySize {
			t.Errorf("%s: %d %s", name, a.Code, a.Body)
		}
	}
	if a := w.post(t, gz(good("a"))); a.Code != 200 {
		t.Errorf("a small one: %d %s", a.Code, a.Body)
	}
	w.memory.take(90 << 10) // others
	a := httptest.NewRecorder()
	w.ServeHTTP(a, posted(t.Context(), "/", strings.NewReader(good("a"))))
	if a.Code != 429 || problem(t, a).Reason != reasonMemory || a.Header().Get("Retry-After") == "" {
		t.Errorf("while others have it: %d %s", a.Code, a.Body)
	}
}

func TestDecisions_TooManyAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Memory = 1 << 30 })
	a := w.post(t, gz("["+strings.Repeat("0,", decision.MaxDecisions)+"0]"))
	if a.Code != 413 || problem(t, a).Reason != reasonDecisions || len(w.kafka.kept) != 0 {
		t.Errorf("%d %s", a.Code, a.Body)
	}
}

// TestMemory_BoundedAtAnyLoad is not parallel: it measures the whole process, while every upload that was let in
// waits for Kafka.
func TestMemory_BoundedAtAnyLoad(t *testing.T) { //nolint:paralleltest // it measures the whole process
	const memory, uploads = 16 << 20, 1000
	w := newWorld(t, func(c *Config) { c.Memory, c.Uploads, c.UploadBytes, c.InflatedBytes = memory, uploads, 4<<20, 64<<20 })
	var held atomic.Int64
	release := make(chan struct{})
	w.publisher = publishFunc(func(_ context.Context, records []*kgo.Record) []error {
		held.Add(1)
		<-release
		return make([]error, len(records))
	})
	var many strings.Builder
	for i := range 2000 {
		many.WriteString(good(fmt.Sprint(i)) + "\n")
	}
	bodies := []string{bomb(t, 40), gz(many.String()), many.String(), gz("[" + strings.Repeat("0,", 90_000) + "0]"),
		"[" + strings.Repeat("{},", 400) + "{}]", gz(good("small")), gz(`{"decision_id":"x","timestamp":"2026-03-01T12:00:00Z","input":[` + strings.Repeat(`{"a":1},`, 20_000) + `1]}`)}
	inUse := func() int64 {
		runtime.GC()
		runtime.GC() // also frees the memory of pools
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc) //nolint:gosec // far below
	}
	before := inUse()
	var codes [600]atomic.Int64
	var answered atomic.Int64
	var all sync.WaitGroup
	for i := range uploads {
		all.Go(func() {
			a := httptest.NewRecorder()
			w.ServeHTTP(a, posted(t.Context(), "/logs", struct{ io.Reader }{strings.NewReader(bodies[i%len(bodies)])}))
			codes[a.Code].Add(1)
			answered.Add(1)
		})
	}
	until(t, "each has its answer or waits for Kafka", func() bool { return held.Load()+answered.Load() == uploads })
	taken, grew := w.memory.used.Load(), inUse()-before
	close(release)
	all.Wait()
	t.Logf("%d wait for Kafka, %d KiB in use, %d KiB of %d taken of the budget; %d x 200, %d x 413, %d x 429", held.Load(), grew>>10, taken>>10, memory>>10,
		codes[200].Load(), codes[413].Load(), codes[429].Load())
	const beside = 8 << 20 // requests, answers, goroutines
	if taken > memory || grew > taken+beside {
		t.Errorf("%d bytes more are in use, %d of %d are taken", grew, taken, memory)
	}
	if codes[200].Load() != held.Load() || held.Load() == 0 || codes[429].Load() == 0 {
		t.Errorf("%d waited, %d x 200, %d x 413, %d x 429", held.Load(), codes[200].Load(), codes[413].Load(), codes[429].Load())
	}
	if left := w.memory.used.Load(); left != 0 {
		t.Errorf("%d bytes stay taken", left)
	}
}

// TestMemory_RoomOfDecisions has an upload of one large decision, which looks like many small ones. Its room counts until the
// upload ends.
func TestMemory_RoomOfDecisions(t *testing.T) {
	t.Parallel()
	if size := reflect.TypeFor[decision.Part]().Size(); size > eachPart {
		t.Errorf("room for a decision takes %d bytes, and %d are counted", size, eachPart)
	}
	const elements = 1000
	body := `{"decision_id":"x","timestamp":"2026-03-01T12:00:00Z","input":[` + strings.Repeat(`"`+strings.Repeat("x", 1000)+`",`, elements) + `1]}`
	w := newWorld(t)
	var taken int64
	w.publisher = publishFunc(func(_ context.Context, records []*kgo.Record) []error {
		taken = w.memory.used.Load()
		return make([]error, len(records))
	})
	a := httptest.NewRecorder()
	w.ServeHTTP(a, posted(t.Context(), "/logs", strings.NewReader(body)))
	if want := int64(len(body) + eachPart*elements); a.Code != http.StatusOK || taken < want {
		t.Errorf("%d, and %d bytes of at least %d are taken", a.Code, taken, want)
	}
}

func TestUpload_FinishedAfterHangUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, hangUp := context.WithCancel(t.Context())
	w.publisher = publishFunc(func(given context.Context, records []*kgo.Record) []error {
		hangUp()
		if given.Err() != nil {
			t.Error("what was begun is given up")
		}
		return w.kafka.Publish(given, records)
	})
	w.ServeHTTP(httptest.NewRecorder(), posted(ctx, "/logs", strings.NewReader(good("a"))))
	if len(w.kafka.in(logs)) != 1 {
		t.Error("it was not kept")
	}
}

type publishFunc func(context.Context, []*kgo.Record) []error

func (f publishFunc) Publish(ctx context.Context, records []*kgo.Record) []error {
	return f(ctx, records)
}
