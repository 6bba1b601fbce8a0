// Package cache keeps archived files that are asked for often in a bounded directory.
//
// A cached file has the name of its SHA-256, so it is the same for every process and every shelf. Behind its bytes it
// has a checksum of each block. It is written beside, synced and renamed, and only once its SHA-256 is that of the
// manifest. Each block is verified when it is read. A damaged file is removed, and the shelf is read.
//
// All files together, also those that are being written, never have more than the bound: room is taken under a lock,
// before the first byte. A fault of the directory costs a read of the shelf. Nobody gets it as an error.
package cache
