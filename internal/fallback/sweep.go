package fallback

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
)

// sweep reads the directory once, at the start. It removes tmp files and orphan metas, and counts the others. Trouble
// with one file never stops it.
func (s *Spool) sweep() error {
	dir, err := s.fsys.ReadDir()
	if err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	removed := false
	for err == nil {
		var names []string
		names, err = dir.Names(s.cfg.ScanLimit)
		for _, name := range names {
			removed = s.sweepOne(name) || removed
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("read directory: %w", err)
	}
	slices.SortFunc(s.usage.oversize, func(a, b oversizeFile) int { return older(a.stem, b.stem) })
	if removed {
		s.note("sync spool directory", "", s.fsys.SyncDir("."))
	}
	return nil
}

func (s *Spool) sweepOne(name string) (removed bool) {
	f, k := classify(name)
	switch k {
	case kindTmp:
		return s.sweepTmp(name)
	case kindMeta:
		return s.sweepMeta(f, name)
	case kindData:
		s.sweepData(f)
	case kindForeign:
		s.warnForeign(name)
	}
	return false
}

// sweepTmp removes a file that never became a home.
func (s *Spool) sweepTmp(name string) bool {
	info, err := s.fsys.Lstat(name)
	if err == nil && !info.ours() {
		s.warnForeign(name)
		return false
	}
	if err == nil {
		err = s.fsys.Remove(name)
	}
	s.note("sweep spool tmp file", name, err)
	return err == nil
}

// sweepLeft removes a tmp file that a failing disk kept when its write was given up. A file that is being written is
// claimed.
func (s *Spool) sweepLeft(name string) {
	f, _ := classify(name)
	if !s.usage.claim(f) {
		return
	}
	defer s.usage.release(f)
	if s.mayExist(name) { // it may have got its name since the directory was read
		s.sweepTmp(name)
	}
}

// sweepMeta removes a meta without its data, because it holds no record.
func (s *Spool) sweepMeta(f stem, name string) bool {
	s.counter.Store(max(s.counter.Load(), f.counter))
	info, err := s.fsys.Lstat(name)
	if err == nil && !info.ours() {
		s.warnForeign(name)
		return false
	}
	if err != nil {
		s.note("look at spool meta", name, err)
		return false
	}
	_, err = s.fsys.Lstat(f.data())
	switch {
	case err == nil:
		s.usage.grow(info.Size)
		return false
	case !errors.Is(err, fs.ErrNotExist):
		s.note("look at spool file", f.data(), err)
		return false
	}
	err = s.fsys.Remove(name)
	s.note("remove orphan spool meta", name, err)
	return err == nil
}

func (s *Spool) sweepData(f stem) {
	s.counter.Store(max(s.counter.Load(), f.counter))
	info, err := s.fsys.Lstat(f.data())
	if err == nil && !info.ours() {
		s.warnForeign(f.data())
		return
	}
	s.note("look at spool file", f.data(), err)
	records := 0
	if f.oversize() {
		records = s.countRecords(f)
	}
	s.usage.add(f, info.Size, records)
}

// countRecords reads the number from the meta, or from the data if the meta is lost. A file that cannot be read
// counts as one record, never as none.
func (s *Spool) countRecords(f stem) int {
	if m, err := s.readMeta(f); err == nil && m != nil && m.NumEvents > 0 {
		return m.NumEvents
	}
	found, err := s.inspect(f, 0)
	if err != nil {
		return 1
	}
	return max(1, found.lines)
}

func (s *Spool) inspect(f stem, hold int) (*findings, error) {
	file, err := s.fsys.Open(f.data())
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	found, err := inspect(file, s.lim, hold)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	found.file = info
	return found, nil
}
