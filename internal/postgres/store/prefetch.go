//go:build amd64 || arm64

package store

import "unsafe"

// prefetch asks the processor to load this many bytes into its cache, at least one. It never waits for them, and no address
// is wrong.
//
//go:noescape
func prefetch(at unsafe.Pointer, bytes int)
