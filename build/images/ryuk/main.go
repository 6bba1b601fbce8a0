// Command ryuk removes the leftovers of a test run from the container engine: containers, networks, volumes and
// images with the given labels.
//
// It speaks the protocol that testcontainers libraries expect of testcontainers/ryuk. Over TCP each line is a
// URL-encoded set of filters, such as label=org.testcontainers.sessionId%3Dabc, answered by ACK. The run has ended
// when the last connection was closed for a while. Then everything that matches is removed and the reaper ends. It
// uses only the standard library.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(log.LstdFlags | log.LUTC)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	first, err := duration("RYUK_CONNECTION_TIMEOUT", time.Minute)
	if err != nil {
		return err
	}
	again, err := duration("RYUK_RECONNECTION_TIMEOUT", 10*time.Second)
	if err != nil {
		return err
	}
	port := os.Getenv("RYUK_PORT")
	if port == "" {
		port = "8080"
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("listen for test runs: %w", err)
	}

	r := newReaper()
	go r.accept(listener)
	log.Print("Started") // testcontainers waits for this word
	r.await(ctx, first, again)
	_ = listener.Close()

	clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return newEngine("/var/run/docker.sock").prune(clean, r.filters())
}

// duration reads a setting in Go's notation.
func duration(name string, fallback time.Duration) (time.Duration, error) {
	value := os.Getenv(name)
	if value == "" {
		return fallback, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	return d, nil
}

// reaper keeps the filters of all connected runs.
type reaper struct {
	changed chan int // the number of open connections, after each change

	mu    sync.Mutex
	open  int
	asked map[string]url.Values
}

func newReaper() *reaper {
	return &reaper{changed: make(chan int), asked: map[string]url.Values{}}
}

// accept serves connections until the listener is closed.
func (r *reaper) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			log.Printf("accept a connection: %v", err)
			continue
		}
		go r.serve(conn)
	}
}

// serve acknowledges the filters of one connection until it is closed.
func (r *reaper) serve(conn net.Conn) {
	r.count(1)
	defer r.count(-1)
	defer func() { _ = conn.Close() }()

	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		filters, err := url.ParseQuery(lines.Text())
		if err != nil || !narrow(filters) {
			log.Print("a line that does not name labels was left out")
			continue
		}
		r.mu.Lock()
		r.asked[filters.Encode()] = filters
		r.mu.Unlock()
		if _, err := conn.Write([]byte("ACK\n")); err != nil {
			return
		}
	}
}

// narrow reports whether filters name labels: without any they would match everything in the engine.
func narrow(filters url.Values) bool {
	return len(filters["label"]) > 0 && !slices.Contains(filters["label"], "")
}

func (r *reaper) count(by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.open += by
	r.changed <- r.open
}

// await returns when there is nothing to wait for. No connection came within first of the start, none came for again
// since the last was closed, or ctx is done.
func (r *reaper) await(ctx context.Context, first, again time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case open := <-r.changed:
			timer.Stop()
			if open == 0 {
				timer.Reset(again)
			}
		case <-timer.C:
			go r.drain()
			return
		case <-ctx.Done():
			go r.drain()
			return
		}
	}
}

// drain keeps counting open connections.
func (r *reaper) drain() {
	for range r.changed {
	}
}

// filters returns every distinct set of filters asked for.
func (r *reaper) filters() []url.Values {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]url.Values, 0, len(r.asked))
	for _, filters := range r.asked {
		all = append(all, filters)
	}
	return all
}
