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

// inflater inflates sets of records. It reads the usual LZ4 frames straight into spare memory, without the checksums
// of the frame. The set's own checksum covers all compressed bytes, and the client compares it first. All other sets,
// and broken LZ4, are left to the client.
type inflater struct {
	most   int // memory limit of a set in bytes
	spare  *spare
	others kgo.Decompressor
	large  kgo.Decompressor // as others, for sets up to most
	room   *room
	alone  sync.Mutex    // one large set at a time
	litter int64         // bytes of large sets since the last garbage collection
	made   int64         // bytes allocated for sets until then
	ratio  atomic.Uint64 // bits of a float64: how far sets inflate, as last seen
}

// newInflater makes an inflater. The client's own decompressor obeys the limit only if the client made it.
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
		return nil, errNoDecompressor
	}
	return own, nil
}

var errNoDecompressor = errors.New("decompressor: the client has none")

// ordinary is the usual largest size of an inflated set, in bytes. Larger sets are inflated one at a time. The size
// of a set is not known before, and several at once would take the memory before any of them is refused.
const ordinary = 4 << 20

// Decompress implements [kgo.Decompressor]. It refuses a set that takes too much memory with its records and headers,
// before the client makes them. The client then stops reading the partition. If there is no room now, it returns
// errNoRoom.
func (f *inflater) Decompress(src []byte, codec kgo.CompressionCodecType) ([]byte, error) {
	switch codec {
	case kgo.CodecNone:
		return src, nil
	case heavy:
		return nil, kgo.ErrMaxDecompress
	}
	if f.room.full.Load() {
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
	if records*recordSize > ordinary && len(out) <= ordinary {
		f.alone.Lock()
		f.collect(0)
		f.alone.Unlock()
	}
	if bytes+records*recordSize > int64(f.most) {
		err = kgo.ErrMaxDecompress
	} else if f.open(out, bytes+int64(cap(out)-len(out)), records) {
		f.room.memory.opened(f.room)
		return out, nil
	} else {
		err = errNoRoom
	}
	f.spare.bytes.give(out) // not in use yet
	return nil, err
}

// open counts an inflated set with its records if there is room for both. Sets of other brokers and lanes come at the
// same time, and each of them may need most of what is free.
func (f *inflater) open(out []byte, bytes, records int64) bool {
	f.room.opening.Lock()
	defer f.room.opening.Unlock()
	f.room.forget()
	if !f.room.may(bytes + records*recordSize) {
		return false
	}
	f.spare.bytes.use(out, bytes)
	if len(out) > 0 && out[0] != 0 { // the client makes the records of old formats by itself, see [messages]
		f.room.promise(records)
	}
	return true
}

// collect frees the memory of earlier large sets and of the slices that they outgrew. A few of them use up the memory
// of the process, and the garbage collector would run only after the next ones. The caller has f.alone.
func (f *inflater) collect(bytes int) {
	made := f.spare.bytes.made.Load() + f.spare.records.made.Load()
	f.litter += int64(bytes) + made - f.made
	if f.made = made; f.litter >= 5*ordinary {
		runtime.GC()
		f.litter = 0
	}
}

// inflate inflates a set to at most this many bytes.
func (f *inflater) inflate(src []byte, codec kgo.CompressionCodecType, others kgo.Decompressor, most int) ([]byte, error) {
	if codec == kgo.CodecLz4 {
		out, ok := f.lz4(src, most)
		switch {
		case ok:
			return f.spare.fitted(out), nil
		case most < f.most: // broken, of another kind or too large: the next try tells
			return nil, kgo.ErrMaxDecompress
		}
	}
	out, err := others.Decompress(src, codec)
	if err != nil {
		return nil, err
	}
	return f.spare.fitted(out), nil
}

// lz4 inflates a frame. ok is false if the frame is not the usual kind or inflates too far.
func (f *inflater) lz4(src []byte, most int) (out []byte, ok bool) {
	blocks, largest, length, ok := lz4Frame(src)
	if !ok {
		return nil, false
	}
	guess := f.guess(len(src))
	if most > ordinary { // it did not fit into that
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
	f.spare.bytes.give(out) // not in use yet
	return nil, false
}

// mostRatio limits the expected ratio of inflation. A set of zeroes must not make room for hundreds like it.
const mostRatio = 8

// guess returns the size of the first slice for a frame.
func (f *inflater) guess(n int) int {
	return min(f.most, int(float64(n)*math.Float64frombits(f.ratio.Load())*1.03)+64)
}

// learn keeps the highest ratio of the last frames. A frame that finds too little room is inflated twice.
func (f *inflater) learn(from, to int) {
	ratio, now := math.Float64frombits(f.ratio.Load()), min(float64(to)/float64(from), mostRatio)
	f.ratio.Store(math.Float64bits(max(now, ratio+(now-ratio)/8)))
}

// append inflates one block behind out, in a larger slice if there is too little room.
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
			return out, false // it failed for another reason than room
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
	lz4Version = 0b0100_0000 // version of the frame format
	lz4Alone   = 0b0010_0000 // blocks that need no other block
	lz4Sized   = 0b0000_1000 // the total length is given
	lz4Summed  = 0b0000_0100 // a checksum of everything comes last
)

// lz4Frame reads the head of a frame. It returns the blocks without the checksum at the end. It also returns the size
// that a block may inflate to, and the total length, -1 if that is not given.
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

// lz4Block takes the next block off. more is false if only the end mark is left.
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
