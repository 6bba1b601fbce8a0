//go:build integration

package redis

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"

	"docket/internal/consumer/limit"
	"docket/internal/testkit/testenv"
)

// served returns a limit of the test's own group on the server. A call that has reached the server is not given up: its tokens would be
// taken, and nobody would know.
func served(t *testing.T, url string, plan limit.Plan) *Limit {
	t.Helper()
	l, err := NewLimit(Config{URL: url, Patience: time.Minute}, LimitConfig{Group: t.Name() + url, Plan: plan}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// A call that failed for the moment may take another try. Only a server that is away for a minute fails the test.
func (l *Limit) surely(t *testing.T, low bool, n int) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		a, err := l.run(ctx, low, n, 1)
		if err == nil {
			return a
		}
		if reply := (redis.Error)(nil); ctx.Err() != nil || errors.As(err, &reply) && replyCode(reply.Error()) == "NOPERM" {
			t.Fatal(err)
		}
	}
}

// exactly has ten clients take from one limit for a while, and compares each answer with the exact simulator. The
// clients tell no time: the answers have the server's.
func exactly(t *testing.T, url string) {
	t.Helper()
	plan := limit.NewPlan(450, 350, 45, limit.Calendar{{From: 0, To: 12, Low: 200}, {From: 12, To: 24, Low: 300}})
	type call struct {
		answer
		low bool
		n   int
	}
	const clients, each = 10, 150
	var (
		all   sync.WaitGroup
		calls [clients][]call
	)
	for i := range clients {
		l := served(t, url, plan)
		all.Go(func() {
			for k := range each {
				c := call{low: (i+k)%3 != 0, n: 1 + (7*i+k)%60}
				c.answer = l.surely(t, c.low, c.n)
				calls[i] = append(calls[i], c)
			}
		})
	}
	all.Wait()
	order := slices.Concat(calls[:]...)
	slices.SortStableFunc(order, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	sim := &simulated{plan: plan}
	var grants []granted
	for i, c := range order {
		if i > 0 && order[i-1].at == c.at {
			continue // two calls in one microsecond: their order is not known
		}
		if n, wait := sim.take(c.at, c.low, c.n, 1); n != c.granted || wait != c.wait {
			t.Fatalf("call %d at %d, low %v, %d rows: granted %d, wait %v; the simulator grants %d, wait %v", i, c.at, c.low, c.n, c.granted, c.wait, n, wait)
		}
		if c.granted > 0 {
			grants = append(grants, granted{c.at, c.granted, c.low})
		}
	}
	if n := most(grants, false); n > plan.All+plan.Burst || n == 0 {
		t.Errorf("%d rows in a second", n)
	}
}

func TestRedis_TenClientsAsTheSimulator(t *testing.T) {
	t.Parallel()
	exactly(t, "redis://"+testenv.OwnRedis(t).Addr())
}

func TestRedisCluster_TenClientsAsTheSimulator(t *testing.T) {
	t.Parallel()
	addrs := testenv.OwnRedisCluster(t).Addrs()
	exactly(t, "redis://"+addrs[0]+"?addr="+addrs[1]+"&addr="+addrs[2])
	// A node that is not told of the others is found, too: each bucket is on one of the three.
	exactly(t, "redis://"+addrs[2]+"?addr="+addrs[2])
}

// fails asks until a call fails with this code, and then expects that the urgent and the low lanes learn of it.
func fails(t *testing.T, l *Limit, code string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		_, _, err := l.Ask(ctx, true, 1, 1)
		if last := l.failure.Load(); err != nil && last != nil && *last == code {
			return
		}
	}
	t.Fatalf("no call failed with %s", code)
}

// back asks until a call is answered. The breaker must be closed.
func back(t *testing.T, l *Limit) answer { return l.surely(t, true, 1) }

func TestRedis_ReadOnlyIsAway(t *testing.T) {
	t.Parallel()
	r := testenv.OwnRedis(t)
	l := served(t, "redis://"+r.Addr(), limit.NewPlan(450, 0, 0, nil))
	back(t, l)
	r.Command(t, "replicaof", "127.0.0.1", "1")
	fails(t, l, "READONLY")
	r.Command(t, "replicaof", "no", "one")
	back(t, l)
}

func TestRedis_OutOfMemoryIsAway(t *testing.T) {
	t.Parallel()
	r := testenv.OwnRedis(t, "--maxmemory", "8mb", "--maxmemory-policy", "noeviction")
	l := served(t, "redis://"+r.Addr(), limit.NewPlan(450, 0, 0, nil))
	back(t, l)
	r.Command(t, "eval", "for i = 1, 2000 do redis.call('set', 'x' .. i, string.rep('x', 8192)) end", "0")
	fails(t, l, "OOM")
	r.Command(t, "flushall")
	back(t, l)
}

func TestRedis_EmptyAfterARestart(t *testing.T) {
	t.Parallel()
	r := testenv.OwnRedis(t)
	plan := limit.NewPlan(450, 350, 45, nil)
	l := served(t, "redis://"+r.Addr(), plan)
	var grants []granted
	take := func() {
		a := l.surely(t, true, 45)
		if a.granted > 0 {
			grants = append(grants, granted{a.at, a.granted, true})
		}
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		take()
	}
	r.Kill(t)
	r.Start(t)
	first := l.surely(t, true, 45)
	if first.granted != 0 {
		t.Errorf("an empty server granted %d at once", first.granted)
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
		take()
	}
	if n := most(grants, true); n > plan.Low+plan.Burst || n < plan.Low/2 {
		t.Errorf("%d rows in a second, low limit %d, burst %d", n, plan.Low, plan.Burst)
	}
}

// A server that does not answer costs no more than the deadline, and the breaker spares it soon. The limit has the patience of the
// programs. A pause of this machine makes a call longer: the shortest of them counts.
func TestRedis_SilentOpensTheBreaker(t *testing.T) {
	t.Parallel()
	r := testenv.OwnRedis(t)
	l, err := NewLimit(Config{URL: "redis://" + r.Addr()}, LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	back(t, l)
	r.Pause(t)
	shortest := time.Hour
	for tries := 0; l.State() != Open; tries++ {
		began := time.Now()
		if _, _, err := l.Ask(t.Context(), false, 1, 1); codeOf(err) != "timeout" || tries > 10*calls {
			t.Fatalf("call %d: %v; the breaker is %s", tries, err, l.State())
		}
		shortest = min(shortest, time.Since(began))
	}
	if shortest < Deadline/2 || shortest > 20*Deadline {
		t.Errorf("the shortest call took %v", shortest)
	}
	r.Unpause(t)
	back(t, l)
}

// A connection that is cut in between costs one call at most.
func TestRedis_CutConnection(t *testing.T) {
	t.Parallel()
	r := testenv.Redis(t)
	var (
		mu   sync.Mutex
		open []net.Conn
	)
	l, err := NewLimit(Config{URL: "redis://" + r.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			open = append(open, conn)
		}
		return conn, err
	}}, LimitConfig{Group: t.Name(), Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 5 {
		back(t, l)
		mu.Lock()
		for _, conn := range open {
			_ = conn.Close() // fails only for one that was closed before
		}
		open = nil
		mu.Unlock()
	}
	back(t, l)
}

// A wrong password is a failure like others, and is not shown.
func TestRedis_WrongPassword(t *testing.T) {
	t.Parallel()
	r := testenv.OwnRedis(t, "--requirepass", "hunter2")
	l := served(t, "redis://:hunter3@"+r.Addr(), limit.NewPlan(450, 0, 0, nil))
	fails(t, l, "WRONGPASS")
	if _, _, err := l.Ask(t.Context(), true, 1, 1); err == nil || strings.Contains(err.Error(), "hunter") {
		t.Errorf("%v", err)
	}
	back(t, served(t, "redis://:hunter2@"+r.Addr(), limit.NewPlan(450, 0, 0, nil)))
}

// BenchmarkRedis_Ask measures a call with a server on this machine.
func BenchmarkRedis_Ask(b *testing.B) {
	r := testenv.Redis(b)
	l := newLimit(b, r.Addr(), limit.NewPlan(1_000_000_000, 0, 0, nil))
	defer l.Close()
	for b.Loop() {
		if _, _, err := l.Ask(b.Context(), true, 500, 1); err != nil {
			b.Fatal(err)
		}
	}
}

func TestRedis_LookDescribes(t *testing.T) {
	t.Parallel()
	r := testenv.OwnRedis(t, "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Look(ctx, Config{URL: "redis://" + r.Addr()}, "docket")
	if err != nil || !strings.HasPrefix(s.Version, "7.") || s.Role != "master" || s.Policy != "allkeys-lru" || s.MaxMemory != 64<<20 || s.Cluster != "" || s.Took <= 0 {
		t.Fatalf("%+v, %v", s, err)
	}
	if s.Ahead.Abs() > time.Minute { // the same clock
		t.Errorf("its clock is %v ahead", s.Ahead)
	}
	if left := strings.TrimSpace(r.Command(t, "keys", "*")); left != "" {
		t.Errorf("keys %q are left", left)
	}
	r.Command(t, "replicaof", "127.0.0.1", "1")
	if _, err := Look(ctx, Config{URL: "redis://" + r.Addr()}, "docket"); err == nil || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("a replica: %v", err)
	}
}

func TestRedisCluster_LookDescribes(t *testing.T) {
	t.Parallel()
	addrs := testenv.OwnRedisCluster(t).Addrs()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := Look(ctx, Config{URL: "redis://" + addrs[0] + "?addr=" + addrs[1]}, "docket")
	if err != nil || s.Cluster != "ok" || s.Role != "master" {
		t.Fatalf("%+v, %v", s, err)
	}
	// One of these groups has its buckets on another node than the one that is named.
	for _, group := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		_, err = Look(ctx, Config{URL: "redis://" + addrs[0]}, group)
		if err != nil {
			break
		}
	}
	if fault := (*FaultError)(nil); !errors.As(err, &fault) || fault.Code != "MOVED" {
		t.Errorf("a node without the others: %v", err)
	}
}

// The rights of docs/security.md are enough for programs and for the check, on one node and on a cluster.
func TestRedis_RightsOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	rights := regexp.MustCompile(`(?m)^ACL SETUSER docket on >PASSWORD (.*)$`).FindStringSubmatch(string(page))
	if rights == nil {
		t.Fatal("docs/security.md has no rights for Redis")
	}
	user := append([]string{"acl", "setuser", "docket", "on", ">hunter2"}, strings.Fields(rights[1])...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := testenv.OwnRedis(t)
	r.Command(t, user...)
	cluster := testenv.OwnRedisCluster(t)
	cluster.Command(t, user...)
	addrs := cluster.Addrs()
	for _, url := range []string{"redis://docket:hunter2@" + r.Addr(), "redis://docket:hunter2@" + addrs[0] + "?addr=" + addrs[1] + "&addr=" + addrs[2]} {
		l, err := NewLimit(Config{URL: url, Patience: time.Minute}, LimitConfig{Group: "g", Plan: limit.NewPlan(450, 0, 0, nil)}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		back(t, l)
		if _, err := Look(ctx, Config{URL: url}, "g"); err != nil {
			t.Errorf("the check: %v", errors.Unwrap(err))
		}
	}
}
