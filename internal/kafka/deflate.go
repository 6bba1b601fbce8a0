package kafka

import (
	"bytes"
	"sync"

	"github.com/pierrec/lz4/v4"
	"github.com/twmb/franz-go/pkg/kgo"
)

// deflater compresses sets of records by LZ4, as the client does by default, with two differences. Blocks have 256 KiB
// and not 4 MiB: the library makes two new buffers of a block's size after each garbage collection, and Kafka's reader
// another one. And the frame has no checksum, as Kafka's own producer writes it: the set has one over the compressed
// bytes.
type deflater struct{ writers sync.Pool }

var _ kgo.Compressor = (*deflater)(nil)

// Compress implements [kgo.Compressor]. A set that does not compress goes as it is.
func (d *deflater) Compress(dst *bytes.Buffer, src []byte, _ ...kgo.CompressFlag) ([]byte, kgo.CompressionCodecType) {
	w, _ := d.writers.Get().(*lz4.Writer)
	if w == nil {
		w = lz4.NewWriter(nil)
		if w.Apply(lz4.BlockSizeOption(lz4.Block256Kb), lz4.ChecksumOption(false)) != nil {
			return src, kgo.CodecNone
		}
	}
	w.Reset(dst)
	_, err := w.Write(src)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return src, kgo.CodecNone
	}
	d.writers.Put(w)
	return dst.Bytes(), kgo.CodecLz4
}
