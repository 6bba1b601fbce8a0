// Package ondisk proves the spool on a real file system that is full, out of names, read-only, or whose process has no
// file descriptors left.
//
// Each test runs in a process of its own with a tmpfs that only it sees, so it needs Linux and the right to mount: root,
// or user namespaces. It stays free of code that production uses.
package ondisk
