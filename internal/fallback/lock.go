package fallback

import (
	"context"
	"fmt"
	"io"
)

// keepLock makes sure that the lock file is the one that this process holds. If somebody removed or replaced it, another process
// may have the directory: then the lock is taken again, or the error is ErrLocked. Nobody waits for the disk of another call, but
// where the lock is not known to be held.
func (s *Spool) keepLock(ctx context.Context) error {
	named, err := s.fsys.Lstat(lockName)
	switch held := s.locked.Load(); {
	case ignoreMissing(err) != nil:
		return fmt.Errorf("look at the lock: %w", err)
	case err == nil && held != nil && named.ID == *held:
		return nil
	}
	select {
	case s.locking <- struct{}{}:
		defer func() { <-s.locking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	held, err := s.lock.Stat()
	if err != nil {
		return fmt.Errorf("look at the lock: %w", err)
	}
	switch named, err := s.fsys.Lstat(lockName); {
	case err == nil && named.ID == held.ID:
		s.locked.Store(&held.ID)
		return nil
	case ignoreMissing(err) != nil:
		return fmt.Errorf("look at the lock: %w", err)
	}
	taken, err := s.fsys.Lock(lockName)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	s.log.Warn().Str("dir", s.cfg.Dir).Str("hint", "leave the file "+lockName+" alone while a program runs").Msg("spool lock file taken again")
	s.note("identify spool directory", lockName, s.identifyAgain(taken))
	s.note("close the former spool lock", lockName, s.lock.Close())
	s.lock = taken
	s.locked.Store(nil) // the next call looks which file that is
	return nil
}

// identifyAgain writes the id and the opening of this process behind what another lock file has.
func (s *Spool) identifyAgain(file File) error {
	text, err := io.ReadAll(io.LimitReader(file, mostIdentities))
	if err != nil || s.id == "" {
		return err
	}
	since, _ := s.usage.held()
	return inscribe(file, text, s.id, since>>changesBits)
}
