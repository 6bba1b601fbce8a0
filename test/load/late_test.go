//go:build integration

package load

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/programs/desk"
	"docket/internal/service/config"
	"docket/internal/testkit/testenv"
)

// lateBy is how late Kafka answers the desk of [lateKafka].
const lateBy = time.Second

// lateKafka asks a desk for decisions while each answer that Kafka gives it comes a second late. The consumer is not
// slowed down: the reader is measured.
func lateKafka(y *system) []Bound {
	y.consume()
	const token = "a-token-of-an-auditor"
	p := y.lateDesk(token)
	later := y.offering(byDefault, 200)
	y.until("the first decisions are stored", func() bool { return y.lane(byDefault) > 200 })
	y.until("the desk says until when its answers are complete", func() bool { return y.completeUntil(p, token) })
	lookups, failed := y.lookUp(p, token, length(20*time.Second))
	var searches []time.Duration
	said := 0
	for end := time.Now().Add(length(20 * time.Second)); time.Now().Before(end); y.pause(10 * time.Millisecond) {
		from := time.Now()
		if y.completeUntil(p, token) {
			said++
		}
		searches = append(searches, time.Since(from))
	}
	later.end()
	y.settled(later)
	y.t.Logf("searches: %d, p50 %.1f ms, p95 %.1f ms", len(searches), Quantile(searches, 0.5), Quantile(searches, 0.95))
	return []Bound{
		AtMost("p95 of a look-up by id", Quantile(lookups, 0.95), 100, "ms").ByTime(),
		AtMost("p95 of a search", Quantile(searches, 0.95), 100, "ms").ByTime(),
		Exactly("look-ups that failed", float64(failed), 0, "look-ups"),
		AtLeast("share of searches that said until when they are complete", float64(said)/float64(len(searches)), 0.99, "").ByTime(),
	}
}

// completeUntil asks for the newest decisions, and reports whether the answer says until when it is complete.
func (y *system) completeUntil(p *program, token string) bool {
	y.t.Helper()
	resp, err := p.get(p.api+"/api/v1/decisions?limit=20", "Authorization", "Bearer "+token)
	y.must(err)
	defer func() { _ = resp.Body.Close() }() // only read
	var body struct {
		Until *time.Time `json:"complete_until"`
	}
	y.must(json.NewDecoder(resp.Body).Decode(&body))
	return resp.StatusCode == http.StatusOK && body.Until != nil
}

// lateDesk runs a desk in this process, with a Kafka that answers late.
func (y *system) lateDesk(token string) *program {
	y.t.Helper()
	addr, err := testenv.FreeAddr()
	y.must(err)
	env := append(append([]string{}, y.env...), "DOCKET_DATABASE_URL="+y.dsn, "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_DESK_API_ADDR="+addr,
		"DOCKET_DESK_API_TOKENS=auditor:auditor:"+token, "DOCKET_SPOOL_DIR="+filepath.Join(y.dir, "spool-late"))
	s, _, err := config.LoadWith(config.Desk, env, desk.Judges())
	y.must(err)
	d, err := desk.New(s, zerolog.Nop(), prometheus.NewRegistry(), desk.Options{DialKafka: dialLate})
	y.must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	p := &program{y: y, name: "a desk with a late Kafka", api: addr, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableCompression: true}}}
	y.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			y.t.Errorf("%s: %v", p.name, err)
		}
		d.Close()
		p.client.CloseIdleConnections()
	})
	return p
}

// lateConn gives every byte to its reader later than it came.
type lateConn struct {
	net.Conn
	came chan lateBytes
	rest []byte
	end  sync.Once
	gone chan struct{}
}

type lateBytes struct {
	due  time.Time
	data []byte
	err  error
}

func dialLate(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l := &lateConn{Conn: c, came: make(chan lateBytes, 4096), gone: make(chan struct{})}
	go l.receive()
	return l, nil
}

func (l *lateConn) receive() {
	for {
		buf := make([]byte, 64<<10)
		n, err := l.Conn.Read(buf)
		select {
		case l.came <- lateBytes{time.Now().Add(lateBy), buf[:n], err}:
		case <-l.gone:
			return
		}
		if err != nil {
			return
		}
	}
}

// Read keeps no deadlines: closing the connection ends it.
func (l *lateConn) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		select {
		case c := <-l.came:
			select {
			case <-time.After(time.Until(c.due)):
			case <-l.gone:
				return 0, net.ErrClosed
			}
			if len(c.data) == 0 {
				return 0, c.err
			}
			l.rest = c.data
		case <-l.gone:
			return 0, net.ErrClosed
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// SetReadDeadline is left to the server's answers, which come in their time.
func (l *lateConn) SetReadDeadline(time.Time) error { return nil }

func (l *lateConn) SetDeadline(t time.Time) error { return l.SetWriteDeadline(t) }

func (l *lateConn) Close() error {
	l.end.Do(func() { close(l.gone) })
	return l.Conn.Close()
}
