package api

import (
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count requests by route and failed logins by reason. No label comes from a request.
type metrics struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	logins   *prometheus.CounterVec
	looks    prometheus.Counter
	panics   prometheus.Counter
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_desk_api_requests_total",
			Help: "Requests to the desk's API by route and status."}, []string{"route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "docket_desk_api_request_seconds",
			Help: "Duration of requests to the desk's API in seconds.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 9)}, []string{"route"}),
		logins: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "docket_desk_api_failed_logins_total",
			Help: "Requests to the desk's API without valid credentials, by reason."}, []string{"reason"}),
		looks: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_desk_api_payload_looks_total",
			Help: "Payloads that were shown by the desk's API."}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{Name: "docket_desk_api_panics_total",
			Help: "Requests to the desk's API that ended in a panic."}),
	}
	for _, reason := range []error{errNoCredentials, errBadToken, errExpiredToken, errBadHeader, errUnknownClient, errThrottled, errOpenID} {
		m.logins.WithLabelValues(reason.Error())
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.requests, m.took, m.logins, m.looks, m.panics} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) answered(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.took.WithLabelValues(route).Observe(took.Seconds())
}

func (m *metrics) failed(reason error) { m.logins.WithLabelValues(reason.Error()).Inc() }

// frames are the stack frames of a panic.
func frames() []string {
	pcs := make([]uintptr, 24)
	found := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs)])
	var places []string
	for {
		f, more := found.Next()
		places = append(places, f.Function+":"+strconv.Itoa(f.Line))
		if !more {
			return places
		}
	}
}
