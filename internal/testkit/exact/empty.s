//go:build exact

// The functions of exact.go have their bodies in package runtime.
