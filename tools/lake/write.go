package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"docket/internal/history/archive"
	"docket/internal/record/subject"
	"docket/internal/service/buildinfo"
)

// written is an archive.
type written struct {
	dir         string // the shelf
	rows, bytes int64
	files       int
	took        time.Duration
}

// subjects says how a decision's subject is found.
var subjects = subject.Spec{Kind: subject.Input, Pointer: "/user"}

func carrier(to string, rows *decisions) *archive.Carrier {
	return &archive.Carrier{Table: &table{rows}, Shelf: archive.Dir(to), By: "lake", Docket: buildinfo.Version, Now: time.Now, Subject: subjects}
}

// write archives every day as `docket archive --keep` does: it writes the day, reads it back, and compares counts and
// hashes. One day is archived without a row before, so that an archive is superseded.
func write(ctx context.Context, to string, rows *decisions) (*written, error) {
	start := time.Now()
	w := &written{dir: to}
	earlier := *rows
	earlier.plant = plant{kind: missing, day: rows.days / 3}
	if _, err := carrier(to, &earlier).Archive(ctx, rows.day(earlier.plant.day), true); err != nil {
		return nil, fmt.Errorf("archive %s: %w", rows.day(earlier.plant.day), err)
	}
	days, ctx := errgroup.WithContext(ctx)
	days.SetLimit(runtime.GOMAXPROCS(0))
	var mu sync.Mutex
	for n := range rows.days {
		days.Go(func() error {
			done, err := carrier(to, rows).Archive(ctx, rows.day(n), true)
			if err != nil {
				return fmt.Errorf("archive %s: %w", rows.day(n), err)
			}
			mu.Lock()
			defer mu.Unlock()
			w.rows, w.bytes, w.files = w.rows+done.Rows, w.bytes+done.Bytes, w.files+done.Files
			return nil
		})
	}
	if err := days.Wait(); err != nil {
		return nil, err
	}
	w.took = time.Since(start)
	return w, nil
}

// writePlanted makes a copy of an archive in which one day has a planted error.
func writePlanted(ctx context.Context, to string, whole *written, rows decisions, kind string) (*written, error) {
	rows.plant = plant{kind: kind, day: rows.days / 2}
	planted := rows.day(rows.plant.day)
	done, err := carrier(to, &rows).Archive(ctx, planted, true)
	if err != nil {
		return nil, fmt.Errorf("archive %s: %w", planted, err)
	}
	err = filepath.WalkDir(whole.dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.Contains(entry.Name(), planted.String()) {
			return err
		}
		within, err := filepath.Rel(whole.dir, name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(to, within)), 0o700); err != nil {
			return err
		}
		return os.Link(name, filepath.Join(to, within))
	})
	if err != nil {
		return nil, fmt.Errorf("copy the archive: %w", err)
	}
	return &written{dir: to, rows: done.Rows}, nil
}
