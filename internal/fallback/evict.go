package fallback

import (
	"context"
	"fmt"
)

// evictOldest drops files, the oldest of a window first, until size bytes fit. It returns how many it dropped.
func (s *Spool) evictOldest(ctx context.Context, size int64) (int, error) {
	return s.evict(ctx, "full", func(stem) bool { return !s.usage.fits(size, s.cfg.MaxBytes) })
}

// dropExpired drops the expired files of a window. A failure does not fail the append.
func (s *Spool) dropExpired(ctx context.Context) {
	if !s.expired(s.usage.snapshot().Oldest) {
		return
	}
	_, err := s.evict(ctx, "expired", func(f stem) bool { return s.expired(f.created()) })
	s.note("drop expired spool files", "", err)
}

func (s *Spool) evict(ctx context.Context, why string, unwanted func(stem) bool) (dropped int, err error) {
	s.evicting.Lock()
	defer s.evicting.Unlock()
	seen, err := s.toEvict.window()
	if err != nil {
		return 0, err
	}
	for _, f := range seen.files {
		if ctx.Err() != nil || !unwanted(f) {
			break // files are in order of age
		}
		ok, err := s.hold(f)
		if err != nil {
			return dropped, err
		}
		if !ok {
			continue
		}
		err = s.drop(f, why)
		s.usage.release(f)
		if err != nil {
			return dropped, err
		}
		dropped++
	}
	return dropped, ctx.Err()
}

// drop deletes a claimed file, and counts and logs the loss.
func (s *Spool) drop(f stem, why string) error {
	records := s.countRecords(f)
	if err := s.remove(f); err != nil {
		return fmt.Errorf("drop: %w", err)
	}
	s.usage.count(func(st *Stats) { st.DroppedRecords += uint64(records) })
	s.log.Error().Str("file", f.data()).Int("records", records).Str("why", why).
		Str("hint", "set DOCKET_SPOOL_ON_FULL=hold, or give the spool a larger disk").
		Msg("spool file evicted with data loss")
	return nil
}
