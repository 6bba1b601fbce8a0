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

// Ports are below the range that the kernel uses for outgoing connections: one inside it could be taken after a
// restart. Packages are tested in parallel processes, and a port is free between a check and the server's start, or
// while a server is down. So each process takes a block of ports for itself.
const (
	firstPort = 20000
	lastPort  = 29999
	blockSize = 250
)

// FreeAddr returns a free address on loopback, never the same one twice. It is for a server that must come back at
// its address.
func FreeAddr() (string, error) { return freeAddr() }

var ports struct {
	sync.Mutex
	blocks []net.Listener // on the first port of each block of this process; they end with it
	left   []int          // of the last block
}

// anotherBlock takes a free block: the listener on its first port owns the others.
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

// freeAddr returns a free address on loopback, never the same one twice.
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
