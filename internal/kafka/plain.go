package kafka

import (
	"context"
	"encoding/binary"
	"hash/crc32"
	"io"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// heavy marks a set that takes too much memory. No codec has this number. The [inflater] refuses it.
const heavy kgo.CompressionCodecType = 7

// plainConn finds uncompressed sets that are too large when opened. An opened set takes up to 36 times its bytes, and
// the client asks no pool before it opens one. So plainConn gives the set the codec heavy. Then the client passes it
// to [inflater].
//
// It checks only answers that are larger than the client asked for, because a set of that size comes alone.
type plainConn struct {
	net.Conn
	most  int // memory limit of a set in bytes
	large int // size of the answers that are checked

	version atomic.Int32 // of the last fetch request, plus 1; 0: there was none
	left    int          // bytes left of the answer that is being read; used by the reader only
}

// plainly dials each connection as a plainConn.
func plainly(dial func(ctx context.Context, network, address string) (net.Conn, error), sc SourceConfig) kgo.Opt {
	return kgo.Dialer(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &plainConn{Conn: conn, most: sc.MaxDecompressBytes, large: int(sc.FetchMaxBytes)}, nil
	})
}

// Write notes the version of fetch requests. The client writes each request at once: length, key, version.
func (c *plainConn) Write(b []byte) (int, error) {
	if len(b) >= 8 && int16(binary.BigEndian.Uint16(b[4:])) == int16(kmsg.Fetch) {
		c.version.Store(int32(binary.BigEndian.Uint16(b[6:])) + 1)
	}
	return c.Conn.Write(b)
}

// Read reads the length of an answer separately. Then the client reads a large answer in one piece, so that it can be
// checked.
func (c *plainConn) Read(b []byte) (n int, err error) {
	switch {
	case c.left <= 0 && len(b) >= 4:
		if n, err = io.ReadFull(c.Conn, b[:4]); err == nil {
			c.left = int(int32(binary.BigEndian.Uint32(b)))
		}
		return n, err
	case c.left > c.large && len(b) == c.left:
		if n, err = io.ReadFull(c.Conn, b); err == nil {
			c.look(b)
		}
	default:
		n, err = c.Conn.Read(b[:min(len(b), max(c.left, 4))])
	}
	c.left -= n
	return n, err
}

// look marks the heavy sets of an answer to a fetch request. It leaves alone answers that it cannot read: the client
// reports them.
func (c *plainConn) look(answer []byte) {
	version := c.version.Load() - 1
	if version < 0 || len(answer) < 4 {
		return
	}
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(int16(version))
	body := kbin.Reader{Src: answer[4:]} // behind the number of the request
	if resp.IsFlexible() {
		kmsg.SkipTags(&body)
	}
	if body.Ok() && resp.ReadFrom(body.Src) == nil {
		for _, t := range resp.Topics {
			for _, p := range t.Partitions {
				mark(p.RecordBatches, c.most)
			}
		}
	}
}

// mark marks the uncompressed sets that take more than most bytes in memory.
func mark(sets []byte, most int) {
	const size, magic, sum, attributes, records = 8, 16, 17, 21, 61 // positions in a set
	for len(sets) >= records {
		end := size + 4 + int(binary.BigEndian.Uint32(sets[size:]))
		if end < records || end > len(sets) || sets[magic] != 2 {
			return
		}
		set := sets[:end]
		sets = sets[end:]
		flags := binary.BigEndian.Uint16(set[attributes:])
		whole := binary.BigEndian.Uint32(set[sum:]) == crc32.Checksum(set[attributes:], castagnoli)
		if bytes, n := weigh(set[records:]); flags&uint16(heavy) != 0 || !whole || bytes+n*recordSize <= int64(most) {
			continue
		}
		binary.BigEndian.PutUint16(set[attributes:], flags|uint16(heavy))
		binary.BigEndian.PutUint32(set[sum:], crc32.Checksum(set[attributes:], castagnoli))
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
