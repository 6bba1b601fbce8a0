//go:build integration

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// wires are the proxies between the programs and the servers. Nothing of the campaign's own goes through them.
type wires struct {
	server      *toxiproxy.ApiServer
	brokers     []*wire
	postgres    *wire
	link        *wire         // from the standby to the primary; nil where there is none
	redis       *wire         // nil without lanes
	cut         *pgtest.Proxy // between the proxy and the server: it knows transactions
	databaseURL string        // for the programs
}

func newWires() *wires {
	return &wires{server: toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())}
}

// connect puts proxies before the brokers and the database.
func (w *wires) connect(cluster *testenv.KafkaCluster, database string) error {
	for i := range cluster.Size() {
		wire, err := w.open(fmt.Sprintf("broker-%d", i), cluster.Advertised(i), cluster.Upstream(i))
		if err != nil {
			return err
		}
		w.brokers = append(w.brokers, wire)
	}
	var err error
	if w.cut, err = pgtest.Listen(database); err != nil {
		return err
	}
	behind, err := url.Parse(w.cut.URL)
	if err != nil {
		return err
	}
	if w.postgres, behind.Host, err = w.before("postgres", behind.Host); err != nil {
		return err
	}
	w.databaseURL = behind.String()
	return nil
}

// join puts a proxy into the link to the standby and tells where to dial.
func (w *wires) join(link string) (addr string, err error) {
	w.link, addr, err = w.before("standby", link)
	return addr, err
}

// before opens a wire to an address, at a free one.
func (w *wires) before(name, upstream string) (*wire, string, error) {
	front, err := testenv.FreeAddr()
	if err != nil {
		return nil, "", err
	}
	wire, err := w.open(name, front, upstream)
	return wire, front, err
}

// all are the wires there are.
func (w *wires) all() []*wire {
	all := append(w.brokers[:len(w.brokers):len(w.brokers)], w.postgres)
	for _, optional := range []*wire{w.link, w.redis} {
		if optional != nil {
			all = append(all, optional)
		}
	}
	return all
}

func (w *wires) open(name, listen, upstream string) (*wire, error) {
	wire := &wire{server: w.server, name: name, listen: listen, upstream: upstream}
	return wire, wire.build()
}

func (w *wires) close() {
	for _, wire := range w.all() {
		wire.proxy.Stop()
	}
	w.cut.Close()
}

// wire is one proxy at a fixed address.
type wire struct {
	server                 *toxiproxy.ApiServer
	name, listen, upstream string

	mu    sync.Mutex
	proxy *toxiproxy.Proxy
	stuck bool // it answers no more
}

// build starts a proxy without toxics.
func (w *wire) build() error {
	proxy := toxiproxy.NewProxy(w.server, w.name, w.listen, w.upstream)
	if err := proxy.Start(); err != nil {
		return fmt.Errorf("start the proxy of %s: %w", w.name, err)
	}
	w.proxy = proxy
	return nil
}

// toxic puts a toxic into one direction or both: "upstream", "downstream", "both".
func (w *wire) toxic(direction, kind string, attributes map[string]any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	directions := []string{direction}
	if direction == "both" {
		directions = []string{"upstream", "downstream"}
	}
	for _, d := range directions {
		body, err := json.Marshal(map[string]any{"name": kind + "_" + d, "type": kind, "stream": d, "attributes": attributes})
		if err != nil {
			return err
		}
		if err := w.add(string(body)); err != nil {
			return fmt.Errorf("put %s into %s: %w", kind, w.name, err)
		}
	}
	return nil
}

// errStuck says that a proxy waits for a connection that ended meanwhile, which happens now and then. All that goes through
// it waits, too. heal leaves that proxy behind.
var errStuck = errors.New("the proxy is stuck")

// add puts a toxic in as it is described.
func (w *wire) add(body string) error {
	proxy, answer := w.proxy, make(chan error, 1)
	if !within(5*time.Second, func() {
		_, err := proxy.Toxics.AddToxicJson(strings.NewReader(body))
		answer <- err
	}) {
		w.stuck = true
		return errors.Join(errStuck, w.renew(context.Background()))
	}
	return <-answer
}

// refuse closes the wire: connections are cut and new ones refused, until heal.
func (w *wire) refuse() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stop()
}

// stop ends the proxy, which does not wait for what is stuck in a toxic.
func (w *wire) stop() error {
	proxy := w.proxy
	if !within(10*time.Second, proxy.Stop) {
		return errors.New("the proxy of " + w.name + " does not stop")
	}
	return nil
}

// within says whether do ended in time. One that did not is left behind with what it waits for.
func within(limit time.Duration, do func()) bool {
	done := make(chan struct{})
	go func() { do(); close(done) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// heal makes the wire sound again. Connections that met a toxic may have lost bytes and are cut: the proxy is built again.
func (w *wire) heal(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.renew(ctx)
}

// renew leaves the proxy behind and builds another in its place.
func (w *wire) renew(ctx context.Context) error {
	if err := w.stop(); err == nil && !w.stuck { // one that is stuck has closed its port at least
		proxy := w.proxy
		within(5*time.Second, func() { proxy.Toxics.ResetToxics(ctx) }) // links that hang in a toxic end, as a rule
	}
	w.stuck = false
	return w.build()
}
