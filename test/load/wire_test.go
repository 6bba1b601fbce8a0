//go:build integration

package load

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// wire is a proxy between a program and a server.
type wire struct{ proxy *toxiproxy.Proxy }

// wired puts a proxy before the server of a URL and returns the URL that leads through it.
func (y *system) wired(name, of string) (*wire, string) {
	y.t.Helper()
	u, err := url.Parse(of)
	y.must(err)
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(server, name, "127.0.0.1:0", u.Host)
	y.must(server.Collection.Add(proxy, true))
	y.t.Cleanup(func() { _ = server.Collection.Clear() }) // the test is over
	u.Host = proxy.Listen
	return &wire{proxy}, u.String()
}

// slowness is a delay of all answers.
type slowness struct{ wire *wire }

// delay lets each answer of the server wait.
func (w *wire) delay(y *system, d time.Duration) slowness {
	y.t.Helper()
	_, err := w.proxy.Toxics.AddToxicJson(strings.NewReader(fmt.Sprintf(`{"name": "slow", "type": "latency", "stream": "downstream", "attributes": {"latency": %d}}`, d.Milliseconds())))
	y.must(err)
	return slowness{w}
}

// end takes the delay away. Answers that wait already come at their time.
func (s slowness) end(y *system) {
	y.t.Helper()
	y.must(s.wire.proxy.Toxics.RemoveToxic(y.t.Context(), "slow"))
}

// cut ends all connections and refuses new ones until restored.
func (w *wire) cut() { w.proxy.Stop() }

// restore lets connections through again.
func (w *wire) restore(y *system) {
	y.t.Helper()
	y.must(w.proxy.Start())
}
