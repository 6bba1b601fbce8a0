//go:build !race

package columnar

import "github.com/parquet-go/parquet-go/compress/zstd"

var better = &zstd.Codec{Level: zstd.SpeedBetterCompression}
