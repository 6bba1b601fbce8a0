package columnar

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// frames is what the headers of zstd frames say. They are read without decompressing.
type frames struct {
	most  int64  // bytes after decompression, at most
	first []byte // the first block with its header
}

const (
	zstdMagic = 0xFD2FB528
	zstdBlock = 128 << 10 // the most that a block can have
)

// framesOf walks through the frames and blocks of compressed data.
func framesOf(data []byte) (f frames, ok bool) {
	for len(data) > 0 {
		rest, size, fixed, ok := frameHead(data)
		if !ok {
			return f, false
		}
		blocks := int64(0)
		for last := false; !last; {
			if len(rest) < 3 {
				return f, false
			}
			head := uint32(rest[0]) | uint32(rest[1])<<8 | uint32(rest[2])<<16
			n := int(head >> 3)
			stored, made := n, n
			switch head >> 1 & 3 {
			case 1:
				stored = 1
			case 2:
				made = zstdBlock
			case 3:
				return f, false
			}
			if n > zstdBlock || len(rest) < 3+stored {
				return f, false
			}
			if f.first == nil {
				f.first = rest[:3+stored]
			}
			blocks += int64(made)
			last, rest = head&1 == 1, rest[3+stored:]
		}
		if data[4]&4 != 0 {
			if len(rest) < 4 {
				return f, false
			}
			rest = rest[4:]
		}
		if fixed && size <= uint64(blocks) {
			blocks = int64(size)
		} else if fixed {
			return f, false
		}
		f.most += blocks
		data = rest
	}
	return f, true
}

// frameHead reads the head of a frame. fixed says that size is the content's.
func frameHead(data []byte) (rest []byte, size uint64, fixed, ok bool) {
	if len(data) < 6 || binary.LittleEndian.Uint32(data) != zstdMagic {
		return nil, 0, false, false
	}
	d := data[4]
	single := d>>5&1 == 1
	window, dictionary, content := 1, [4]int{0, 1, 2, 4}[d&3], [4]int{0, 2, 4, 8}[d>>6]
	if single {
		window, content = 0, max(content, 1)
	}
	at := 5 + window + dictionary
	if len(data) < at+content {
		return nil, 0, false, false
	}
	for i := range content {
		size |= uint64(data[at+i]) << (8 * i)
	}
	if content == 2 {
		size += 256
	}
	return data[at+content:], size, content > 0, true
}

// decoders decompress with bounds. A decoder is used by one goroutine at a time.
var decoders = sync.Pool{New: func() any {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(1<<31))
	if err != nil {
		return nil
	}
	return d
}}

// begin decompresses the first block, which has at most 128 KiB. It may write into to.
func (f frames) begin(to []byte) ([]byte, bool) {
	if len(f.first) == 0 {
		return nil, true
	}
	one := make([]byte, 0, len(f.first)+6)
	one = append(binary.LittleEndian.AppendUint32(one, zstdMagic), 0, 7<<3) // a window of 128 KiB, and no size
	one = append(one, f.first...)
	one[6] |= 1 // it is the last
	return decompress(one, to)
}

// decompress appends to to.
func decompress(data, to []byte) ([]byte, bool) {
	d, ok := decoders.Get().(*zstd.Decoder)
	if !ok {
		return nil, false
	}
	defer decoders.Put(d)
	out, err := d.DecodeAll(data, to)
	return out, err == nil
}
