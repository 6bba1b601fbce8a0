package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"docket/deploy/check/panels"
	"docket/internal/audit/conservation"
)

// project is the Compose project as it is seen from this machine.
type project struct {
	places   conservation.Places
	programs map[string]string // name of the service: host and port of its HTTP
	// There with the profile observability only.
	prometheus panels.Prometheus
}

// composeProject reads the variables that docker-compose.yml reads, with the same defaults.
func composeProject() project {
	at := func(variable, port string) string {
		if v := os.Getenv(variable); v != "" {
			port = v
		}
		return net.JoinHostPort("127.0.0.1", port)
	}
	return project{
		places: conservation.Places{
			Brokers: []string{at("DOCKET_KAFKA_PORT", "9092")},
			Topic:   "decision-logs", Group: "docket",
			ParkingTopic: "decision-logs-parking", ParkingGroup: "docket-parking",
			DLQTopic: "decision-logs-dlq", ParkingDLQ: "decision-logs-parking-dlq",
			// The password of docker-compose.yml, which everybody knows.
			DatabaseURL: "postgres://docket:docket@" + at("DOCKET_POSTGRES_PORT", "5432") + "/docket?sslmode=disable&connect_timeout=5",
		},
		programs: map[string]string{
			"consumer": at("DOCKET_CONSUMER_PORT", "8080"),
			"replayer": at("DOCKET_REPLAYER_PORT", "8081"),
		},
		prometheus: panels.Prometheus{URL: "http://" + at("DOCKET_PROMETHEUS_PORT", "9090")},
	}
}

// compose runs Compose on the project and returns what it wrote to standard output.
func compose(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "build/compose", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("compose %s: %w: %s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return stdout.String(), nil
}

// get asks a program of the project over HTTP.
func (p project) get(ctx context.Context, program, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.programs[program]+path, http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", program, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("ask %s: %w", program, err)
	}
	return strings.TrimSpace(string(body)), nil
}

// metric is one series, or the sum of a metric over all its labels, as a program tells it.
func (p project) metric(ctx context.Context, program, name string) (float64, error) {
	body, err := p.get(ctx, program, "/metrics")
	if err != nil {
		return 0, err
	}
	sum, found := 0.0, false
	for line := range strings.Lines(body) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if base, _, _ := strings.Cut(series, "{"); !ok || base != name && series != name {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("%s of %s is not a number", name, program)
		}
		sum, found = sum+v, true
	}
	if !found {
		return 0, fmt.Errorf("%s has no metric %s", program, name)
	}
	return sum, nil
}
