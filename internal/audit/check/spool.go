package check

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"docket/internal/service/config"
)

// disk describes the file system of a directory.
type disk struct {
	kind      string // of a temporary file system, else empty
	available int64  // bytes
}

// spool checks the directory, or the place where it would be made.
func spool(s config.Settings) []Result {
	r := report{what: "spool"}
	if s.SpoolDir == "" {
		r.add(Warn, "the spool is off: Docket holds while Kafka accepts nothing", "set DOCKET_SPOOL_DIR to a durable disk")
		return r.all
	}
	at := place(s.SpoolDir, &r)
	if at == "" {
		return r.all
	}
	if err := unix.Access(at, unix.R_OK|unix.W_OK|unix.X_OK); err != nil {
		r.add(Fail, fmt.Sprintf("this user may not write to %s", at), "give the directory to the user that runs Docket, mode 0700")
	}
	d, err := diskOf(at)
	if err != nil {
		r.add(Warn, "the file system cannot be examined", "make sure that it is durable and has space for DOCKET_SPOOL_MAX_BYTES")
		return r.all
	}
	if d.kind != "" {
		r.add(Warn, fmt.Sprintf("%s is on a temporary disk (%s): spooled records are lost with it", at, d.kind), "put DOCKET_SPOOL_DIR on a volume that outlives the process")
	}
	if d.available < int64(s.SpoolMaxBytes) {
		r.add(Warn, fmt.Sprintf("%d MiB are free, less than DOCKET_SPOOL_MAX_BYTES (%v)", d.available>>20, s.SpoolMaxBytes), "free space, or lower DOCKET_SPOOL_MAX_BYTES")
	}
	if s.SpoolOnFull == "evict" {
		r.add(Warn, "DOCKET_SPOOL_ON_FULL=evict: when it is full, the oldest records are lost", "set it to hold")
	}
	return r.results(fmt.Sprintf("%s, %d MiB free", s.SpoolDir, d.available>>20))
}

// place returns the directory, or its nearest existing parent; empty if it is not a directory.
func place(dir string, r *report) string {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		abs, err := filepath.Abs(dir)
		if err != nil {
			r.add(Fail, "the working directory is unknown", "give an absolute path in DOCKET_SPOOL_DIR")
			return ""
		}
		for abs != filepath.Dir(abs) {
			abs = filepath.Dir(abs)
			if info, err := os.Stat(abs); err == nil && info.IsDir() {
				return abs
			}
		}
		return abs
	case err != nil:
		r.add(Fail, dir+" cannot be read by this user", "give the directory to the user that runs Docket, mode 0700")
		return ""
	case !info.IsDir():
		r.add(Fail, dir+" is not a directory", "name a real directory, not a file or a link, in DOCKET_SPOOL_DIR")
		return ""
	}
	if owner, ok := ownerOf(info); ok {
		belongs(dir, owner, os.Geteuid(), r)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		r.add(Warn, fmt.Sprintf("%s has the mode %04o: other users can read spooled records", dir, mode), "chmod 0700; an empty directory is tightened at the start")
	}
	return dir
}

// belongs checks the owner of the directory. root often checks for the user that runs Docket, as root alone reads its secrets.
func belongs(dir string, owner, user int, r *report) {
	switch {
	case owner == user:
	case user == 0:
		r.add(Warn, fmt.Sprintf("%s belongs to user %d, and this is root", dir, owner), "it is fine if Docket runs as that user; else give it the directory")
	default:
		r.add(Fail, fmt.Sprintf("%s belongs to user %d, and this is user %d", dir, owner, user), "give the directory to the user that runs Docket")
	}
}
