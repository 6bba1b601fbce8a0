package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nowhere is a Kafka that nobody answers for.
var nowhere = []string{"DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_HTTP_ADDR=127.0.0.1:0", "DOCKET_COLLECTOR_ADDR=127.0.0.1:0"}

func TestSignal_WithoutBrokers(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	var out, err bytes.Buffer
	began := time.Now()
	code := run(nil, nowhere, &out, &err, signals)
	if took := time.Since(began); code != 0 || took > 20*time.Second {
		t.Errorf("exit %d after %v\n%s", code, took, err.String())
	}
}

func TestSettings_AllComplaints(t *testing.T) {
	t.Parallel()
	const planted = "hunter2marker"
	code, _, said := call([]string{
		"DOCKET_COLLECTOR_ADDR=:8085", "DOCKET_COLLECTOR_TOKENS=" + planted, "DOCKET_COLLECTOR_KEY=" + "nobody", "DOCKET_COLLECTOR_DROP=/timestamp", "DOCKET_COLLECTOR_MEMORY=1MiB",
	})
	if code != 2 || strings.Count(said, "\n") != 5 || strings.Contains(said, planted) {
		t.Errorf("exit %d:\n%s", code, said)
	}
}
