package check

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

var temporary = map[int64]string{
	unix.TMPFS_MAGIC:           "tmpfs",
	unix.RAMFS_MAGIC:           "ramfs",
	unix.OVERLAYFS_SUPER_MAGIC: "a container's own layer",
}

func diskOf(dir string) (disk, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return disk{}, err
	}
	return disk{kind: temporary[int64(st.Type)], available: int64(st.Bavail) * int64(st.Bsize)}, nil
}

func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}
