package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"docket/internal/consumer/limit"
)

// fatal is what a test and a run of rapid have.
type fatal interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newLimit(t fatal, addr string, plan limit.Plan) *Limit {
	t.Helper()
	l, err := NewLimit(Config{URL: "redis://" + addr, Patience: time.Minute}, LimitConfig{Group: "docket", Plan: plan}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func serve(t fatal) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	return m
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestLimit_AsTheSimulator(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	rapid.Check(t, func(t *rapid.T) {
		m.FlushAll()
		all := rapid.SampledFrom([]int{2, 7, 450, 4999, 1_000_000_000}).Draw(t, "all")
		plans := []limit.Plan{
			limit.NewPlan(all, rapid.IntRange(1, all-1).Draw(t, "low"), rapid.IntRange(1, all).Draw(t, "burst"), limit.Calendar{{From: 23, To: 1, Low: 1}, {From: 13, To: 14, Low: max(1, all/2)}}),
			limit.NewPlan(max(2, all/2), 0, 0, nil), // a process that was restarted with other settings
		}
		var limits []*Limit
		for _, p := range plans {
			l := newLimit(t, m.Addr(), p)
			defer l.Close()
			limits = append(limits, l)
		}
		sim := &simulated{}
		now := noon
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			step := rapid.SampledFrom([]int64{1, 50_000, 500_000, 2_000_000, 1_800_000_000}).Draw(t, "span")
			now = now.Add(time.Duration(rapid.Int64Range(-step/5, step).Draw(t, "µs")) * time.Microsecond)
			m.SetTime(now)
			which := 0
			if rapid.IntRange(0, 9).Draw(t, "restarted") == 0 {
				which = 1
			}
			low, n, least := rapid.Bool().Draw(t, "low"), rapid.IntRange(1, 2*all).Draw(t, "rows"), rapid.IntRange(0, all).Draw(t, "least")
			sim.plan = plans[which]
			want, wait := sim.take(now.UnixMicro(), low, n, least)
			a, err := limits[which].run(context.Background(), low, n, least)
			if err != nil || a.granted != want || a.wait != wait || a.at != now.UnixMicro() {
				t.Fatalf("%v: granted %d, wait %v at %d, want %d, %v at %d (%v)", now, a.granted, a.wait, a.at, want, wait, now.UnixMicro(), err)
			}
			if low, ok := plans[which].Calendar.At(now); ok && a.low != low || !ok && a.low != plans[which].Low {
				t.Fatalf("low limit %d at %v", a.low, now)
			}
		}
	})
}

// In no second are more granted than the limit and the burst, also while the server loses its data and its clock is set
// back. After a wait the least is there.
func TestLimit_NeverBeyondLimitAndBurst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.IntRange(2, 2000).Draw(t, "all")
		sim := &simulated{plan: limit.NewPlan(all, rapid.IntRange(1, all-1).Draw(t, "low"), rapid.IntRange(1, all).Draw(t, "burst"), nil)}
		var (
			grants []granted
			since  int64 // real time
			offset int64 // of the server's clock
		)
		for range rapid.IntRange(1, 300).Draw(t, "calls") {
			since += rapid.Int64Range(0, 100_000).Draw(t, "µs")
			switch rapid.IntRange(0, 30).Draw(t, "event") {
			case 0:
				sim.buckets = [2]simulatedBucket{}
			case 1:
				offset -= rapid.Int64Range(0, 5_000_000).Draw(t, "back")
			}
			now := noon.UnixMicro() + since + offset
			low, n := rapid.Bool().Draw(t, "low"), rapid.IntRange(1, 2*all).Draw(t, "rows")
			got, wait := sim.take(now, low, n, 1)
			if got > 0 {
				grants = append(grants, granted{since, got, low})
			} else if wait < time.Second {
				if got, _ := sim.clone().take(now+wait.Microseconds(), low, n, 1); got == 0 && offset == 0 {
					t.Fatalf("nothing after the wait of %v", wait)
				}
			}
		}
		if n := most(grants, false); n > all+sim.plan.Burst {
			t.Fatalf("%d rows in a second, limit %d, burst %d", n, all, sim.plan.Burst)
		}
		if n := most(grants, true); n > sim.plan.Low+sim.plan.Burst {
			t.Fatalf("%d low rows in a second, low limit %d, burst %d", n, sim.plan.Low, sim.plan.Burst)
		}
	})
}

func (s *simulated) clone() *simulated { c := *s; return &c }

func TestLimit_EmptyLowBucketCostsUrgentNothing(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	l := newLimit(t, m.Addr(), limit.NewPlan(450, 1, 45, nil))
	defer l.Close()
	m.SetTime(noon)
	take := func(low bool, n int) int {
		granted, _, err := l.Ask(t.Context(), low, n, 1)
		if err != nil {
			t.Fatal(err)
		}
		return granted
	}
	take(true, 1)
	m.SetTime(noon.Add(100 * time.Millisecond))
	for range 5 {
		if n := take(true, 45); n != 0 {
			t.Fatalf("granted %d of the low limit", n)
		}
	}
	if n := take(false, 100); n != 45 {
		t.Errorf("the urgent lane got %d of 45", n)
	}
}

func TestLimit_KeysOfOneSlotExpire(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	l := newLimit(t, m.Addr(), limit.NewPlan(450, 0, 0, nil))
	defer l.Close()
	if _, _, err := l.Ask(t.Context(), true, 1, 1); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"{docket:docket}:all", "{docket:docket}:low"} {
		if ttl := m.TTL(key); ttl != time.Hour {
			t.Errorf("%s expires after %v", key, ttl)
		}
	}
	if keys := m.Keys(); len(keys) != 2 {
		t.Errorf("keys %q", keys)
	}
}

func TestLimit_BreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	var buffer strings.Builder
	var failed, fine atomic.Int64
	l, err := NewLimit(Config{URL: "redis://u:hunter2@" + m.Addr(), Patience: time.Minute}, LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil), Called: func(_ time.Duration, ok bool) {
		if ok {
			fine.Add(1)
		} else {
			failed.Add(1)
		}
	}}, zerolog.New(&buffer))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m.RequireUserAuth("u", "hunter2")
	ask := func() error { _, _, err := l.Ask(t.Context(), true, 1, 1); return err }
	for range 5 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	m.SetError("OOM command not allowed when used memory > 'maxmemory': " + "hunter2")
	for i := range 5 {
		if err := ask(); err == nil {
			t.Fatal("no error")
		}
		if open := l.State() == Open; open != (i == 4) {
			t.Fatalf("after %d failures of %d calls it is %s", i+1, i+6, l.State())
		}
	}
	m.SetError("")
	for range 20 {
		if ask() == nil {
			t.Fatal("the open breaker let a call through")
		}
	}
	if fine.Load() != 5 || failed.Load() != 5 {
		t.Errorf("told of %d fine calls and %d failed ones", fine.Load(), failed.Load())
	}
	l.Close() // its trials write to the log, too
	if text := buffer.String(); !strings.Contains(text, `"code":"OOM"`) || !strings.Contains(text, "limits away") || strings.Contains(text, "hunter2") {
		t.Errorf("log %s", text)
	}
}

// A caller that gives up tells nothing of Redis.
func TestLimit_EndedCallsAreNoFailures(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	l := newLimit(t, m.Addr(), limit.NewPlan(450, 0, 0, nil))
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 30 {
		if _, _, err := l.Ask(ctx, false, 1, 1); !errors.Is(err, errEnded) {
			t.Fatal(err)
		}
	}
	if l.State() != Closed {
		t.Errorf("the breaker is %s", l.State())
	}
}

// A server that takes connections and never answers costs a call its deadline, and not that of a read.
func TestLimit_SilentServerCostsTheDeadline(t *testing.T) {
	t.Parallel()
	const patience, mostTries = 10 * time.Millisecond, 20
	silent := func(context.Context, string, string) (net.Conn, error) {
		far, near := net.Pipe()
		go func() { _, _ = io.Copy(io.Discard, far) }() // it ends when the client closes its end
		return near, nil
	}
	l, err := NewLimit(Config{URL: "redis://nowhere:1", Dialer: silent, Patience: patience}, LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for try := 1; ; try++ { // a busy machine is late, but not each time
		began := time.Now()
		_, err := l.call(t.Context(), false, 1, 1)
		took := time.Since(began)
		if code := *l.failure.Load(); err == nil || code != "timeout" || took < patience/2 {
			t.Fatalf("%v, code %s after %v", err, code, took)
		}
		if took < time.Second/2 {
			return
		}
		if try == mostTries {
			t.Fatalf("took %v", took)
		}
	}
}

func TestLimit_WrongURLShowsNothing(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://u:hunter2%@h", "http://u:hunter2@h", "redis://u:hunter2@h?x=1", "redis://u:hunter2@h/9?addr=b:1"} {
		l, err := NewLimit(Config{URL: url}, LimitConfig{Plan: limit.NewPlan(2, 0, 0, nil)}, zerolog.Nop())
		if err == nil {
			l.Close()
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v", err)
		}
		if err == nil && !strings.Contains(url, "addr") {
			t.Errorf("%s was taken", url)
		}
	}
}

// A new password is read for each new connection.
func TestLimit_FreshPassword(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	m.RequireUserAuth("u", "new")
	l, err := NewLimit(Config{URL: "redis://u:old@" + m.Addr(), Patience: time.Minute, Fresh: func() (string, error) { return "redis://u:new@elsewhere:1", nil }},
		LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, _, err := l.Ask(t.Context(), false, 1, 1); err != nil {
		t.Fatal(err)
	}
}

// A file that cannot be read, or is half-written, leaves the last readable user and password in use.
func TestCredentials_LastReadable(t *testing.T) {
	t.Parallel()
	m := serve(t)
	defer m.Close()
	m.RequireUserAuth("u", "new")
	now, failed := "redis://u:new@elsewhere:1", error(nil)
	cfg := Config{URL: "redis://u:old@" + m.Addr(), Patience: time.Minute, Fresh: func() (string, error) { return now, failed }}
	l, err := NewLimit(cfg, LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// A cut connection is replaced by a new one, which asks for the password again.
	connects := func(what string) {
		t.Helper()
		m.Close()
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
		m.RequireUserAuth("u", "new")
		for range 2 { // the first may find the old connection cut
			if _, _, err = l.Ask(t.Context(), false, 1, 1); err == nil {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	connects("a readable file")
	now, failed = "redis://u:old@elsewhere:1", errors.New("the file cannot be read")
	connects("a file that cannot be read")
	now, failed = "redis://u:\x7f", nil
	connects("a half-written file")
}

// A file may have any beginning of its new content: the user and the password are the last ones or the new ones.
func TestCredentials_EachBeginning(t *testing.T) {
	t.Parallel()
	const whole = "redis://user:new@redis.example:6379/0"
	for i := range len(whole) + 1 {
		l := newLogin(Config{URL: "redis://user:old@redis.example:6379/0", Fresh: func() (string, error) { return whole[:i], nil }})
		user, password, err := l.credentials(t.Context())
		want := "old"
		if i > strings.IndexByte(whole, '@') {
			want = "new"
		}
		if user != "user" || password != want || err != nil {
			t.Errorf("%q: %q, %q, %v", whole[:i], user, password, err)
		}
	}
}

func TestReplyCode_OnlyTheCode(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]string{"OOM x": "OOM", "READONLY You": "READONLY", "secret": "ERR", "": "ERR", "ERR user_script:1": "ERR", "LONGERTHANSIXTEENLETTERS x": "ERR"} {
		if got := replyCode(reply); got != want {
			t.Errorf("%q: %s, want %s", reply, got, want)
		}
	}
}

// BenchmarkScript measures a call without a network.
func BenchmarkLimit_Ask(b *testing.B) {
	m := miniredis.RunT(b)
	l := newLimit(b, m.Addr(), limit.NewPlan(1_000_000_000, 0, 0, nil))
	defer l.Close()
	for b.Loop() {
		if _, _, err := l.Ask(b.Context(), true, 500, 1); err != nil {
			b.Fatal(fmt.Sprint(err))
		}
	}
}
