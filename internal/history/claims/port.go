package claims

import (
	"context"
	"errors"
	"time"
)

// Priority orders claims of one key.
type Priority int

const (
	// Low is for work that nobody waits for, such as a warm-up.
	Low Priority = iota
	// High is for work that a person waits for.
	High
)

// ErrTaken says that work of low priority is not done, because another process does it.
var ErrTaken = errors.New("another process does this work")

// Port keeps claims for all processes that share it. It is safe for concurrent use. A key has 1 to 200 bytes of ASCII. A
// lease is at least a microsecond and at most an hour. An error says that the port is away.
type Port interface {
	// Begin claims a key for the lease. version is 0 if another claim holds, unless that one is of lower priority.
	Begin(ctx context.Context, key string, p Priority, lease time.Duration) (version int64, err error)
	// Keep makes a claim last for the lease from now on. It reports false if the claim of this version is over.
	Keep(ctx context.Context, key string, version int64, lease time.Duration) (kept bool, err error)
	// End ends the claim of this version, and no other. It reports false if that claim was over before.
	End(ctx context.Context, key string, version int64) (ended bool, err error)
}
