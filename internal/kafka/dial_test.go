package kafka_test

import (
	"context"
	"net"
	"sync/atomic"
	"syscall"
)

// downable refuses connections while down says so. Connections that exist live on.
func downable(down *atomic.Bool) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if down.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}
