package kafka

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

// inflater is how sets of records are inflated. LZ4 as producers write it is read straight into spare memory,
// without the checksums of its frame: the set's own covers all that is compressed, and the client compares that first.
// All else, broken LZ4 too, is left to the client.
type inflater struct {
	most   int // bytes that a set may take in memory
	spare  *spare
	others kgo.Decompressor
	large  kgo.Decompressor // as others, for sets up to most
	room   *room
	alone  sync.Mutex    // one large set at a time
	litter int64         // bytes of large sets since the last collection
	made   int64         // bytes that were made for sets until then
	ratio  atomic.Uint64 // bits of a float64: how far sets inflate, as last seen
}

// newInflater makes one. The client's own decompressor keeps to the limit only where the client made it.
func newInflater(s *spare) (*inflater, error) {
	others, err := decompressor(s, min(s.inflated, ordinary))
	if err != nil {
		return nil, err
	}
	large, err := decompressor(s, s.inflated)
	if err != nil {
		return nil, err
	}
	f := &inflater{most: s.inflated, spare: s, room: s.room, others: others, large: large}
	f.ratio.Store(math.Float64bits(4))
	return f, nil
}

func decompressor(s *spare, most int) (kgo.Decompressor, error) {
	client, err := kgo.NewClient(kgo.MaxDecompressBatchBytes(most), kgo.WithPools(s))
	if err != nil {
		return nil, fmt.Errorf("decompressor: %w", err)
	}
	defer client.Close()
	own, ok := client.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	if !ok {
		return nil, errors.New("decompressor: the client has none")
	}
	return own, nil
}

// ordinary is what sets inflate to at most, as a rule, in bytes. Those that are larger are inflated one at a time: until a set is
// inflated nobody knows its size, and several at once would take the memory before any of them is refused.
const ordinary = 4 << 20

// Decompress is of [kgo.Decompressor]. A set that takes too much memory with its records and headers is refused as one that
// inflates too far, before the client makes them. The client then stops reading its partition. A set that finds no room now is
// refused with errNoRoom.
func (f *inflater) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	switch codec {
	case kgo.CodecNone:
		return src, nil
	case heavy:
		return nil, kgo.ErrMaxDecompress
	}
	if f.room.crammed.Load() {
		return nil, errNoRoom
	}
	out, err := []byte(nil), kgo.ErrMaxDecompress
	if codec != kgo.CodecGzip || gzipped(src) <= ordinary {
		out, err = f.inflate(src, codec, f.others, min(f.most, ordinary))
	}
	if errors.Is(err, kgo.ErrMaxDecompress) && f.most > ordinary {
		f.alone.Lock()
		defer f.alone.Unlock()
		if !f.room.may(ordinary) {
			return nil, errNoRoom
		}
		out, err = f.inflate(src, codec, f.large, f.most)
		f.collect(len(out))
	}
	if err != nil {
		return nil, err
	}
	bytes, records := weigh(out)
	switch weight := bytes + records*recordSize; {
	case weight > int64(f.most):
		err = kgo.ErrMaxDecompress
	case !f.room.may(weight + int64(cap(out)-len(out))):
		err = errNoRoom
	default:
		f.spare.bytes.use(out, bytes+int64(cap(out)-len(out)))
		return out, nil
	}
	f.spare.bytes.give(out) // nobody has seen it
	return nil, err
}

// collect frees the memory of large sets that came before, and of what they outgrew: a few of them are all that the process may
// take, and the collector would begin only after the next ones. The caller has f.alone.
func (f *inflater) collect(bytes int) {
	made := f.spare.bytes.made.Load()
	f.litter += int64(bytes) + made - f.made
	if f.made = made; f.litter >= 5*ordinary {
		runtime.GC()
		f.litter = 0
	}
}

// inflate inflates a set to so many bytes at most.
func (f *inflater) inflate(src []byte, codec kgo.CompressionCodecType, others kgo.Decompressor, most int) ([]byte, error) {
	if codec == kgo.CodecLz4 {
		out, ok := f.lz4(src, most)
		switch {
		case ok:
			return f.spare.fitted(out), nil
		case most < f.most: // it is broken, of another kind or too large: the next try tells
			return nil, kgo.ErrMaxDecompress
		}
	}
	out, err := others.Decompress(src, codec)
	if err != nil {
		return nil, err
	}
	return f.spare.fitted(out), nil
}

// lz4 inflates a frame; false where it is not as producers write it, or inflates too far.
func (f *inflater) lz4(src []byte, most int) (out []byte, ok bool) {
	blocks, largest, length, ok := lz4Frame(src)
	if !ok {
		return nil, false
	}
	guess := f.guess(len(src))
	if most > ordinary { // as it did not fit into that
		guess = max(guess, 2*ordinary)
	}
	out = f.spare.bytes.take(min(guess, most))
	for {
		block, rest, more, ok := lz4Block(blocks)
		if !ok || !more && length >= 0 && length != len(out) {
			break
		}
		if !more {
			f.learn(len(src), len(out))
			return out, true
		}
		if out, ok = f.append(out, block, largest, most); !ok {
			break
		}
		blocks = rest
	}
	f.spare.bytes.give(out) // nobody has seen it
	return nil, false
}

// mostRatio is how far a set is expected to inflate at most: one of zeroes must not make room for hundreds like it.
const mostRatio = 8

// guess is how much room a frame is given at first.
func (f *inflater) guess(n int) int {
	return min(f.most, int(float64(n)*math.Float64frombits(f.ratio.Load())*1.03)+64)
}

// learn keeps to the frames that inflate furthest, as one that finds too little room is inflated twice.
func (f *inflater) learn(from, to int) {
	ratio, now := math.Float64frombits(f.ratio.Load()), min(float64(to)/float64(from), mostRatio)
	f.ratio.Store(math.Float64bits(max(now, ratio+(now-ratio)/8)))
}

// append inflates one block behind out, in more memory where there is too little.
func (f *inflater) append(out []byte, block lz4Data, largest, limit int) ([]byte, bool) {
	most := min(largest, limit-len(out))
	if !block.compressed {
		if len(block.bytes) > most {
			return out, false
		}
		return append(out, block.bytes...), true
	}
	for {
		room := out[len(out):cap(out)]
		if n, err := lz4.UncompressBlock(block.bytes, room); err == nil {
			out = out[:len(out)+n]
			return out, n <= most
		}
		if len(room) >= most {
			return out, false // it is not for want of room
		}
		larger := f.spare.bytes.take(len(out) + min(limit-len(out), max(len(out), 2*len(room), 4*len(block.bytes))))
		larger = append(larger, out...)
		f.spare.bytes.give(out)
		out = larger
	}
}

// lz4Data is a block of a frame.
type lz4Data struct {
	bytes      []byte
	compressed bool
}

const (
	lz4Magic   = 0x184D2204
	lz4Version = 0b0100_0000 // of the frame's format, and
	lz4Alone   = 0b0010_0000 // blocks that need no other
	lz4Sized   = 0b0000_1000 // the length of all is told
	lz4Summed  = 0b0000_0100 // a checksum of all comes last
)

// lz4Frame reads a frame's head: what follows it, but for the checksum at the end, how far a block may inflate, and how
// far all of it does, -1 where that is not told.
func lz4Frame(src []byte) (blocks []byte, largest, length int, ok bool) {
	if len(src) < 7 || binary.LittleEndian.Uint32(src) != lz4Magic {
		return nil, 0, 0, false
	}
	flags, sizes := src[4], src[5]
	if flags&^(lz4Sized|lz4Summed) != lz4Version|lz4Alone || sizes&0b1000_1111 != 0 || sizes>>4 < 4 {
		return nil, 0, 0, false
	}
	head, tail, length := 7, 0, -1
	if flags&lz4Sized != 0 && len(src) >= head+8 {
		length = int(binary.LittleEndian.Uint64(src[6:]) & math.MaxInt)
	}
	if flags&lz4Sized != 0 {
		head += 8
	}
	if flags&lz4Summed != 0 {
		tail = 4
	}
	if len(src) < head+tail {
		return nil, 0, 0, false
	}
	return src[head : len(src)-tail], 64 << 10 << (2 * (sizes>>4 - 4)), length, true
}

// lz4Block takes the next block off; there are no more where all that is left is the end mark.
func lz4Block(src []byte) (block lz4Data, rest []byte, more, ok bool) {
	if len(src) < 4 {
		return lz4Data{}, nil, false, false
	}
	size := binary.LittleEndian.Uint32(src)
	src = src[4:]
	if size == 0 {
		return lz4Data{}, nil, false, len(src) == 0
	}
	n := int(size &^ (1 << 31))
	if n > len(src) {
		return lz4Data{}, nil, false, false
	}
	return lz4Data{bytes: src[:n], compressed: size>>31 == 0}, src[n:], true, true
}
