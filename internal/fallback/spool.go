package fallback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Spool is an open spool directory. Its methods are safe for concurrent use; Recover runs one at a time.
type Spool struct {
	cfg     Config
	fsys    FS
	log     zerolog.Logger
	lim     limits
	chunk   int // bytes published at a time
	held    int // bytes of lines that stay in memory between the check of a file and its publishing
	lock    File
	locked  atomic.Pointer[[2]uint64] // device and inode of lock; nil: not known
	locking chan struct{}             // has an element while somebody looks after lock
	id      string                    // of the directory; empty: it could be neither read nor written
	usage   *usage
	counter atomic.Uint64

	life   sync.RWMutex // every method that touches the disk holds it for reading
	closed bool

	recovering sync.Mutex // guards the fields below: one file at a time
	toRecover  scanner
	history    history
	rounds     rounds

	unsynced atomic.Bool // a crash may bring back deleted files

	evicting sync.Mutex // one eviction at a time
	toEvict  scanner

	warned warned
	aged   atomic.Bool // the age alarm was raised
}

// Open takes the directory for this process. It creates it (0700) or checks it (ErrUnsafeDir), locks it (ErrLocked),
// removes tmp files and orphan metas, and counts the rest. No file in it can make Open fail. An error means that the
// directory itself cannot be used; a later Open may succeed.
func Open(cfg Config, fsys FS, logger zerolog.Logger) (*Spool, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	s := &Spool{
		cfg:       cfg,
		fsys:      fsys,
		log:       logger,
		lim:       defaultLimits,
		chunk:     4 << 20,
		held:      16 << 20,
		locking:   make(chan struct{}, 1),
		usage:     newUsage(),
		toRecover: scanner{fsys: fsys, limit: cfg.ScanLimit},
		toEvict:   scanner{fsys: fsys, limit: cfg.ScanLimit},
		history:   newHistory(32 * cfg.ScanLimit), // of more files than one scan sees
	}
	if err := s.open(); err != nil {
		return nil, fmt.Errorf("open spool %s: %w", cfg.Dir, errors.Join(err, s.letGo()))
	}
	s.rounds.every = cfg.OversizeEvery
	s.unsynced.Store(true) // an earlier process may have ended between deletion and sync
	s.checkAge()
	return s, nil
}

func (s *Spool) open() error {
	info, err := s.fsys.Prepare()
	if err != nil {
		return err
	}
	if !info.Own || !info.Mode.IsDir() {
		return ErrUnsafeDir
	}
	if err := s.tighten(info); err != nil {
		return err
	}
	if s.lock, err = s.fsys.Lock(lockName); err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	s.identify()
	return s.sweep()
}

// tighten makes a new directory, or one of the spool, private. It leaves others alone, because the setting may name a
// directory with other uses.
func (s *Spool) tighten(info Info) error {
	if info.Mode.Perm()&0o077 == 0 {
		return nil
	}
	mine, err := s.emptyOrMine()
	if err != nil {
		return err
	}
	if mine && info.Mode&fs.ModeSticky == 0 {
		return s.fsys.Chmod(0o700)
	}
	if info.Mode.Perm()&0o022 != 0 {
		return ErrUnsafeDir
	}
	s.log.Warn().Str("dir", s.cfg.Dir).Str("hint", "set the mode of the directory to 0700").Msg("spool directory found readable by others")
	return nil
}

func (s *Spool) emptyOrMine() (bool, error) {
	info, err := s.fsys.Lstat(lockName)
	if err == nil {
		return info.ours(), nil
	}
	dir, err := s.fsys.ReadDir()
	if err != nil {
		return false, err
	}
	names, err := dir.Names(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) == 0, errors.Join(err, dir.Close())
}

// Held returns the id of the spool's directory, and whether it may have records now. The number since rises with each change
// of that. The id is empty if the disk failed. Held never waits for the disk.
func (s *Spool) Held() (id string, since int64, holds bool) {
	since, holds = s.usage.held()
	return s.id, since, holds
}

// Stats returns the present counters. It never waits for the disk.
func (s *Spool) Stats() Stats { return s.usage.snapshot() }

// MaxBytes returns the size limit of the spool: [Config].MaxBytes, or its default.
func (s *Spool) MaxBytes() int64 { return s.cfg.MaxBytes }

// Close waits for running calls, then gives the directory up.
func (s *Spool) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.letGo()
}

func (s *Spool) letGo() error {
	errs := []error{s.toRecover.close(), s.toEvict.close()}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(append(errs, s.fsys.Close())...)
}

// enter keeps Close waiting until leave is called.
func (s *Spool) enter(ctx context.Context) (leave func(), err error) {
	s.life.RLock()
	if s.closed {
		s.life.RUnlock()
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		s.life.RUnlock()
		return nil, err
	}
	return s.life.RUnlock, nil
}

// name generates the stem of the next file. The lock excludes other processes, so a free name stays free.
func (s *Spool) name(oversize bool) (stem, error) {
	for {
		f := newStem(time.Now(), s.cfg.Instance, s.counter.Add(1), oversize)
		_, errData := s.fsys.Lstat(f.data())
		_, errMeta := s.fsys.Lstat(f.meta())
		if errors.Is(errData, fs.ErrNotExist) && errors.Is(errMeta, fs.ErrNotExist) {
			return f, nil
		}
		for _, err := range []error{errData, errMeta} {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return stem{}, err
			}
		}
	}
}
