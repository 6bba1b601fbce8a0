package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Outlive runs join until it returns, and logs how it ended. Once ctx ends, or join has called stop, it calls stopping.
// Then it ends the context of join, and join has the time within to return. After that time join is left as it is, and
// the error is [ErrWedged] if stop was given that, else [ErrOverdue]. If join ends by itself, stopping is not called.
func Outlive(ctx context.Context, within time.Duration, log zerolog.Logger, stopping func(), join func(ctx context.Context, stop context.CancelCauseFunc) error) error {
	working, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	var once sync.Once
	stop := func(cause error) {
		once.Do(stopping)
		end(cause)
	}
	defer context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })()
	done := make(chan error, 1)
	go func() { done <- join(working, stop) }()
	err := rest(working, within, done)
	if err != nil {
		log.Error().Err(err).Msg("program ended")
		return err
	}
	log.Info().Msg("program ended")
	return nil
}

// rest waits until what works has ended, and for so long once it is to stop.
func rest(working context.Context, within time.Duration, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-working.Done():
	}
	overdue := time.NewTimer(within)
	defer overdue.Stop()
	select {
	case err := <-done:
		return err
	case <-overdue.C:
		if errors.Is(context.Cause(working), ErrWedged) {
			return ErrWedged
		}
		return ErrOverdue
	}
}
