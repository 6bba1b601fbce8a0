//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// tableFolder is where Postgres has the disk that can be full.
const tableFolder = "/limited"

const (
	tableDisk = "16G" // a sparse file: unused blocks take no space
	spoolDisk = "16m"
)

// disks are file systems of a limited size: one for the table, one for each spool. Where they cannot be mounted, spools
// are plain folders and nothing gets full.
type disks struct {
	dir     string
	mounted bool
	why     error    // why not
	tables  []string // of the primary and of its standby
	primary int      // which of them the primary has
	mounts  []string
}

// newDisks mounts a table's disk for each server of Postgres.
func newDisks(dir string, servers int) *disks {
	d := &disks{dir: dir}
	for i := range servers {
		table := filepath.Join(dir, fmt.Sprintf("table-%d", i))
		d.tables = append(d.tables, table)
		d.why = errors.Join(d.why, d.mountTable(table))
	}
	d.mounted = d.why == nil
	return d
}

func (d *disks) mountTable(table string) error {
	if os.Geteuid() != 0 {
		return errors.New("mounting takes root")
	}
	if err := os.Mkdir(table, 0o755); err != nil {
		return err
	}
	image := table + ".img"
	for _, command := range [][]string{
		{"truncate", "-s", tableDisk, image},
		{"mkfs.ext4", "-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard", image},
		{"mount", "-o", "loop,nosuid,nodev", image, table},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", command[0], err, out)
		}
	}
	d.mounts = append(d.mounts, table)
	return nil
}

// binds are the folders that a server of Postgres needs, counted from 0, the first primary. Every other server is a
// standby to be, and gets a new folder on the disk that the primary has not.
func (d *disks) binds(server int) ([]string, error) {
	if !d.mounted {
		return nil, nil
	}
	disk := d.tables[d.primary]
	if server > 0 {
		disk = d.tables[1-d.primary]
	}
	space := filepath.Join(disk, "space")
	if err := os.RemoveAll(space); err != nil {
		return nil, err
	}
	if err := os.Mkdir(space, 0o700); err != nil {
		return nil, err
	}
	return []string{space + ":" + tableFolder}, d.own(space)
}

// own gives a folder to whom the primary's belongs.
func (d *disks) own(space string) error {
	var is syscall.Stat_t
	if err := syscall.Stat(filepath.Join(d.tables[d.primary], "space"), &is); err != nil {
		return err
	}
	return os.Chown(space, int(is.Uid), int(is.Gid))
}

// swap says that the primary's disk is the other one.
func (d *disks) swap() { d.primary = 1 - d.primary }

// spool makes the folder of one process, on a disk of its own where that can be.
func (d *disks) spool(number int) (string, error) {
	disk := filepath.Join(d.dir, fmt.Sprintf("disk-%d", number))
	if err := os.Mkdir(disk, 0o755); err != nil {
		return "", fmt.Errorf("make a spool's disk: %w", err)
	}
	if d.mounted {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV, "size="+spoolDisk); err != nil {
			return "", fmt.Errorf("mount a spool's disk: %w", err)
		}
		d.mounts = append(d.mounts, disk)
	}
	return filepath.Join(disk, "spool"), nil
}

func (d *disks) filler(disk string) string { return filepath.Join(disk, "filler") }

// fillTable leaves no block of the primary's disk.
func (d *disks) fillTable() error {
	table := d.tables[d.primary]
	file, err := os.Create(d.filler(table))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	var size int64
	for range 50 { // the server may take blocks meanwhile
		var fs syscall.Statfs_t
		if err := syscall.Statfs(table, &fs); err != nil {
			return err
		}
		free := int64(fs.Bavail) * fs.Bsize
		if free < fs.Bsize {
			return nil
		}
		// Metadata of the filler itself takes blocks, too: a chunk that does not fit is tried in halves.
		for chunk := free; chunk >= fs.Bsize; chunk /= 2 {
			if syscall.Fallocate(int(file.Fd()), 0, size, chunk) == nil {
				size += chunk
				break
			}
		}
	}
	return nil
}

// fillSpool leaves no byte of a spool's disk.
func (d *disks) fillSpool(number int) error {
	file, err := os.OpenFile(d.filler(filepath.Join(d.dir, fmt.Sprintf("disk-%d", number))), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	block := make([]byte, 64<<10)
	for {
		n, err := file.Write(block)
		if err == nil && n > 0 {
			continue
		}
		if len(block) == 1 {
			return nil
		}
		block = block[:max(len(block)/8, 1)]
	}
}

func (d *disks) emptyTable() error {
	var errs []error
	for _, table := range d.tables {
		errs = append(errs, gone(os.Remove(d.filler(table))))
	}
	return errors.Join(errs...)
}

func (d *disks) emptySpool(number int) error {
	return gone(os.Remove(d.filler(filepath.Join(d.dir, fmt.Sprintf("disk-%d", number)))))
}

func gone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

func (d *disks) close() {
	for _, m := range d.mounts {
		for range 20 {
			if syscall.Unmount(m, 0) == nil {
				break
			}
			wait(context.Background(), 100*time.Millisecond)
		}
	}
	for _, table := range d.tables {
		_ = os.Remove(table + ".img")
	}
}
