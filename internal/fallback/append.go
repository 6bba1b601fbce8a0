package fallback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Append gives lines a home. When it returns nil, each of them is on disk in a synced file in a synced directory.
// After an error none of them has a home here, and the caller keeps them all. Some may still be published later.
// Oversize lines go into a file of their own.
//
// Errors: ErrFull before anything is written; ErrTooLong; ErrClosed. Others wrap the failed act and the error number
// of the disk. The end of a context is noticed between two disk operations, never inside one.
func (s *Spool) Append(ctx context.Context, lines []Line) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return fmt.Errorf("append to spool: %w", err)
	}
	defer leave()
	if err = s.keepLock(ctx); err == nil {
		err = s.append(ctx, lines)
	}
	if err != nil {
		return fmt.Errorf("append to spool: %w", err)
	}
	return nil
}

func (s *Spool) append(ctx context.Context, lines []Line) error {
	s.checkAge()
	if s.cfg.OnFull == Hold && !s.usage.fits(1, s.cfg.MaxBytes) {
		return ErrFull // lines without room need no compression
	}
	images, err := s.images(lines)
	if err != nil || len(images) == 0 {
		return err
	}
	var size int64
	for _, im := range images {
		size += im.size()
	}
	if err := s.makeRoom(ctx, size); err != nil {
		return err
	}
	defer s.usage.unreserve(size)
	for i, im := range images {
		if err := s.write(ctx, im); err != nil {
			for _, done := range images[:i] {
				s.takeBack(done)
			}
			return err
		}
	}
	s.usage.count(func(st *Stats) { st.AppendedRecords += uint64(len(lines)) })
	return nil
}

// images builds files of the ordinary lines and of the oversize ones, one of each if they fit.
func (s *Spool) images(lines []Line) ([]*image, error) {
	var images []*image
	for _, oversize := range []bool{false, true} {
		var alike []Line
		for _, l := range lines {
			if l.Oversize == oversize {
				alike = append(alike, l)
			}
		}
		if len(alike) == 0 {
			continue
		}
		built, err := s.imagesOf(alike, oversize)
		if err != nil {
			return nil, err
		}
		images = append(images, built...)
	}
	return images, nil
}

// imagesOf builds one file, or more if the lines are too long together.
func (s *Spool) imagesOf(lines []Line, oversize bool) ([]*image, error) {
	im, err := s.image(len(lines), oversize, func(add func(Line) error) error {
		for _, l := range lines {
			if err := add(l); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, ErrTooLong) || len(lines) == 1 {
		return []*image{im}, err
	}
	first, err := s.imagesOf(lines[:len(lines)/2], oversize)
	if err != nil {
		return nil, err
	}
	second, err := s.imagesOf(lines[len(lines)/2:], oversize)
	return append(first, second...), err
}

// image builds a file of n lines. each passes them to add.
func (s *Spool) image(n int, oversize bool, each func(add func(Line) error) error) (*image, error) {
	w, err := newImageWriter(n, s.lim)
	if err != nil {
		return nil, err
	}
	if err := each(w.add); err != nil {
		return nil, err
	}
	f, err := s.name(oversize)
	if err != nil {
		return nil, fmt.Errorf("find a free name: %w", err)
	}
	return w.finish(f, time.Now())
}

// write takes an image through the steps of the package comment. Meanwhile the stem is claimed. Otherwise a scan
// could take a new meta, which comes shortly before its data, for an orphan.
func (s *Spool) write(ctx context.Context, im *image) error {
	f := im.stem
	if !s.usage.claim(f) {
		return fmt.Errorf("claim %s: %w", f.data(), fs.ErrExist)
	}
	defer s.usage.release(f)
	steps := []func() error{
		func() error { return s.writeTmp(f.data(), im.data) },
		func() error { return s.writeTmp(f.meta(), im.meta) },
		func() error { return s.fsys.Rename(tmpName(f.meta()), f.meta()) },
		func() error { return s.fsys.Rename(tmpName(f.data()), f.data()) }, // it can be found from here on
		func() error { return s.fsys.SyncDir(".") },
	}
	const naming = 3 // the step that makes the data file visible
	for i, step := range steps {
		err := ctx.Err()
		if err == nil {
			err = step()
		}
		if err != nil {
			s.abandon(im, i >= naming)
			return fmt.Errorf("write %s: %w", f.data(), err)
		}
	}
	s.usage.add(f, im.size(), im.lines)
	return nil
}

// writeTmp writes, syncs and closes a new file under its tmp name. After one failed sync it gives the file up,
// because a second sync may succeed without the data.
func (s *Spool) writeTmp(name string, content []byte) error {
	file, err := s.fsys.Create(tmpName(name))
	if err != nil {
		return err
	}
	n, err := file.Write(content)
	if err == nil && n < len(content) {
		err = errShortWrite
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

var errShortWrite = errors.New("short write")

// abandon removes the files of a failed write, as far as the disk allows. The next Open removes tmp files that stay.
// A data file that stays is whole: it is counted and will be published.
func (s *Spool) abandon(im *image, named bool) {
	f := im.stem
	if named {
		defer s.unsynced.Store(true) // a crash might bring back the removed files
	}
	for _, name := range []string{tmpName(f.data()), tmpName(f.meta()), f.data()} {
		err := s.fsys.Remove(name)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		s.note("remove unfinished spool file", name, err)
		if named && name == f.data() && s.mayExist(name) {
			s.usage.add(f, im.size(), im.lines)
			return // its meta stays too
		}
	}
	if err := s.fsys.Remove(f.meta()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.note("remove unfinished spool file", f.meta(), err)
	}
}

func (s *Spool) mayExist(name string) bool {
	_, err := s.fsys.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// takeBack removes a whole file whose sibling could not be written, because the append fails as a whole. If the
// removal fails, the file is published later.
func (s *Spool) takeBack(im *image) {
	if s.usage.claim(im.stem) {
		defer s.usage.release(im.stem)
		s.note("take back spool file", im.stem.data(), s.remove(im.stem))
	}
}

// makeRoom reserves size bytes, evicting where that is the policy.
func (s *Spool) makeRoom(ctx context.Context, size int64) error {
	if size > s.cfg.MaxBytes {
		return ErrFull // eviction cannot help
	}
	if s.cfg.OnFull == Evict {
		s.dropExpired(ctx)
	}
	for !s.usage.reserve(size, s.cfg.MaxBytes) {
		if s.cfg.OnFull != Evict {
			return ErrFull
		}
		evicted, err := s.evictOldest(ctx, size)
		if err != nil {
			return fmt.Errorf("evict: %w", err)
		}
		if evicted == 0 {
			return ErrFull
		}
	}
	return nil
}
