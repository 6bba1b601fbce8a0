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
// connections: one from inside it could be gone after a restart. Packages are
// tested side by side, in processes of their own, and a port is free between the
// look at it and the server's start, or while a server is down: so each process
// takes a block of them for itself.
const (
	firstPort = 20000
	lastPort  = 29999
	blockSize = 250
)

// FreeAddr returns an address on loopback that nobody listens on, and never the same
// one twice: for a server of the test's own that has to come back at its address.
func FreeAddr() (string, error) { return freeAddr() }

var ports struct {
	sync.Mutex
	blocks []net.Listener // on the first port of each block that is this process's; they go with the process
	left   []int          // of the last block
}

// anotherBlock takes a block that belongs to nobody: who listens on its first port has the others.
func anotherBlock() error {
	const blocks = (lastPort - firstPort + 1) / blockSize
	for _, n := range rand.Perm(blocks) {
		first := firstPort + n*blockSize
		listener, err := listen(first)
		if err != nil {
			continue
		}
		ports.blocks = append(ports.blocks, listener)
		for _, k := range rand.Perm(blockSize - 1) {
			ports.left = append(ports.left, first+1+k)
		}
		return nil
	}
	return fmt.Errorf("no free ports between %d and %d", firstPort, lastPort)
}

func listen(port int) (net.Listener, error) {
	return (&net.ListenConfig{}).Listen(context.Background(), "tcp", net.JoinHostPort(loopback, strconv.Itoa(port)))
}

// freeAddr returns an address on loopback that nobody listens on, and never the
// same one twice.
func freeAddr() (string, error) {
	ports.Lock()
	defer ports.Unlock()
	for {
		for len(ports.left) > 0 {
			port := ports.left[0]
			ports.left = ports.left[1:]
			if listener, err := listen(port); err == nil {
				return listener.Addr().String(), listener.Close()
			}
		}
		if err := anotherBlock(); err != nil {
			return "", err
		}
	}
}
