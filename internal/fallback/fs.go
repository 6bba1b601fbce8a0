package fallback

import (
	"io/fs"
	"time"
)

// FS is the part of a file system that the spool uses, rooted at its directory. Names are relative: a file, or
// "corrupt/" and a file. No method follows a symlink in the last element of a name.
type FS interface {
	// Prepare creates the directory (0700) if it is missing, makes it durable in its parent, opens it and describes
	// it. It returns ErrUnsafeDir for a symlink and for anything that is not a directory.
	Prepare() (Info, error)
	// Chmod sets the permissions of the directory itself.
	Chmod(mode fs.FileMode) error
	// Lock takes the exclusive lock file of that name without waiting, and opens it for reading and for writing behind
	// what was read. It returns ErrLocked if another process has it. Close releases it.
	Lock(name string) (File, error)
	// Create makes a new file (0600) for writing. It returns fs.ErrExist if the name is taken.
	Create(name string) (File, error)
	// Open opens for reading and never blocks on a FIFO or device.
	Open(name string) (File, error)
	// Lstat describes the name itself, not a symlink's target.
	Lstat(name string) (Info, error)
	// Rename moves within the directory, replacing the target.
	Rename(from, to string) error
	// Remove unlinks a file.
	Remove(name string) error
	// Mkdir makes a sub-directory (0700).
	Mkdir(name string) error
	// SyncDir makes the entries of a directory durable; "." is the root.
	SyncDir(name string) error
	// ReadDir opens the root for reading names.
	ReadDir() (Dir, error)
	// Close closes the root.
	Close() error
}

// File is an open file of an FS.
type File interface {
	Read(p []byte) (int, error)
	Write(p []byte) (int, error)
	Sync() error
	Close() error
	Stat() (Info, error)
}

// Dir reads the names of a directory in portions.
type Dir interface {
	// Names returns up to n further names, and io.EOF when there are none.
	Names(n int) ([]string, error)
	// Rewind starts again with the first name.
	Rewind() error
	Close() error
}

// Info describes a name or an open file.
type Info struct {
	Mode  fs.FileMode
	Size  int64
	Links uint64    // hard links
	Own   bool      // belongs to the effective user
	Time  time.Time // of the last change of the content
	ID    [2]uint64 // device and inode
}

// ours reports whether a name of the spool is a file that may be opened. Files that others planted are left alone.
func (i Info) ours() bool { return i.Mode.IsRegular() && i.Links == 1 && i.Own }

// sameContent reports whether two looks at a name saw the same content. It does not compare inodes: on some file systems
// these change while a file is closed.
func (i Info) sameContent(other Info) bool { return i.Size == other.Size && i.Time.Equal(other.Time) }
