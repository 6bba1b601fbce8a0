package fallback

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"

	"github.com/klauspost/compress/gzip"
)

// source passes on the bytes of a data file and computes their checksum. It remembers whether the disk failed,
// because that does not prove a broken file.
type source struct {
	r    io.Reader
	sum  hash.Hash
	size int64
	err  error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.sum.Write(p[:n])
	s.size += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// lineReader reads as many lines of a data file as can be read. After the last line, fault has the fault of the file.
type lineReader struct {
	lim     limits
	src     *source
	raw     *bufio.Reader // compressed, positioned exactly behind a member
	gz      *gzip.Reader
	text    *bufio.Reader // inflated
	line    []byte
	total   int64
	fault   fault
	member  int       // gzip members begun
	sums    *lineSums // of the first member, nil if it has none
	n       int       // lines returned
	intact  int       // lines under a good gzip checksum
	cut     bool      // reading ended early, with no sign of damage before
	stopped bool
}

func newLineReader(r io.Reader, lim limits) *lineReader {
	src := &source{r: r, sum: sha256.New()}
	return &lineReader{lim: lim, src: src, raw: bufio.NewReader(src), gz: new(gzip.Reader)}
}

// blame keeps the first fault, because later ones mostly follow from it.
func (r *lineReader) blame(f fault) {
	if r.fault == "" {
		r.fault = f
	}
}

// next returns the next line with its newline, if it has one. The line is valid until the next call. A nil line
// replaces one that is too long. io.EOF is the end of all that can be read, whole or not. Any other error is the
// disk's.
func (r *lineReader) next() ([]byte, error) {
	for !r.stopped {
		if r.text == nil && !r.openMember() {
			break
		}
		line, long, err := r.readLine()
		switch {
		case err == nil && long:
			r.blame(faultLineLong)
			r.n++
			return nil, nil
		case err == nil:
			r.n++
			return line, nil
		case errors.Is(err, io.EOF):
			rest := len(line) > 0 || long // a last line without its newline
			if rest {
				r.n++
			}
			if long {
				r.blame(faultLineLong)
			}
			r.endMember()
			if rest {
				return line, nil
			}
		default:
			f := streamFault(err)
			r.cut = f == faultTruncated || f == faultInflated
			r.stop(f)
		}
	}
	return nil, r.end()
}

// checksum is of all that was read so far.
func (r *lineReader) checksum() string { return hex.EncodeToString(r.src.sum.Sum(nil)) }

func (r *lineReader) end() error {
	if r.src.err != nil {
		return r.src.err
	}
	return io.EOF
}

func (r *lineReader) stop(f fault) {
	r.blame(f)
	r.stopped = true
}

// openMember starts the first gzip member, or a further one. A further member is a fault, but its lines may be good.
func (r *lineReader) openMember() bool {
	err := r.gz.Reset(r.raw)
	switch {
	case err == nil:
	case r.src.err != nil:
		r.stopped = true
		return false
	case r.member > 0:
		r.stop(faultTrailing)
		return false
	case errors.Is(err, io.EOF) && r.src.size == 0:
		r.stop(faultEmpty)
		return false
	default:
		r.stop(faultHeader)
		return false
	}
	r.gz.Multistream(false)
	r.member++
	if r.member == 1 {
		r.sums = parseLineSums(r.gz.Extra)
	}
	r.text = bufio.NewReaderSize(r.gz, 64<<10)
	return true
}

// endMember is called behind a member with a good checksum: the file should end here.
func (r *lineReader) endMember() {
	r.intact = r.n
	r.text = nil
	_, err := r.raw.Peek(1)
	if err == nil {
		r.blame(faultTrailing)
		return
	}
	r.stopped = true
}

// readLine collects a line. It reads a line that is too long to its end and drops it, to reach the lines behind it.
func (r *lineReader) readLine() (line []byte, long bool, err error) {
	r.line = r.line[:0]
	for {
		part, err := r.text.ReadSlice('\n')
		r.total += int64(len(part))
		if r.total > r.lim.total {
			return nil, false, errInflated
		}
		if !long {
			r.line = append(r.line, part...)
		}
		if len(r.line) > r.lim.line {
			long, r.line = true, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return r.line, long, err
		}
	}
}

var errInflated = errors.New("inflates beyond the limit")

func streamFault(err error) fault {
	switch {
	case errors.Is(err, errInflated):
		return faultInflated
	case errors.Is(err, io.ErrUnexpectedEOF):
		return faultTruncated
	case errors.Is(err, gzip.ErrChecksum):
		return faultChecksum
	}
	return faultStream
}

// findings are the result of reading a whole data file.
type findings struct {
	fault  fault
	lines  int // complete lines, readable or not
	intact int // leading lines under a good gzip checksum
	cut    bool
	sums   *lineSums
	good   []bool // for each sum: its lines are intact
	sha256 string
	bytes  int64
	held   []heldLine // all lines, or nil if they are too many to hold; unreadable ones have no record
	file   Info       // as it was when it was opened
}

// heldLine is a line as read, with its size in the file.
type heldLine struct {
	line Line
	size int
}

// inspect reads a data file to its end and judges it. It keeps the lines in memory if they have at most hold bytes
// together. An error is the disk's, never the file's.
func inspect(r io.Reader, lim limits, hold int) (*findings, error) {
	lr := newLineReader(r, lim)
	found := &findings{}
	var seen lineSums
	room := hold
	for {
		line, err := lr.next()
		if found.sums == nil && lr.sums != nil {
			found.sums = lr.sums
			seen = lineSums{stride: lr.sums.stride, sums: make([]uint32, len(lr.sums.sums))}
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		l, err := decodeLine(line)
		if err != nil {
			lr.blame(faultLine)
		}
		if room -= len(line) + heldOverhead; room >= 0 {
			found.held = append(found.held, heldLine{l, len(line)})
		} else {
			found.held = nil
		}
		if found.sums != nil {
			seen.add(line)
		}
	}
	found.judge(lr, seen)
	return found, nil
}

// heldOverhead is the memory of a line besides its content.
const heldOverhead = 512

func (f *findings) judge(lr *lineReader, seen lineSums) {
	f.fault, f.cut = lr.fault, lr.cut
	f.lines, f.intact = lr.n, lr.intact
	f.sha256 = lr.checksum()
	f.bytes = lr.src.size
	if f.sums == nil {
		return
	}
	f.good = make([]bool, len(f.sums.sums))
	for i := range f.good {
		f.good[i] = f.sums.sums[i] == seen.sums[i]
	}
}

// compare checks the data against the meta. Without a meta the data counts alone.
func (f *findings) compare(m *meta) {
	if m == nil || f.fault != "" {
		return
	}
	switch {
	case m.Bytes != f.bytes:
		f.fault = faultSize
	case m.SHA256 != f.sha256:
		f.fault = faultSum
	case m.NumEvents != f.lines:
		f.fault = faultCount
	}
}

// trusted reports whether line i is intact, by gzip's checksum or by its own. A file without line checksums was
// written by another program. Then the lines before a clean cut are trusted.
func (f *findings) trusted(i int) bool {
	if i < f.intact {
		return true
	}
	if f.sums == nil {
		return f.cut
	}
	g := i / f.sums.stride
	return g < len(f.good) && f.good[g]
}
