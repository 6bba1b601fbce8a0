//go:build integration

package testenv

import (
	"net"
	"strconv"
	"testing"
)

// TestFreeAddr_Unique: a process owns the ports of a block whose first port it listens on.
func TestFreeAddr_Unique(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 2 * blockSize {
		addr, err := freeAddr()
		if err != nil {
			t.Fatal(err)
		}
		if given[addr] {
			t.Fatalf("%s was given twice", addr)
		}
		given[addr] = true
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(port)
		if err != nil || n < firstPort || n > lastPort {
			t.Fatalf("%s: %v", addr, err)
		}
		first := n - (n-firstPort)%blockSize
		if listener, err := listen(first); err == nil {
			_ = listener.Close()
			t.Fatalf("%s is given, and another process could take the block of %d", addr, first)
		}
	}
}
