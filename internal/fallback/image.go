package fallback

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/gzip"
)

// limits protect the process from a file that inflates without end. Append respects them too; otherwise it could
// write a file that Recover must refuse.
type limits struct {
	line  int   // bytes of one line, inflated
	total int64 // bytes of a file, inflated
}

var defaultLimits = limits{line: MaxLine, total: 1 << 30}

// MaxLine is the length of the longest line, in bytes. In quotes a value takes up to twice its bytes, and it may have 256 MiB:
// the most of DOCKET_MAX_RECORD_BYTES. The rest is for key and headers.
const MaxLine = 640 << 20

// image is a data file and its meta as on disk. It is built in memory, so that the exact size and checksum are known
// before the first write.
type image struct {
	stem  stem
	lines int
	data  []byte
	meta  []byte
}

func (im *image) size() int64 { return int64(len(im.data) + len(im.meta)) }

// imageWriter compresses lines one after another. It needs the number of lines at the start, because their checksums
// are in the gzip header.
type imageWriter struct {
	lim   limits
	out   bytes.Buffer
	gz    *gzip.Writer
	line  []byte
	sums  lineSums
	lines int
	total int64
}

func newImageWriter(lines int, lim limits) (*imageWriter, error) {
	w := &imageWriter{lim: lim, sums: newLineSums(lines)}
	gz, err := gzip.NewWriterLevel(&w.out, gzip.BestSpeed)
	if err != nil {
		return nil, fmt.Errorf("compress spool file: %w", err)
	}
	gz.Extra = w.sums.extra() // zeros for now; filled in finish
	w.gz = gz
	return w, nil
}

func (w *imageWriter) add(l Line) error {
	line, err := appendLine(w.line[:0], l)
	if err != nil {
		return fmt.Errorf("encode spool line: %w", err)
	}
	w.line = line
	w.total += int64(len(line))
	if len(line) > w.lim.line || w.total > w.lim.total {
		return fmt.Errorf("encode spool line of %d bytes: %w", len(line), ErrTooLong)
	}
	w.sums.add(line)
	w.lines++
	if _, err := w.gz.Write(line); err != nil {
		return fmt.Errorf("compress spool line: %w", err)
	}
	return nil
}

func (w *imageWriter) finish(name stem, now time.Time) (*image, error) {
	if err := w.gz.Close(); err != nil {
		return nil, fmt.Errorf("compress spool file: %w", err)
	}
	data := w.out.Bytes()
	copy(data[gzipExtraAt:], w.sums.extra())
	sum := sha256.Sum256(data)
	m, err := meta{
		NumEvents: w.lines,
		CreatedAt: now.UTC(),
		SHA256:    hex.EncodeToString(sum[:]),
		Bytes:     int64(len(data)),
	}.encode()
	if err != nil {
		return nil, fmt.Errorf("encode spool meta: %w", err)
	}
	return &image{stem: name, lines: w.lines, data: data, meta: m}, nil
}

// lineSums are CRC-32C checksums of the lines, kept in the extra field of the gzip header. In a damaged file they
// show which lines are still intact. gzip's own checksum covers only the whole. The field holds 64 KiB, so in a very
// long file each sum covers several lines.
type lineSums struct {
	stride int // lines per sum
	sums   []uint32
	n      int // lines seen
}

const (
	gzipExtraAt = 12 // fixed header of ten bytes, length of the extra field
	maxSums     = 16000
	sumsID1     = 'D' // sub-field id, RFC 1952 section 2.3.1.1
	sumsID2     = 'K'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newLineSums(lines int) lineSums {
	stride := max(1, (lines+maxSums-1)/maxSums)
	return lineSums{stride: stride, sums: make([]uint32, (lines+stride-1)/stride)}
}

func (s *lineSums) add(line []byte) {
	g := s.n / s.stride
	s.n++
	if g < len(s.sums) {
		s.sums[g] = crc32.Update(s.sums[g], castagnoli, line)
	}
}

// extra returns the sub-field: id, length, stride, sums; all little-endian.
func (s *lineSums) extra() []byte {
	n := 4 + 4*len(s.sums)
	b := make([]byte, 0, 4+n)
	b = append(b, sumsID1, sumsID2, byte(n), byte(n>>8))
	b = binary.LittleEndian.AppendUint32(b, uint32(s.stride))
	for _, sum := range s.sums {
		b = binary.LittleEndian.AppendUint32(b, sum)
	}
	return b
}

// parseLineSums reads the sub-field; nil if there is none.
func parseLineSums(extra []byte) *lineSums {
	if len(extra) < 8 || extra[0] != sumsID1 || extra[1] != sumsID2 ||
		int(extra[2])|int(extra[3])<<8 != len(extra)-4 || len(extra)%4 != 0 {
		return nil
	}
	s := &lineSums{stride: int(binary.LittleEndian.Uint32(extra[4:]))}
	if s.stride < 1 || s.stride > int(defaultLimits.total) {
		return nil
	}
	for b := extra[8:]; len(b) > 0; b = b[4:] {
		s.sums = append(s.sums, binary.LittleEndian.Uint32(b))
	}
	return s
}
