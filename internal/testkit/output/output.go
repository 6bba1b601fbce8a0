// Package output keeps what programs write, so that tests can read it while they run.
//
// It stays free of the meaning of the lines.
package output

import (
	"bytes"
	"sync"
)

// Buffer is a buffer that one goroutine may write while another reads. The zero value is empty and ready to use.
type Buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p. It returns no error.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// String returns all that was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
