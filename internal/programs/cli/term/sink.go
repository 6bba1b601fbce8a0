package term

import (
	"io"
	"sync"
)

// Sink passes on what is written, until a write fails. It passes on nothing behind that, so that what is there has no gap.
type Sink struct {
	w   io.Writer
	mu  sync.Mutex
	err error
}

// NewSink makes a sink in front of w.
func NewSink(w io.Writer) *Sink { return &Sink{w: w} }

// Write implements [io.Writer].
func (s *Sink) Write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	if n, s.err = s.w.Write(p); s.err == nil && n < len(p) {
		s.err = io.ErrShortWrite
	}
	return n, s.err
}

// Err returns the error of the write that failed; nil: none did.
func (s *Sink) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Under returns the writer behind w if w is a sink, else w. A child process inherits a file, and no sink.
func Under(w io.Writer) io.Writer {
	if s, is := w.(*Sink); is {
		return s.w
	}
	return w
}

// Lost reports whether something could not be written to Out.
func (s *Screen) Lost() bool {
	sink, is := s.Out.(*Sink)
	return is && sink.Err() != nil
}
