package fallback

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Publisher sends records to their topics. Publish returns one error for each record, in order; nil means
// acknowledged. Records without an answer count as refused.
type Publisher interface {
	Publish(ctx context.Context, records []*kgo.Record) []error
}

// Recovery is the result of one Recover.
type Recovery struct {
	File     string // name of the data file; empty if there was none to take
	Acked    int    // records acknowledged, also in earlier rounds
	Oversize int    // records refused as too large; they wait in an oversize file
	Failed   int    // records tried and not acknowledged
	Corrupt  bool   // the file was broken and is now in corrupt/
	Done     bool   // the file is gone from the spool
}

// Recover takes one file, the oldest of at most ScanLimit directory entries, and publishes its records. It reads and
// checks the whole file before it sends anything. It deletes the file only after every record was acknowledged. Until
// then it remembers in memory which records were, so a record may be published twice after a restart. After failures
// the order is mixed, so that every file gets its turn.
//
// Errors: *PublishError if the publisher refused, ErrClosed, ctx's error, or one that wraps the failed act and the
// error number of the disk. None of them loses a record.
func (s *Spool) Recover(ctx context.Context, p Publisher) (Recovery, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return Recovery{}, fmt.Errorf("recover from spool: %w", err)
	}
	defer leave()
	s.recovering.Lock()
	defer s.recovering.Unlock()
	s.checkAge()
	if err := s.keepLock(ctx); err != nil {
		return Recovery{}, fmt.Errorf("recover from spool: %w", err)
	}
	s.syncDeleted()
	f, ok, err := s.take()
	if err != nil {
		return Recovery{}, fmt.Errorf("recover from spool: %w", err)
	}
	if !ok {
		return Recovery{}, nil
	}
	defer s.usage.release(f)
	r := Recovery{File: f.data()}
	if err := s.recoverFile(ctx, p, f, &r); err != nil {
		s.history.fail(f)
		return r, fmt.Errorf("recover from spool: %w", err)
	}
	if r.Done {
		s.history.forget(f)
	}
	return r, nil
}

func (s *Spool) recoverFile(ctx context.Context, p Publisher, f stem, r *Recovery) error {
	if d, ok := s.history.delivered[f.text]; ok { // only the removal failed last time
		return s.settle(f, d, r)
	}
	found, err := s.judge(f)
	if err != nil {
		return fmt.Errorf("validate %s: %w", f.data(), err)
	}
	sent, err := s.publish(ctx, p, f, found)
	r.Acked, r.Failed = sent.acked, sent.failed
	if err == nil {
		err = sent.refusal(f)
	}
	if errors.Is(err, errChanged) { // other lines were acknowledged
		s.history.drop(f)
		return err
	}
	if err != nil {
		s.remember(f, sent)
		return s.giveUpExpired(ctx, f, err, r)
	}
	if len(sent.tooLarge) > 0 {
		r.Oversize = len(sent.tooLarge)
		if f.oversize() && found.fault == "" && sent.acked == 0 {
			return nil // it waits unchanged for its next round
		}
		if err := s.moveOversize(ctx, f, found, sent.tooLarge); err != nil {
			s.history.keep(f, sent.lines)
			return fmt.Errorf("set oversize records of %s apart: %w", f.data(), err)
		}
	}
	s.usage.count(func(st *Stats) { st.RecoveredRecords += uint64(sent.acked) })
	return s.settle(f, delivered{found.fault, found.file}, r)
}

// remember notes the acknowledged lines of a file that failed. It forgets them if reading ended before they were known to be
// those of the file: then all are published again.
func (s *Spool) remember(f stem, sent sent) {
	if sent.unsure {
		s.history.drop(f)
		return
	}
	s.history.keep(f, sent.lines)
}

// take claims the file to recover. While a round of oversize files is due, the two kinds alternate.
func (s *Spool) take() (stem, bool, error) {
	due := s.rounds.due(s.usage.snapshot().OversizeFiles)
	if due && s.rounds.turn() {
		if f, ok := s.takeOversize(); ok {
			return f, true, nil
		}
	}
	f, ok, err := s.takeOldest()
	if ok || err != nil || !due {
		return f, ok, err
	}
	f, ok = s.takeOversize()
	return f, ok, nil
}

func (s *Spool) takeOldest() (stem, bool, error) {
	seen, err := s.toRecover.window()
	if err != nil {
		return stem{}, false, err
	}
	for _, name := range seen.foreign {
		s.warnForeign(name)
	}
	for _, name := range seen.tmp {
		s.sweepLeft(name)
	}
	var last error
	for _, f := range s.history.order(seen.files) {
		if f.oversize() {
			continue
		}
		ok, err := s.hold(f)
		if ok {
			return f, true, nil
		}
		if err != nil {
			last = err
		}
	}
	return stem{}, false, last
}

func (s *Spool) takeOversize() (stem, bool) {
	for s.rounds.next() {
		f, ok := s.usage.nextOversize()
		if !ok {
			continue
		}
		s.usage.release(f)
		ok, err := s.hold(f)
		if ok {
			return f, true
		}
		s.note("look at oversize spool file", f.data(), err)
		if err == nil && !s.mayExist(f.data()) { // removed by hand
			s.usage.remove(f, 0)
		}
	}
	return stem{}, false
}

// hold claims a file that may be opened. If a stem has only a meta, the meta is removed, because it holds no record.
func (s *Spool) hold(f stem) (bool, error) {
	if !s.usage.claim(f) {
		return false, nil
	}
	info, err := s.fsys.Lstat(f.data())
	if err == nil && info.ours() {
		return true, nil
	}
	defer s.usage.release(f)
	switch {
	case err == nil:
		s.warnForeign(f.data())
		return false, nil
	case errors.Is(err, fs.ErrNotExist):
		s.removeOrphan(f)
		return false, nil
	}
	return false, fmt.Errorf("find the data of a spool file: %w", err)
}

func (s *Spool) removeOrphan(f stem) {
	for _, name := range []string{f.meta(), f.data() + metaSuffix} {
		info, err := s.fsys.Lstat(name)
		if err != nil || !info.ours() {
			continue
		}
		err = s.fsys.Remove(name)
		s.note("remove orphan spool meta", name, err)
	}
}

// judge reads the whole file, and rebuilds a lost meta.
func (s *Spool) judge(f stem) (*findings, error) {
	found, err := s.inspect(f, s.held)
	if err != nil {
		return nil, err
	}
	m, err := s.readMeta(f)
	if err != nil {
		return nil, err
	}
	found.compare(m)
	if m == nil && found.fault == "" {
		s.note("rebuild spool meta", f.meta(), s.rebuildMeta(f, found))
	}
	return found, nil
}

func (s *Spool) rebuildMeta(f stem, found *findings) error {
	content, err := meta{
		NumEvents: found.lines,
		CreatedAt: f.created().UTC(),
		SHA256:    found.sha256,
		Bytes:     found.bytes,
	}.encode()
	if err != nil {
		return err
	}
	old, errOld := s.fsys.Lstat(f.meta())
	if errOld == nil && !old.ours() {
		return errForeign
	}
	if err := s.writeTmp(f.meta(), content); err != nil {
		return errors.Join(err, ignoreMissing(s.fsys.Remove(tmpName(f.meta()))))
	}
	if err := s.fsys.Rename(tmpName(f.meta()), f.meta()); err != nil {
		return err
	}
	s.usage.grow(int64(len(content)) - old.Size)
	return s.fsys.SyncDir(".")
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
