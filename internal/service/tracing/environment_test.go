package tracing

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

const (
	secret = "marker-of-a-secret"
	on     = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1"
)

// environments are variables, those of them that are wrong, and whether there are traces.
var environments = map[string]struct {
	environ []string
	wrong   []string
	on      bool
}{
	"nothing":            {nil, nil, false},
	"no endpoint":        {[]string{"OTEL_SERVICE_NAME=x", "OTEL_TRACES_SAMPLER=" + secret}, nil, false},
	"an endpoint":        {[]string{on}, nil, true},
	"one of traces":      {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=https://c/x"}, nil, true},
	"disabled":           {[]string{on, "OTEL_SDK_DISABLED=true"}, nil, false},
	"no exporter":        {[]string{on, "OTEL_TRACES_EXPORTER=none"}, nil, false},
	"another exporter":   {[]string{on, "OTEL_TRACES_EXPORTER=" + secret}, []string{"OTEL_TRACES_EXPORTER"}, false},
	"no URL":             {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + secret + ":4318"}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT"}, false},
	"a password in it":   {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://u:" + secret + "@127.0.0.1:1"}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT"}, true},
	"bad headers":        {[]string{on, "OTEL_EXPORTER_OTLP_HEADERS=a=b," + secret}, []string{"OTEL_EXPORTER_OTLP_HEADERS"}, true},
	"a bad timeout":      {[]string{on, "OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, []string{"OTEL_EXPORTER_OTLP_TIMEOUT"}, true},
	"a bad compression":  {[]string{on, "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION=zip"}, []string{"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION"}, true},
	"no certificates":    {[]string{on, "OTEL_EXPORTER_OTLP_CERTIFICATE=/" + secret}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE"}, true},
	"half a key pair":    {[]string{on, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/" + secret}, []string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE"}, true},
	"another protocol":   {[]string{on, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, []string{"OTEL_EXPORTER_OTLP_PROTOCOL"}, true},
	"a bad sampler":      {[]string{on, "OTEL_TRACES_SAMPLER=" + secret}, []string{"OTEL_TRACES_SAMPLER"}, true},
	"a bad ratio":        {[]string{on, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=2"}, []string{"OTEL_TRACES_SAMPLER_ARG"}, true},
	"no number":          {[]string{on, "OTEL_TRACES_SAMPLER=traceidratio", "OTEL_TRACES_SAMPLER_ARG=NaN"}, []string{"OTEL_TRACES_SAMPLER_ARG"}, true},
	"a bad resource":     {[]string{on, "OTEL_RESOURCE_ATTRIBUTES=" + secret}, []string{"OTEL_RESOURCE_ATTRIBUTES"}, true},
	"neither true nor":   {[]string{on, "OTEL_SDK_DISABLED=maybe"}, []string{"OTEL_SDK_DISABLED"}, true},
	"all that is needed": {[]string{on, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1", "OTEL_RESOURCE_ATTRIBUTES=a=b%20c"}, nil, true},
}

func TestOpen_NamesWrongVariables(t *testing.T) {
	t.Parallel()
	for name, c := range environments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			tr := Open(c.environ, Config{Program: "consumer"}, zerolog.New(&log))
			if (tr != nil) != c.on {
				t.Errorf("on: %v", tr != nil)
			}
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
			e := read(c.environ)
			e.settings()
			var wrong []string
			for _, w := range e.wrong {
				wrong = append(wrong, w.Variable)
			}
			if !slices.Equal(wrong, c.wrong) || strings.Count(log.String(), "\n") != len(c.wrong) {
				t.Errorf("complaints about %v, want %v; log %s", wrong, c.wrong, log.String())
			}
			if strings.Contains(log.String(), secret) {
				t.Errorf("a value shows: %s", log.String())
			}
		})
	}
}

// TestOpen_SDKAloneNamesNone lets the SDK read the wrong variables. Docket reads them itself only as long as the SDK
// leaves some of them out or quotes values.
func TestOpen_SDKAloneNamesNone(t *testing.T) { // not parallel: the SDK reads the environment of the process
	quiet()
	var text strings.Builder
	defer func() {
		otel.SetLogger(logr.Discard())
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	}()
	otel.SetLogger(funcr.New(func(_, args string) { fmt.Fprintln(&text, args) }, funcr.Options{}))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { fmt.Fprintln(&text, err) }))
	all, told, named, quoted := 0, 0, 0, 0
	for name, c := range environments {
		if len(c.wrong) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text.Reset()
			for _, pair := range c.environ {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			exporter, err := otlptracehttp.New(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			of, err := resource.New(t.Context(), resource.WithFromEnv())
			if err != nil {
				fmt.Fprintln(&text, err)
			}
			provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(of))
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			if err := provider.Shutdown(ctx); err != nil {
				t.Error(err)
			}
			all++
			told += one(text.Len() > 0)
			named += one(strings.Contains(text.String(), c.wrong[0]))
			quoted += one(strings.Contains(text.String(), secret))
		})
	}
	t.Logf("of %d wrong variables the SDK reports %d, names %d, and quotes the value of %d", all, told, named, quoted)
	if named == all && quoted == 0 {
		t.Error("the SDK names every wrong variable and quotes none: Docket need not read them itself")
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
