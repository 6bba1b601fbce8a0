//go:build !race

package columnar

import "github.com/parquet-go/parquet-go/compress/zstd"

// better packs columns. With the race detector another one takes its place, see codec_race.go.
var better = &zstd.Codec{Level: zstd.SpeedBetterCompression}
