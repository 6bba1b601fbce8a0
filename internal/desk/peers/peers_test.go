package peers_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"docket/internal/desk/peers"
	"docket/internal/desk/peers/target"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const readyz = `{"ready":false,"program":"consumer","joined":true,"assigned":3,"reasons":[{"reason":"database_away","code":"57P01","hint":"start it","since":"2026-03-01T11:59:00Z","partitions":["t/1","t/2"],"more_partitions":4}]}`

const exposition = `# HELP docket_build_info x
# TYPE docket_build_info gauge
docket_build_info{goversion="go1.27",program="consumer",revision="abc",version="1.2.3"} 1
# TYPE go_goroutines gauge
go_goroutines 12
# TYPE docket_kafka_bytes counter
docket_kafka_bytes{broken
# TYPE docket_consumer_lag gauge
docket_consumer_lag{lane="default",partition="0",topic="decision-logs"} 7
docket_consumer_lag{lane="urgent",partition="1",topic="decision-logs-urgent"} 0
# TYPE docket_oldest_uncommitted_seconds gauge
docket_oldest_uncommitted_seconds{lane="default",partition="0",topic="decision-logs"} 4.5
# TYPE docket_assigned_partitions gauge
docket_assigned_partitions 3
# TYPE docket_records_total counter
docket_records_total{home="row"} %d
docket_records_total{home="duplicate"} 1
docket_records_total{home="parked"} 9
# TYPE docket_spool_files gauge
docket_spool_files 2
# TYPE docket_spool_bytes gauge
docket_spool_bytes NaN
# TYPE docket_last_commit_timestamp_seconds gauge
docket_last_commit_timestamp_seconds 1772366400.5
# TYPE docket_lane_yielding gauge
docket_lane_yielding 1
# TYPE docket_lane_turns gauge
docket_lane_turns{lane="urgent",state="held"} 2
docket_lane_turns{lane="urgent",state="waiting"} 1
# TYPE docket_lane_assigned_partitions gauge
docket_lane_assigned_partitions{lane="urgent"} 2
# TYPE docket_lane_latency_seconds histogram
docket_lane_latency_seconds_bucket{lane="urgent",le="0.1"} 90
docket_lane_latency_seconds_bucket{lane="urgent",le="0.2"} 96
docket_lane_latency_seconds_bucket{lane="urgent",le="+Inf"} 100
docket_lane_latency_seconds_sum{lane="urgent"} 9
docket_lane_latency_seconds_count{lane="urgent"} 100
# TYPE docket_limit_rows gauge
docket_limit_rows{limit="all"} 500
# TYPE docket_limit_breaker gauge
docket_limit_breaker{state="closed"} 0
docket_limit_breaker{state="open"} 1
`

// program answers as a consumer does.
type program struct {
	*httptest.Server
	rows   atomic.Int64
	asked  atomic.Int64
	inside atomic.Int64
	most   atomic.Int64
	pause  chan struct{} // nil: none
	secret atomic.Bool
}

func serve(t *testing.T, pause chan struct{}) *program {
	p := &program{pause: pause}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		for now := p.inside.Add(1); ; {
			was := p.most.Load()
			if was >= now || p.most.CompareAndSwap(was, now) {
				break
			}
		}
		defer p.inside.Add(-1)
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			if r.Header.Get(name) != "" {
				p.secret.Store(true)
			}
		}
		if p.pause != nil {
			<-p.pause
		}
		if r.URL.Path == "/readyz" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, readyz)
			return
		}
		fmt.Fprintf(w, exposition, p.rows.Load())
	}))
	l, err := net.Listen("tcp4", "0.0.0.0:0") // it has many addresses
	if err != nil {
		t.Fatal(err)
	}
	_ = p.Listener.Close() // the one of loopback
	p.Listener = l
	p.Start()
	p.URL = strings.Replace(p.URL, "[::]", "127.0.0.1", 1)
	p.URL = strings.Replace(p.URL, "0.0.0.0", "127.0.0.1", 1)
	t.Cleanup(p.Close)
	return p
}

func targets(t *testing.T, texts ...string) (all []target.Target) {
	t.Helper()
	for _, text := range texts {
		one, err := target.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		all = append(all, one)
	}
	return all
}

func watch(t *testing.T, c peers.Config) *peers.Watch {
	w := peers.New(c)
	t.Cleanup(w.Close)
	return w
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestLook_ReadsBothPages(t *testing.T) {
	t.Parallel()
	p, now := serve(t, nil), &clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	p.rows.Store(100)
	w := watch(t, peers.Config{Targets: targets(t, p.URL), Now: now.Now, Within: time.Minute})
	all := w.Look(t.Context())
	if len(all) != 1 || !all[0].Seen() || all[0].Why != "" || all[0].Program() != "consumer" || all[0].Address != p.URL || p.secret.Load() {
		t.Fatalf("%+v", all)
	}
	r, f := all[0].Ready, all[0].Facts
	if r.Ready || r.Assigned != 3 || len(r.Reasons) != 1 || r.Reasons[0].Hint != "start it" || r.Reasons[0].Since == nil || r.Reasons[0].More != 4 {
		t.Errorf("%+v", r)
	}
	if f.Version != "1.2.3" || *f.Stored != 101 || *f.SpoolFiles != 2 || *f.SpoolBytes != 0 || *f.Oldest != 4.5 || f.LastCommit.UnixMilli() != 1772366400500 || f.ParkedDue != nil || f.Taken != nil {
		t.Errorf("%+v", f)
	}
	if len(f.Lags) != 2 || f.Lags[0].Records+f.Lags[1].Records != 7 || f.Breaker != "open" || f.Limits["all"] != 500 || *f.Yielding != 1 {
		t.Errorf("%+v", f)
	}
	if len(f.Lanes) != 1 || f.Lanes[0].Assigned != 2 || f.Lanes[0].Held != 2 || f.Lanes[0].Waiting != 1 || f.Lanes[0].Latency != 0.2 || f.Lanes[0].Stored != 100 || f.StoredPace != nil {
		t.Errorf("%+v", f.Lanes)
	}
	p.rows.Store(150)
	now.pass(2 * time.Second)
	if f = w.Look(t.Context())[0].Facts; f.StoredPace == nil || *f.StoredPace != 25 || *f.Lanes[0].Pace != 0 {
		t.Errorf("pace %v", f.StoredPace)
	}
	now.pass(time.Millisecond)
	if f = w.Look(t.Context())[0].Facts; f.StoredPace == nil || *f.StoredPace != 25 {
		t.Errorf("pace of a look that comes too soon: %v", f.StoredPace)
	}
	p.rows.Store(3)
	now.pass(2 * time.Second)
	if f = w.Look(t.Context())[0].Facts; f.StoredPace != nil {
		t.Errorf("pace of a program that was restarted: %v", *f.StoredPace)
	}
}

// refusing is the address of a port that is taken, so that no other test can get it, and where nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(s) })
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
}

func TestLook_SlowHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	slow, fine := serve(t, hang), serve(t, nil)
	t.Cleanup(func() { close(hang) }) // before the server closes
	w := watch(t, peers.Config{Targets: targets(t, slow.URL, fine.URL), Within: 10 * time.Second})
	for _, p := range w.Look(t.Context()) {
		if p.Address == fine.URL && !p.Seen() || p.Address == slow.URL && (p.Seen() || p.Why != "it did not answer in time") {
			t.Errorf("%+v", p)
		}
	}
}

// TestLook_NotSeenSaysWhy: nothing of a foreign answer is believed.
func TestLook_NotSeenSaysWhy(t *testing.T) {
	t.Parallel()
	fine := serve(t, nil)
	answer := func(status int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	away := httptest.NewServer(http.RedirectHandler(fine.URL+"/readyz", http.StatusFound))
	t.Cleanup(away.Close)
	want := map[string]string{
		refusing(t): "it refuses connections", away.URL: "it answers with status 302", "dns:none.invalid:80": "the name has no address",
		answer(200, "hello planted"):                       "it answers nothing that Docket would",
		answer(404, ""):                                    "it answers with status 404",
		answer(200, strings.Repeat("docket_x 1\n", 5e5)):   "it answers nothing that Docket would",
		answer(200, `{"program":""}`):                      "it answers nothing that Docket would",
		answer(503, "# TYPE docket_x gauge\ndocket_x 1\n"): "it answers nothing that Docket would",
	}
	var texts []string
	for text := range want {
		texts = append(texts, text)
	}
	w := watch(t, peers.Config{Targets: targets(t, append(texts, fine.URL)...), Within: time.Minute,
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{IsNotFound: true}
		}})
	before := fine.asked.Load()
	for _, p := range w.Look(t.Context()) {
		if p.Address == fine.URL {
			if !p.Seen() || fine.asked.Load()-before != 2 {
				t.Errorf("a redirect was followed: %+v", p)
			}
			continue
		}
		if p.Seen() || p.Why != want[p.Address] && !(strings.Contains(p.Why, "too large") && strings.Contains(want[p.Address], "nothing")) {
			t.Errorf("%s: %q, want %q", p.Address, p.Why, want[p.Address])
		}
	}
}

// TestLook_HalfAnAnswerSaysWhy: one of the two pages answers, so the program is known, and the other is missing.
func TestLook_HalfAnAnswerSaysWhy(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{"/readyz": "/metrics: it answers with status 500", "/metrics": "/readyz: it answers with status 500"} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != path:
				w.WriteHeader(http.StatusInternalServerError)
			case path == "/readyz":
				fmt.Fprint(w, readyz)
			default:
				fmt.Fprintf(w, exposition, 1)
			}
		}))
		t.Cleanup(s.Close)
		w := watch(t, peers.Config{Targets: targets(t, s.URL), Within: time.Minute})
		if p := w.Look(t.Context())[0]; p.Why != want || !p.Seen() || p.Program() != "consumer" {
			t.Errorf("%s alone: %+v", path, p)
		}
	}
}

// TestLook_PanicEndsNothing: the program is not seen, and the log has the place alone.
func TestLook_PanicEndsNothing(t *testing.T) {
	t.Parallel()
	p := serve(t, nil)
	at := func() time.Time { panic("planted-value") }
	for name, c := range map[string]peers.Config{
		"lookup": {Targets: targets(t, "dns:consumers.example:80"), Lookup: func(context.Context, string, string) ([]netip.Addr, error) { panic("planted-value") }},
		"look":   {Targets: targets(t, p.URL), Now: at},
		"answer": {Targets: targets(t, p.URL)},
	} {
		var log bytes.Buffer
		c.Within, c.Log = time.Minute, zerolog.New(zerolog.SyncWriter(&log))
		w := watch(t, c)
		if name == "answer" {
			peers.Break(w, func() { panic("planted-value") })
		}
		if all := w.Look(t.Context()); len(all) != 1 || all[0].Seen() || all[0].Why != "the desk could not look at it; its log says where" {
			t.Errorf("%s: %+v", name, all)
		}
		if text := log.String(); !strings.Contains(text, "TestLook_PanicEndsNothing") || strings.Contains(text, "planted") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestLook_NameWithManyAddresses(t *testing.T) {
	t.Parallel()
	p := serve(t, nil)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.URL, "http://"))
	loop := netip.MustParseAddr("127.0.0.1")
	w := watch(t, peers.Config{Targets: targets(t, "dns:consumers.example:"+port), Within: 5 * time.Second, Lookup: func(_ context.Context, _, host string) ([]netip.Addr, error) {
		return []netip.Addr{loop, netip.MustParseAddr("127.0.0.2"), loop}, nil
	}})
	all := w.Look(t.Context())
	if len(all) != 2 || all[0].Address != "127.0.0.1:"+port || !all[0].Seen() || all[1].Address != "127.0.0.2:"+port {
		t.Errorf("%+v", all)
	}
}

// TestLook_EachProgramOnce: a name with addresses of both kinds, and a target that is named twice.
func TestLook_EachProgramOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody is asked
	four, six, none := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), &net.DNSError{IsNotFound: true}
	both := map[string]netip.Addr{"ip4": four, "ip6": six, "ip": four}
	for name, c := range map[string]struct {
		targets []string
		lookup  func(network string) ([]netip.Addr, error)
		want    string
	}{
		"both kinds": {[]string{"dns:a.example:80"}, func(network string) ([]netip.Addr, error) { return []netip.Addr{both[network]}, nil }, "127.0.0.1:80"},
		"ip6 alone": {[]string{"dns:a.example:80"}, func(network string) ([]netip.Addr, error) {
			if network == "ip6" {
				return []netip.Addr{six}, nil
			}
			return nil, none
		}, "[::1]:80"},
		"none":        {[]string{"dns:a.example:80", "dns:a.example:80"}, func(string) ([]netip.Addr, error) { return nil, none }, "dns:a.example:80"},
		"named twice": {[]string{"http://127.0.0.1:80", "dns:a.example:80", "http://127.0.0.1:80/", "dns:a.example:80"}, func(string) ([]netip.Addr, error) { return []netip.Addr{four}, nil }, "http://127.0.0.1:80"},
	} {
		w := watch(t, peers.Config{Targets: targets(t, c.targets...), Lookup: func(_ context.Context, network, _ string) ([]netip.Addr, error) { return c.lookup(network) }})
		var got []string
		for _, p := range w.Look(ctx) {
			got = append(got, p.Address)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// TestLook_AsksFewAtOnce also ends with its context.
func TestLook_AsksFewAtOnce(t *testing.T) {
	t.Parallel()
	pause := make(chan struct{})
	p := serve(t, pause)
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(p.URL, "http://"))
	var addresses []netip.Addr
	for i := range 40 {
		addresses = append(addresses, netip.AddrFrom4([4]byte{127, 0, 0, byte(i + 1)}))
	}
	w := watch(t, peers.Config{Targets: targets(t, "dns:many.example:"+port), Within: time.Minute, Lookup: func(context.Context, string, string) ([]netip.Addr, error) { return addresses, nil }})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []peers.Peer)
	go func() { done <- w.Look(ctx) }()
	for tick := time.Tick(time.Millisecond); p.inside.Load() < 16; {
		<-tick
	}
	cancel()
	all := <-done
	close(pause)
	if len(all) != 40 || p.most.Load() > 16 {
		t.Errorf("%d at once of %d", p.most.Load(), len(all))
	}
	for _, one := range all {
		if one.Seen() || one.Why == "" {
			t.Errorf("%+v", one)
		}
	}
}

func TestLook_TooManyAddresses(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody is asked
	w := watch(t, peers.Config{Targets: targets(t, "dns:many.example:80"), Lookup: func(context.Context, string, string) (all []netip.Addr, _ error) {
		for i := range 300 {
			all = append(all, netip.AddrFrom4([4]byte{127, 0, byte(i / 250), byte(i % 250)}))
		}
		return all, nil
	}})
	if all := w.Look(ctx); len(all) != 129 || all[128].Why == "" {
		t.Errorf("%d", len(all))
	}
}

// TestLook_LargeAnswerIsCut: an answer without end is read up to the limit.
func TestLook_LargeAnswerIsCut(t *testing.T) {
	t.Parallel()
	var sent atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		line := strings.Repeat("x", 64<<10)
		for range 1000 { // 64 MB
			n, err := fmt.Fprint(w, line)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	w := watch(t, peers.Config{Targets: targets(t, s.URL), Within: time.Minute})
	if all := w.Look(t.Context()); all[0].Seen() || all[0].Why != "its answer is too large" || sent.Load() > 60<<20 {
		t.Errorf("%+v after %d bytes", all[0], sent.Load())
	}
}

// TestFacts_OfACollector: every home counts as received, and only the topic as taken.
func TestFacts_OfACollector(t *testing.T) {
	t.Parallel()
	f, err := peers.FactsOf([]byte(`# TYPE docket_build_info gauge
docket_build_info{program="collector",version="1.2.3"} 1
# TYPE docket_collector_decisions_total counter
docket_collector_decisions_total{home="topic"} 900
docket_collector_decisions_total{home="dead_letter"} 7
# TYPE docket_collector_refused_total counter
docket_collector_refused_total{reason="kafka"} 3
docket_collector_refused_total{reason="memory"} 1
`))
	if err != nil || f.Taken == nil || *f.Taken != 900 || f.Received == nil || *f.Received != 907 || f.Refused == nil || *f.Refused != 4 {
		t.Errorf("%+v, %v", f, err)
	}
}
