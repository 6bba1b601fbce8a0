package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dir is a storage in a directory. The first Put makes a missing directory (0700). Files are 0600.
func Dir(path string) Shelf { return &dir{filepath.Clean(path)} }

type dir struct{ path string }

const tmpSuffix = ".tmp"

func (d *dir) String() string { return d.path }

// Present reports whether the directory is there. One that is missing lists as empty, as nothing may be archived yet.
func (d *dir) Present() error {
	switch _, err := os.Stat(d.path); {
	case errors.Is(err, fs.ErrNotExist):
		return &ShelfError{Err: errors.New("the directory does not exist"), Do: "mount it; or make it, if nothing was archived yet"}
	case err != nil:
		return shelved(err)
	}
	return nil
}

func (d *dir) file(name string) (string, error) {
	folder, base := cutFolder(name)
	if base == "" || base != filepath.Base(base) || strings.HasPrefix(base, ".") || folder != "" && !folderForm.MatchString(folder) {
		return "", fmt.Errorf("name %q: %w", name, fs.ErrInvalid)
	}
	return filepath.Join(d.path, filepath.FromSlash(folder), base), nil
}

// cutFolder cuts a name behind its last slash.
func cutFolder(name string) (folder, base string) {
	i := strings.LastIndexByte(name, '/') + 1
	return name[:i], name[i:]
}

// Put writes a temporary file, syncs it, renames it and syncs the directory. So a file with its name is whole, also
// after a power cut.
func (d *dir) Put(ctx context.Context, name string, r io.Reader) error {
	return shelved(d.put(ctx, name, r))
}

func shelved(err error) error {
	if err == nil {
		return nil
	}
	return &ShelfError{Err: err}
}

func (d *dir) put(ctx context.Context, name string, r io.Reader) error {
	target, err := d.file(name)
	if err != nil {
		return err
	}
	if err := makeDir(filepath.Dir(target)); err != nil {
		return err
	}
	beside := besides(target)
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed process
		return err
	}
	f, err := os.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close(), ctx.Err())
	if err == nil {
		err = os.Rename(beside, target)
	}
	if err != nil {
		_ = os.Remove(beside) // the next Put of that name removes it too
		return err
	}
	return syncDir(filepath.Dir(target))
}

func (d *dir) Get(_ context.Context, name string) (io.ReadCloser, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, shelved(err)
	}
	return f, nil
}

// section is a part of an open file.
type section struct {
	io.Reader
	io.Closer
}

func (d *dir) Range(_ context.Context, name string, offset, length int64) (io.ReadCloser, error) {
	path, err := d.file(name)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, shelved(err)
	}
	return section{io.NewSectionReader(f, offset, length), f}, nil
}

func (d *dir) List(ctx context.Context, prefix string) ([]string, error) {
	if foldersForm.MatchString(prefix) {
		return d.listFolders(ctx, prefix)
	}
	folder, prefix := cutFolder(prefix)
	if folder != "" && !folderForm.MatchString(folder) {
		return nil, fmt.Errorf("name %q: %w", folder, fs.ErrInvalid)
	}
	entries, err := os.ReadDir(filepath.Join(d.path, filepath.FromSlash(folder)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, shelved(err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), prefix) && !strings.HasSuffix(e.Name(), tmpSuffix) {
			names = append(names, folder+e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// listFolders lists the folders of all days of a table.
func (d *dir) listFolders(ctx context.Context, prefix string) (names []string, err error) {
	table, _ := cutFolder(prefix)
	folders, err := os.ReadDir(filepath.Join(d.path, filepath.FromSlash(table)))
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, shelved(err)
	}
	for _, f := range folders { // in order
		if folder := table + f.Name() + "/"; f.IsDir() && folderForm.MatchString(folder) {
			some, err := d.List(ctx, folder)
			if err != nil {
				return nil, err
			}
			names = append(names, some...)
		}
	}
	return names, nil
}

func (d *dir) Remove(_ context.Context, name string) error {
	path, err := d.file(name)
	if err != nil {
		return err
	}
	removed := false
	for _, path := range []string{besides(path), path} { // a killed Put leaves the first
		err := os.Remove(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return shelved(err)
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	return shelved(syncDir(filepath.Dir(path)))
}

// besides returns the name of the temporary file of a file. Engines that read a folder leave out names with a dot.
func besides(path string) string {
	folder, base := filepath.Split(path)
	return folder + "." + base + tmpSuffix
}

// makeDir makes missing directories and syncs each parent. A power cut that removes a directory would remove its
// files.
func makeDir(path string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
		}
		return nil
	}
	parent := filepath.Dir(path)
	if parent != path {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
