package peers

import "net/http"

// FactsOf parses the text of /metrics.
var FactsOf = factsOf

// Break has every request of a watch call f first.
func Break(w *Watch, f func()) { w.client.Transport = broken{f, w.client.Transport} }

type broken struct {
	f func()
	http.RoundTripper
}

func (b broken) RoundTrip(r *http.Request) (*http.Response, error) {
	b.f()
	return b.RoundTripper.RoundTrip(r)
}

// CloseIdleConnections is for the end of the test.
func (b broken) CloseIdleConnections() {
	if c, is := b.RoundTripper.(interface{ CloseIdleConnections() }); is {
		c.CloseIdleConnections()
	}
}
