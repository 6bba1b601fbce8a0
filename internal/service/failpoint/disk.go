package failpoint

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/fallback"
)

// Disk is the spool's file system with the points of its protocol around it.
type Disk struct {
	fallback.FS
	set       *Set
	appending atomic.Bool // a data file was begun and the directory not synced since
	named     atomic.Bool // a data file got its name and the directory was not synced since
	published atomic.Bool // a recovery published something and has not deleted its file
}

// Disk puts the points of the spool around fsys.
func (s *Set) Disk(fsys fallback.FS) *Disk { return &Disk{FS: fsys, set: s} }

// The spool's names, as its documentation has them.
const (
	dataSuffix = ".jsonl.gz"
	metaSuffix = ".meta.json"
	tmpSuffix  = ".tmp"
)

func isData(name string) bool {
	return strings.HasSuffix(name, dataSuffix) && !strings.Contains(name, "/")
}

// Create makes a new file; see [fallback.FS].
func (d *Disk) Create(name string) (fallback.File, error) {
	f, err := d.FS.Create(name)
	if err != nil {
		return nil, err
	}
	switch base, tmp := strings.CutSuffix(name, tmpSuffix); {
	case tmp && isData(base):
		d.appending.Store(true)
		if err := d.set.reach(SpoolTmpCreated, syscall.EIO); err != nil {
			_ = f.Close()
			return nil, err
		}
		return &file{f, d, SpoolTmpHalfWritten, SpoolTmpSynced}, nil
	case tmp && strings.HasSuffix(base, metaSuffix) && d.appending.Load():
		return &file{f, d, "", SpoolMetaWritten}, nil
	}
	return f, nil
}

// Rename moves within the directory; see [fallback.FS].
func (d *Disk) Rename(from, to string) error {
	if err := d.FS.Rename(from, to); err != nil {
		return err
	}
	switch {
	case !strings.HasSuffix(from, tmpSuffix):
		return nil
	case isData(to):
		d.named.Store(true)
		return d.set.reach(SpoolRenamed, syscall.EIO)
	case d.appending.Load():
		return d.set.reach(SpoolMetaRenamed, syscall.EIO)
	}
	return nil
}

// SyncDir makes the entries of a directory durable; see [fallback.FS].
func (d *Disk) SyncDir(name string) error {
	if err := d.FS.SyncDir(name); err != nil {
		return err
	}
	if name == "." && d.named.Swap(false) {
		d.appending.Store(false)
		return d.set.reach(SpoolDirSynced, syscall.EIO)
	}
	return nil
}

// Remove unlinks a file; see [fallback.FS].
func (d *Disk) Remove(name string) error {
	recovered := isData(name) && d.published.Swap(false)
	if recovered {
		if err := d.set.reach(SpoolFilePublished, syscall.EIO); err != nil {
			return err
		}
	}
	if err := d.FS.Remove(name); err != nil {
		return err
	}
	if recovered {
		return d.set.reach(SpoolFileUnlinked, syscall.EIO)
	}
	return nil
}

// Recovery is the publisher to hand to a recovery of this disk.
func (d *Disk) Recovery(p pipeline.Publisher) pipeline.Publisher { return recovery{p, d} }

type recovery struct {
	pipeline.Publisher
	disk *Disk
}

func (r recovery) Publish(ctx context.Context, records []*kgo.Record) []error {
	errs := r.Publisher.Publish(ctx, records)
	for _, err := range errs {
		if err == nil {
			r.disk.published.Store(true)
		}
	}
	return errs
}

// file is a file that is being written.
type file struct {
	fallback.File
	disk         *Disk
	half, synced Point // half is empty where there is none
}

func (f *file) Write(p []byte) (int, error) {
	if f.half == "" || !f.disk.set.armed(f.half) {
		return f.File.Write(p)
	}
	n, err := f.File.Write(p[:len(p)/2])
	if err != nil {
		return n, err
	}
	if err := f.disk.set.reach(f.half, syscall.EIO); err != nil {
		return n, err
	}
	m, err := f.File.Write(p[n:])
	return n + m, err
}

func (f *file) Sync() error {
	if err := f.File.Sync(); err != nil {
		return err
	}
	return f.disk.set.reach(f.synced, syscall.EIO)
}
