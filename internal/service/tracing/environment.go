package tracing

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Variables that are read, as the OpenTelemetry specification has them. Those of the exporter exist for all signals and for
// traces alone, and the latter wins.
const (
	exporterPrefix = "OTEL_EXPORTER_OTLP_"
	tracesPrefix   = "OTEL_EXPORTER_OTLP_TRACES_"
)

// mostTimeout is the longest wait for a collector: spans that wait take memory.
const mostTimeout = time.Minute

// settings are what the environment says.
type settings struct {
	endpoint   string // empty: off
	headers    map[string]string
	timeout    time.Duration
	gzip       bool
	tls        *tls.Config
	sampler    sdktrace.Sampler
	service    string
	attributes []attribute.KeyValue
}

// Wrong is a variable that cannot be used. It never holds a value: some of them are secrets.
type Wrong struct {
	Variable string
	Text     string // the fault, and what is done instead
}

// environment reads variables and notes what is wrong with them.
type environment struct {
	values map[string]string
	wrong  []Wrong
}

func read(environ []string) *environment {
	e := &environment{values: map[string]string{}}
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && strings.HasPrefix(name, "OTEL_") {
			e.values[name] = strings.TrimSpace(value)
		}
	}
	return e
}

func (e *environment) complain(variable, format string, args ...any) {
	e.wrong = append(e.wrong, Wrong{variable, fmt.Sprintf(format, args...)})
}

// exporter is a variable of the exporter: the one of traces where it is set.
func (e *environment) exporter(name string) (variable, value string) {
	if value := e.values[tracesPrefix+name]; value != "" {
		return tracesPrefix + name, value
	}
	return exporterPrefix + name, e.values[exporterPrefix+name]
}

// settings are what is left when what is wrong is passed over.
func (e *environment) settings() settings {
	s := settings{endpoint: e.endpoint()}
	if s.endpoint == "" {
		return s
	}
	e.protocol()
	s.headers = e.headers()
	s.timeout = e.timeout()
	s.gzip = e.gzip()
	s.tls = e.tls()
	s.sampler = e.sampler()
	s.service, s.attributes = e.values["OTEL_SERVICE_NAME"], e.attributes()
	return s
}

// endpoint is where spans go, empty where tracing is off.
func (e *environment) endpoint() string {
	switch disabled := e.values["OTEL_SDK_DISABLED"]; strings.ToLower(disabled) {
	case "", "false":
	case "true":
		return ""
	default:
		e.complain("OTEL_SDK_DISABLED", "is neither true nor false, and counts as false")
	}
	switch exporter := e.values["OTEL_TRACES_EXPORTER"]; exporter {
	case "", "otlp":
	case "none":
		return ""
	default:
		e.complain("OTEL_TRACES_EXPORTER", "is neither otlp nor none: there are no traces")
		return ""
	}
	variable, text := e.exporter("ENDPOINT")
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		e.complain(variable, "is not a URL like https://collector:4318: there are no traces")
		return ""
	}
	if u.User != nil {
		e.complain(variable, "contains a user or password, which is not used: put it into %sHEADERS", exporterPrefix)
		u.User = nil
	}
	if variable == exporterPrefix+"ENDPOINT" {
		u.Path = path.Join("/", u.Path, "v1/traces")
	}
	return u.String()
}

func (e *environment) protocol() {
	if variable, text := e.exporter("PROTOCOL"); text != "" && text != "http/protobuf" {
		e.complain(variable, "is not http/protobuf, which is used anyway: the collector usually listens for it on port 4318")
	}
}

func (e *environment) headers() map[string]string {
	variable, text := e.exporter("HEADERS")
	return e.pairs(variable, text)
}

// pairs reads name=value, by comma, with percent-encoded values.
func (e *environment) pairs(variable, text string) map[string]string {
	all := map[string]string{}
	for i, pair := range strings.Split(text, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil || strings.ContainsAny(name+decoded, "\r\n") {
			e.complain(variable, "has an entry that is not name=value at place %d, which is ignored", i+1)
			continue
		}
		all[name] = decoded
	}
	return all
}

func (e *environment) timeout() time.Duration {
	const standard = 10 * time.Second
	variable, text := e.exporter("TIMEOUT")
	if text == "" {
		return standard
	}
	ms, err := strconv.ParseInt(text, 10, 32)
	if err != nil || ms <= 0 || ms > mostTimeout.Milliseconds() {
		e.complain(variable, "is not a number of milliseconds from 1 to %d: %d is used", mostTimeout.Milliseconds(), standard.Milliseconds())
		return standard
	}
	return time.Duration(ms) * time.Millisecond
}

func (e *environment) gzip() bool {
	switch variable, text := e.exporter("COMPRESSION"); text {
	case "gzip":
		return true
	case "", "none":
	default:
		e.complain(variable, "is neither gzip nor none: none is used")
	}
	return false
}

// tls is nil where the system's certificates are to be used. Files that cannot be read leave those, which is no less
// secure: a collector that they do not vouch for gets nothing.
func (e *environment) tls() *tls.Config {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	variable, file := e.exporter("CERTIFICATE")
	if file != "" {
		pem, err := os.ReadFile(file)
		pool := x509.NewCertPool()
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			e.complain(variable, "is not a file with certificates: those of the system are used")
		} else {
			conf.RootCAs = pool
		}
	}
	variable, cert := e.exporter("CLIENT_CERTIFICATE")
	_, key := e.exporter("CLIENT_KEY")
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			e.complain(variable, "and its key are not files with a certificate and its key: none is shown to the collector")
		} else {
			conf.Certificates = []tls.Certificate{pair}
		}
	}
	return conf
}

func (e *environment) sampler() sdktrace.Sampler {
	ratio := func() sdktrace.Sampler {
		text := e.values["OTEL_TRACES_SAMPLER_ARG"]
		if text == "" {
			return sdktrace.AlwaysSample()
		}
		part, err := strconv.ParseFloat(text, 64)
		if err != nil || !(part >= 0 && part <= 1) {
			e.complain("OTEL_TRACES_SAMPLER_ARG", "is not a number from 0 to 1: 1 is used")
			part = 1
		}
		return sdktrace.TraceIDRatioBased(part)
	}
	switch name := strings.ToLower(e.values["OTEL_TRACES_SAMPLER"]); name {
	case "", "parentbased_always_on":
	case "always_on":
		return sdktrace.AlwaysSample()
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		return ratio()
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample())
	case "parentbased_traceidratio":
		return sdktrace.ParentBased(ratio())
	default:
		e.complain("OTEL_TRACES_SAMPLER", "is not one of always_on, always_off, traceidratio and these with parentbased_ before them: parentbased_always_on is used")
	}
	return sdktrace.ParentBased(sdktrace.AlwaysSample())
}

func (e *environment) attributes() []attribute.KeyValue {
	var all []attribute.KeyValue
	for name, value := range e.pairs("OTEL_RESOURCE_ATTRIBUTES", e.values["OTEL_RESOURCE_ATTRIBUTES"]) {
		all = append(all, attribute.String(name, value))
	}
	return all
}

// options are those of the exporter. All are given, so that it has nothing to find out for itself.
func (s settings) options() []otlptracehttp.Option {
	compression := otlptracehttp.NoCompression
	if s.gzip {
		compression = otlptracehttp.GzipCompression
	}
	all := []otlptracehttp.Option{
		otlptracehttp.WithEndpointURL(s.endpoint), otlptracehttp.WithHeaders(s.headers), otlptracehttp.WithTimeout(s.timeout),
		otlptracehttp.WithCompression(compression),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: s.timeout, MaxElapsedTime: 2 * s.timeout,
		}),
	}
	if strings.HasPrefix(s.endpoint, "https:") { // the exporter refuses it elsewhere
		all = append(all, otlptracehttp.WithTLSClientConfig(s.tls))
	}
	return all
}
