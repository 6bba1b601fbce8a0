package app

import (
	"context"
	"errors"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/kafka"
	"docket/internal/service/telemetry"
)

// sources is one source for each lane, read as one.
type sources []Source

var _ Source = sources(nil)

// Run reads all sources. The first that ends or fails ends the others, and all bring their batches in hand home.
func (all sources) Run(ctx context.Context, carry func(context.Context, Assignment) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var running errgroup.Group
	for _, s := range all {
		running.Go(func() error {
			defer stop()
			return s.Run(ctx, carry)
		})
	}
	return running.Wait()
}

// Assigned is how many partitions of all lanes are ours.
func (all sources) Assigned() (n int) {
	for _, s := range all {
		n += s.Assigned()
	}
	return n
}

// Partitions is how many partitions the topics of all lanes have. It is 0 while one of them is not known. A topic that is
// missing or may not be read has none: the other lanes keep their shares of a limit.
func (all sources) Partitions() (n int) {
	for _, s := range all {
		one := s.Partitions()
		if one == 0 && !isUnreadable(s.Fault()) {
			return 0
		}
		n += one
	}
	return n
}

// isUnreadable reports whether a fault is that the topic is missing or may not be read.
func isUnreadable(err error) bool {
	var fault *kafka.FaultError
	return errors.As(err, &fault) && (fault.Reason == kafka.ReasonTopicMissing || fault.Reason == kafka.ReasonAuthorization)
}

// Unowned is how many partitions of all lanes no shard has.
func (all sources) Unowned() (n int) {
	for _, s := range all {
		if of, ok := s.(interface{ Unowned() int }); ok {
			n += of.Unowned()
		}
	}
	return n
}

// Joined says whether every group has given us an assignment.
func (all sources) Joined() bool {
	for _, s := range all {
		if !s.Joined() {
			return false
		}
	}
	return true
}

// Lag tells how far each partition of all lanes is behind.
func (all sources) Lag() (lags []telemetry.Lag) {
	for _, s := range all {
		lags = append(lags, s.Lag()...)
	}
	return lags
}

// LastCommit is the last commit of any lane.
func (all sources) LastCommit() (last time.Time) {
	for _, s := range all {
		if at := s.LastCommit(); at.After(last) {
			last = at
		}
	}
	return last
}

// Retention is what all sources know of topics.
func (all sources) Retention() map[string]time.Duration {
	kept := map[string]time.Duration{}
	for _, s := range all {
		maps.Copy(kept, s.Retention())
	}
	return kept
}

// Fault is the first fault of a lane. Each lane has [Faults] of its own, which know all of them.
func (all sources) Fault() error {
	for _, s := range all {
		if err := s.Fault(); err != nil {
			return err
		}
	}
	return nil
}
