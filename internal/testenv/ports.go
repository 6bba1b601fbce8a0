//go:build integration

package testenv

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the range that the kernel takes for outgoing
// connections: one from inside it could be gone after a restart.
const (
	firstPort = 20000
	lastPort  = 29999
)

// FreeAddr returns an address on loopback that nobody listens on, and never the same
// one twice: for a server of the test's own that has to come back at its address.
func FreeAddr() (string, error) { return freeAddr() }

var ports struct {
	sync.Mutex
	taken map[int]bool
}

// freeAddr returns an address on loopback that nobody listens on, and never the
// same one twice.
func freeAddr() (string, error) {
	ports.Lock()
	defer ports.Unlock()
	if ports.taken == nil {
		ports.taken = map[int]bool{}
	}
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		addr := net.JoinHostPort(loopback, strconv.Itoa(port))
		if ports.taken[port] {
			continue
		}
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
		if err != nil {
			continue
		}
		ports.taken[port] = true
		return addr, listener.Close()
	}
	return "", fmt.Errorf("no free port between %d and %d", firstPort, lastPort)
}
