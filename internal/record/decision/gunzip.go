package decision

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// IsGzip reports whether value begins like gzip.
func IsGzip(value []byte) bool {
	return len(value) >= 2 && value[0] == 0x1f && value[1] == 0x8b
}

// Inflater reads the content of gzip, one member after another.
type Inflater struct {
	src bytes.Reader
	zip gzip.Reader
}

// inflaters keep the windows of decompressors between values.
var inflaters = sync.Pool{New: func() any { return new(Inflater) }}

// Inflate begins to read value, which must not be written to before Close. An error says that it is not gzip.
func Inflate(value []byte) (*Inflater, error) {
	in := inflaters.Get().(*Inflater)
	in.src.Reset(value)
	if err := in.zip.Reset(&in.src); err != nil {
		in.Close()
		return nil, err
	}
	in.zip.Multistream(false)
	return in, nil
}

// Close gives the reader back. It must not be used afterwards.
func (in *Inflater) Close() {
	in.src.Reset(nil) // the pool must not keep the value alive
	inflaters.Put(in)
}

// Read steps from member to member itself. The library would accept a value that is cut inside the name or comment of
// a later member's header.
func (in *Inflater) Read(p []byte) (int, error) {
	for {
		n, err := in.zip.Read(p)
		switch {
		case !errors.Is(err, io.EOF):
			return n, err
		case n > 0:
			return n, nil
		case in.src.Len() == 0:
			return 0, io.EOF
		}
		if err := in.zip.Reset(&in.src); errors.Is(err, io.EOF) {
			return 0, io.ErrUnexpectedEOF
		} else if err != nil {
			return 0, err
		}
		in.zip.Multistream(false)
	}
}

// gunzip inflates all members of value, and never more than one byte beyond limit.
func gunzip(value []byte, limit int64) ([]byte, *Refusal) {
	in, err := Inflate(value)
	if err != nil {
		return nil, &Refusal{Reason: Syntax}
	}
	defer in.Close()
	plain, err := readUpTo(in, room(value), limit)
	switch {
	case int64(len(plain)) > limit:
		return nil, &Refusal{Reason: TooLarge}
	case err != nil:
		return nil, &Refusal{Reason: Syntax, Offset: len(plain)}
	}
	return plain, nil
}

// room guesses the inflated size of value from the size in its trailer. The trailer may be wrong, so the guess is
// limited by the usual ratio of JSON.
func room(value []byte) int64 {
	if len(value) < 4 {
		return 0
	}
	claimed := int64(binary.LittleEndian.Uint32(value[len(value)-4:]))
	return min(claimed, 32*int64(len(value)))
}

// readUpTo reads to the end, or until it has more than limit bytes. The buffer never has room for more than one byte
// more.
func readUpTo(r io.Reader, guess, limit int64) ([]byte, error) {
	guess = min(max(guess, 512), limit)
	buf := make([]byte, 0, guess+1) // one more, so that the end is seen without growing
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil || int64(len(buf)) > limit:
			return buf, err
		}
		if len(buf) == cap(buf) {
			grown := make([]byte, len(buf), min(2*int64(len(buf)), limit)+1)
			copy(grown, buf)
			buf = grown
		}
	}
}
