//go:build integration

package load

import (
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/testkit/testenv"
)

// redis starts a server for the scenario and returns its URL.
func (y *system) redis() string {
	y.t.Helper()
	return "redis://" + testenv.OwnRedisOnHost(y.t).Addr()
}

// redisCluster starts a cluster of three nodes for the scenario and returns its URL.
func (y *system) redisCluster() string {
	y.t.Helper()
	nodes := testenv.OwnRedisCluster(y.t).Addrs()
	return "redis://" + nodes[0] + "?addr=" + strings.Join(nodes[1:], "&addr=")
}

// pings sends PING to a Redis 20 times a second, in about the rhythm of the workers. Its end returns how many of a hundred took
// longer than a millisecond. That is what the machine leaves for calls to Redis.
func (y *system) pings(at string) (slow func() float64) {
	y.t.Helper()
	of, err := url.Parse(at)
	y.must(err)
	conn, err := (&net.Dialer{}).DialContext(y.t.Context(), "tcp", of.Host)
	y.must(err)
	y.t.Cleanup(func() { _ = conn.Close() })
	stop, over := make(chan struct{}), make(chan struct{})
	late, all := 0, 0
	var failure error
	go func() {
		defer close(over)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		answer := make([]byte, len("+PONG\r\n"))
		for failure == nil {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			from := time.Now()
			if failure = conn.SetDeadline(from.Add(10 * time.Second)); failure != nil {
				return
			}
			if _, failure = io.WriteString(conn, "PING\r\n"); failure == nil {
				_, failure = io.ReadFull(conn, answer)
			}
			if all++; time.Since(from) > time.Millisecond {
				late++
			}
		}
	}()
	return func() float64 {
		close(stop)
		<-over
		y.must(failure)
		return 100 * float64(late) / float64(max(all, 1))
	}
}

// has reports whether a list by comma has a word.
func has(list, word string) bool { return slices.Contains(strings.Split(list, ","), word) }

// lookUp asks the API for a decision by its id, for some seconds, and returns how long each answer took.
func (y *system) lookUp(desk *program, token string, d time.Duration) (took []time.Duration, failed int) {
	y.t.Helper()
	var newest []string // asked for once a second, as that takes a part of the machine, too
	var asked time.Time
	for end := time.Now().Add(d); time.Now().Before(end); y.pause(10 * time.Millisecond) {
		if time.Since(asked) > time.Second {
			rows, err := y.pool.Query(y.t.Context(), "SELECT decision_id FROM decision_logs ORDER BY stored_at DESC LIMIT 100")
			y.must(err)
			newest, err = pgx.CollectRows(rows, pgx.RowTo[string])
			y.must(err)
			asked = time.Now()
		}
		id := newest[rand.IntN(len(newest))]
		from := time.Now()
		resp, err := desk.get(desk.api+"/api/v1/decisions/"+id, "Authorization", "Bearer "+token)
		y.must(err)
		if resp.StatusCode != http.StatusOK {
			failed++
		}
		y.must(resp.Body.Close())
		took = append(took, time.Since(from))
	}
	y.t.Logf("look-ups by id: %d, p50 %.1f ms, p95 %.1f ms, p99 %.1f ms", len(took), Quantile(took, 0.5), Quantile(took, 0.95), Quantile(took, 0.99))
	return took, failed
}
