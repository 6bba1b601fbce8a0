//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"
)

func (c *campaign) redisFaults() map[string]inject {
	if !c.lanes {
		return nil
	}
	server := c.redis.Handle()
	wired := func(direction, toxic string, a attributes) inject {
		return func(context.Context, Fault) (func(context.Context) error, error) {
			return c.wires.redis.heal, c.wires.redis.toxic(direction, toxic, a)
		}
	}
	return map[string]inject{
		RedisKilled: func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return server.Start, server.End(ctx, "SIGKILL")
		},
		redisPaused: func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
			return server.Thaw, server.Pause(ctx)
		},
		redisReadOnly: c.commanded([][]string{replica}, [][]string{master}),
		redisFull:     c.commanded([][]string{noMemory}, [][]string{anyMemory}),
		redisForgets: func(context.Context, Fault) (func(context.Context) error, error) {
			return meanwhile(700*time.Millisecond, func(ctx context.Context) {
				if err := c.tell(ctx, []string{"FLUSHALL"}, []string{"SCRIPT", "FLUSH"}); err != nil && ctx.Err() == nil {
					c.note("Redis forgets nothing: %v", err)
				}
			}), nil
		},
		RedisRefused: func(context.Context, Fault) (func(context.Context) error, error) {
			return c.wires.redis.heal, c.wires.redis.refuse()
		},
		redisDark:  wired("both", "timeout", dark),
		redisLate:  wired("both", "latency", attributes{"latency": 400, "jitter": 200}), // a call gives up sooner
		redisReset: wired("downstream", "reset_peer", attributes{"timeout": 200}),
	}
}

// Commands of Redis, and those that undo them.
var (
	replica   = []string{"REPLICAOF", "127.0.0.1", "1"} // of nobody: it takes no writes
	master    = []string{"REPLICAOF", "NO", "ONE"}
	noMemory  = []string{"CONFIG", "SET", "maxmemory", "1"}
	anyMemory = []string{"CONFIG", "SET", "maxmemory", "0"}
)

// commanded tells Redis some commands, and others to undo them.
func (c *campaign) commanded(do, undo [][]string) inject {
	return func(ctx context.Context, _ Fault) (func(context.Context) error, error) {
		return func(ctx context.Context) error { return c.tell(ctx, undo...) }, c.tell(ctx, do...)
	}
}

func (c *campaign) tell(ctx context.Context, commands ...[]string) error {
	var errs []error
	for _, command := range commands {
		_, err := c.redis.Handle().Output(ctx, append([]string{"redis-cli", "-e", "--no-auth-warning", "-a", password}, command...)...)
		if err != nil {
			errs = append(errs, fmt.Errorf("tell Redis %s: %w", command[0], err))
		}
	}
	return errors.Join(errs...)
}

// wholeRedis has Redis run, take writes and have memory.
func (c *campaign) wholeRedis(ctx context.Context) error {
	if !c.lanes {
		return nil
	}
	server := c.redis.Handle()
	if err := server.Thaw(ctx); err != nil {
		return err
	}
	running, err := server.Running(ctx)
	if err != nil {
		return err
	}
	if !running {
		if err := server.Start(ctx); err != nil {
			return err
		}
	}
	return c.tell(ctx, master, anyMemory)
}
