//go:build integration

package testenv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"strings"
	"sync"
	"testing"

	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	tclog "github.com/testcontainers/testcontainers-go/log"
)

// shared holds what all tests of the binary use.
var shared fleet

// fleet is the connection to the engine and the servers that are shared.
type fleet struct {
	connect sync.Once
	docker  *testcontainers.DockerClient
	failure error // why there is no engine

	kafka    once[*KafkaServer]
	secured  once[*SecuredKafka]
	postgres once[*PostgresServer]
	redis    once[*RedisServer]
}

// once makes a value at the first call and returns the same value later.
type once[T any] struct {
	do    sync.Once
	value T
	err   error
}

func (o *once[T]) get(first func() (T, error)) (T, error) {
	o.do.Do(func() { o.value, o.err = first() })
	return o.value, o.err
}

// engine returns the connection to the container engine. Without one the test fails, because a suite that skips
// itself proves nothing.
func engine(t testing.TB) *testcontainers.DockerClient {
	t.Helper()
	shared.connect.Do(func() {
		tclog.SetDefault(log.New(io.Discard, "", 0))
		ctx, cancel := context.WithTimeout(context.Background(), startWait)
		defer cancel()
		docker, err := testcontainers.NewDockerClientWithOpts(ctx)
		if err == nil {
			_, err = docker.Ping(ctx, client.PingOptions{})
		}
		shared.docker, shared.failure = docker, err
	})
	if shared.failure != nil {
		t.Fatalf("no container engine answers; `make test` sets it up, or run build/engine and build/images.sh (%s)",
			strings.Join(strings.Fields(shared.failure.Error()), " "))
	}
	return shared.docker
}

// close removes the shared servers and closes the connection.
func (f *fleet) close() error {
	var failed []error
	if f.kafka.value != nil {
		failed = append(failed, f.kafka.value.remove())
	}
	if f.secured.value != nil {
		f.secured.value.Wire.Close()
		failed = append(failed, f.secured.value.remove())
	}
	if f.postgres.value != nil {
		failed = append(failed, f.postgres.value.remove())
	}
	if f.redis.value != nil {
		failed = append(failed, f.redis.value.remove())
	}
	if f.docker != nil {
		failed = append(failed, f.docker.Close())
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("remove shared servers: %w", err)
	}
	return nil
}
