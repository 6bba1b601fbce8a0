//go:build race

package columnar

import (
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/compress"
	parquetzstd "github.com/parquet-go/parquet-go/compress/zstd"
)

// better keeps its encoders itself. With the race detector a [sync.Pool] drops every fourth one, and to make one takes
// longer than a page.
var better = newKeeping()

// keeping is a codec with a fixed number of encoders that are kept. The bytes are those of the codec without the race
// detector.
type keeping struct {
	compress.Codec
	encoders chan *zstd.Encoder
}

func newKeeping() *keeping {
	k := &keeping{&parquetzstd.Codec{Level: parquetzstd.SpeedBetterCompression}, make(chan *zstd.Encoder, 2)}
	for range cap(k.encoders) {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(false))
		if err != nil {
			panic(err) // only for options that do not exist
		}
		e.EncodeAll([]byte("x"), nil) // an encoder that is first used in a bubble of testing/synctest belongs to it
		k.encoders <- e
	}
	return k
}

// Encode is that of the codec, with a kept encoder if one is free.
func (k *keeping) Encode(dst, src []byte) ([]byte, error) {
	select {
	case e := <-k.encoders:
		defer func() { k.encoders <- e }()
		return e.EncodeAll(src, dst[:0]), nil
	default:
		return k.Codec.Encode(dst, src)
	}
}
