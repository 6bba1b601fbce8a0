package fallback

import (
	"sync"
	"time"
)

// note logs a failure to clean up, which loses nothing. The errors are the disk's and name files of the spool. They
// contain no line's content.
func (s *Spool) note(act, file string, err error) {
	if err != nil {
		s.log.Warn().Str("act", act).Str("file", file).Err(err).Msg("spool housekeeping failed")
	}
}

// warnForeign logs once that an unknown name in the directory is left alone.
func (s *Spool) warnForeign(name string) {
	if s.warned.first(name) {
		s.log.Warn().Str("file", name).Str("hint", "remove the file").Msg("unknown spool file ignored")
	}
}

// warned remembers names in bounded memory. Beyond that it stops logging, to avoid a flood.
type warned struct {
	mu    sync.Mutex
	names map[string]struct{}
}

const maxWarned = 1000

func (w *warned) first(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.names[name]; seen || len(w.names) >= maxWarned {
		return false
	}
	if w.names == nil {
		w.names = make(map[string]struct{})
	}
	w.names[name] = struct{}{}
	return true
}

// checkAge raises one alarm when the oldest file passes MaxAge. It raises another only after the spool was younger in
// between.
func (s *Spool) checkAge() {
	oldest := s.usage.snapshot().Oldest
	if oldest.IsZero() || !s.expired(oldest) {
		s.aged.Store(false)
		return
	}
	if !s.aged.Swap(true) {
		s.log.Warn().Time("oldest", oldest).Dur("max_age", s.cfg.MaxAge).Str("hint", "check the brokers and the topic").Msg("spool file exceeded maximum age")
	}
}

func (s *Spool) expired(created time.Time) bool {
	return s.cfg.MaxAge > 0 && time.Since(created) > s.cfg.MaxAge
}
