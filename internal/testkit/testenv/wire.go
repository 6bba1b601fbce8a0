//go:build integration

package testenv

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// Wire forwards connections to a server, and can cut them.
type Wire struct {
	listener net.Listener

	mu     sync.Mutex
	to     string
	open   map[net.Conn]bool
	closed bool
	all    sync.WaitGroup
}

func newWire(to string) (*Wire, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", loopback+":0")
	if err != nil {
		return nil, fmt.Errorf("listen for a wire: %w", err)
	}
	w := &Wire{listener: listener, to: to, open: map[net.Conn]bool{}}
	w.all.Go(w.accept)
	return w, nil
}

// Addr returns the address to dial.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

func (w *Wire) accept() {
	for {
		near, err := w.listener.Accept()
		if err != nil {
			return
		}
		to := w.leads()
		far, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
		if err != nil || !w.hold(near, far, to) {
			_ = near.Close() // the client only sees the end
			continue
		}
		for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
			w.all.Go(func() {
				_, _ = io.Copy(way[0], way[1]) // either end may close at any time
				_ = way[0].Close()
				_ = way[1].Close()
			})
		}
	}
}

func (w *Wire) leads() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to
}

// Lead forwards connections to another server, and ends those to the old one.
func (w *Wire) Lead(to string) {
	w.mu.Lock()
	w.to = to
	w.mu.Unlock()
	w.Cut()
}

func (w *Wire) hold(near, far net.Conn, to string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.to != to {
		_ = far.Close()
		return false
	}
	w.open[near], w.open[far] = true, true
	return true
}

// Cut ends all connections. New ones are forwarded.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.open {
		_ = conn.Close()
	}
	clear(w.open)
}

// Close ends the wire and waits for its goroutines.
func (w *Wire) Close() {
	if w == nil {
		return
	}
	_ = w.listener.Close()
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.Cut()
	w.all.Wait()
}
