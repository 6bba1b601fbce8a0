package fallback

import (
	"sync"
	"time"
)

// note logs a failure that costs nothing but tidiness. Errors here are the
// disk's and name files of ours; no line's content reaches them.
func (s *Spool) note(act, file string, err error) {
	if err != nil {
		s.log.Warn().Str("act", act).Str("file", file).Err(err).Msg("spool housekeeping failed")
	}
}

// warnForeign says once that a name in the directory is left alone.
func (s *Spool) warnForeign(name string) {
	if s.warned.first(name) {
		s.log.Warn().Str("file", name).Str("hint", "remove the file").Msg("unknown spool file ignored")
	}
}

// warned remembers names in bounded memory; beyond it there is silence rather
// than a flood.
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

// checkAge raises one alarm when the oldest file passes MaxAge, and another
// only after the spool has been younger in between.
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
