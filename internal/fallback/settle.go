package fallback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// settle removes a file whose records all have other homes: it deletes a whole one and keeps a broken one in
// corrupt/. It remembers a failure, so that the next try removes the file without publishing again. A file that got the name
// since stays.
func (s *Spool) settle(f stem, d delivered, r *Recovery) error {
	s.history.deliver(f, d)
	switch info, err := s.fsys.Lstat(f.data()); {
	case err == nil && !info.sameContent(d.file):
		s.history.forget(f)
		return fmt.Errorf("remove %s: %w", f.data(), errChanged)
	case ignoreMissing(err) != nil:
		return fmt.Errorf("look at %s: %w", f.data(), err)
	}
	if d.broken == "" {
		if err := s.remove(f); err != nil {
			return err
		}
		r.Done = true
		return nil
	}
	if err := s.quarantine(f, d.broken); err != nil {
		return fmt.Errorf("move %s to %s/: %w", f.data(), corruptDir, err)
	}
	r.Corrupt, r.Done = true, true
	return nil
}

// remove deletes the data, then the meta, and then syncs the directory.
func (s *Spool) remove(f stem) error {
	size := s.sizeOf(f)
	if err := ignoreMissing(s.fsys.Remove(f.data())); err != nil {
		return fmt.Errorf("delete %s: %w", f.data(), err)
	}
	s.usage.remove(f, size)
	s.note("delete spool meta", f.meta(), ignoreMissing(s.fsys.Remove(f.meta())))
	if err := s.syncGone(); err != nil {
		return fmt.Errorf("sync directory after deleting %s: %w", f.data(), err)
	}
	return nil
}

// syncGone makes the deletion of files durable. It remembers a failure, because a crash could bring the files back.
// They would then be published once more, even much later.
func (s *Spool) syncGone() error {
	err := s.fsys.SyncDir(".")
	if err != nil {
		s.unsynced.Store(true)
	}
	return err
}

// syncDeleted repeats a failed syncGone.
func (s *Spool) syncDeleted() {
	if s.unsynced.CompareAndSwap(true, false) {
		s.note("sync spool directory", "", s.syncGone())
	}
}

func (s *Spool) sizeOf(f stem) int64 {
	var size int64
	for _, name := range []string{f.data(), f.meta()} {
		if info, err := s.fsys.Lstat(name); err == nil && info.ours() {
			size += info.Size
		}
	}
	return size
}

// quarantine moves a broken file and its meta to corrupt/, with the reason beside them. Nothing there is ever
// overwritten or deleted.
func (s *Spool) quarantine(f stem, why fault) error {
	if err := s.makeCorrupt(); err != nil {
		return err
	}
	target, err := s.freeTarget(f)
	if err != nil {
		return err
	}
	if err := s.writeReason(target+".reason", why); err != nil {
		return err
	}
	size := s.sizeOf(f)
	if err := s.fsys.Rename(f.data(), target); err != nil {
		return err
	}
	s.usage.remove(f, size)
	s.usage.count(func(st *Stats) { st.CorruptFiles++ })
	s.log.Error().Str("file", f.data()).Str("reason", string(why)).
		Str("hint", "check the disk and the file below corrupt/; its readable records were published").Msg("corrupt spool file set aside")
	s.note("move spool meta", f.meta(), ignoreMissing(s.fsys.Rename(f.meta(), target+metaSuffix)))
	s.note("sync corrupt/", f.data(), s.fsys.SyncDir(corruptDir))
	s.note("sync spool directory", f.data(), s.syncGone())
	return nil
}

func (s *Spool) makeCorrupt() error {
	err := s.fsys.Mkdir(corruptDir)
	if err == nil {
		return s.fsys.SyncDir(".")
	}
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := s.fsys.Lstat(corruptDir)
	if err == nil && (!info.Mode.IsDir() || !info.Own) {
		err = errForeign
	}
	return err
}

func (s *Spool) freeTarget(f stem) (string, error) {
	name := corruptDir + "/" + f.data()
	for n := 1; ; n++ {
		_, err := s.fsys.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return name, nil
		}
		if err != nil {
			return "", err
		}
		name = fmt.Sprintf("%s/%s.%d", corruptDir, f.data(), n)
	}
}

func (s *Spool) writeReason(name string, why fault) error {
	file, err := s.fsys.Create(name)
	if errors.Is(err, fs.ErrExist) {
		return nil // left by an earlier try that ended before the move
	}
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(string(why) + "\n"))
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// giveUpExpired drops a file that cannot be published and is older than MaxAge, if the policy is Evict. Otherwise it
// returns the failure.
func (s *Spool) giveUpExpired(ctx context.Context, f stem, failure error, r *Recovery) error {
	if s.cfg.OnFull != Evict || !s.expired(f.created()) || ctx.Err() != nil {
		return failure
	}
	if err := s.drop(f, "expired"); err != nil {
		return errors.Join(failure, err)
	}
	r.Done = true
	return failure
}
