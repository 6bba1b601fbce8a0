//go:build !race && integration

package kafka_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// TestResident_AnyInput takes too long for every run.
//
//nolint:paralleltest // what else runs would make it slow
func TestResident_AnyInput(t *testing.T) {
	residentOf(t, []resident{
		{"40 between tries", 40, "tries", 1500, large, kgo.ZstdCompression(), 0, false},
		{"200 hold zstd", 200, "hold", 1500, large, kgo.ZstdCompression(), 0, false},
		{"three lanes of 20 wait", 60, "wait", 1500, large, kgo.ZstdCompression(), 0, true},
		{"three lanes of 66 hold", 198, "hold", 1500, large, kgo.ZstdCompression(), 0, true},
		{"three lanes of 66 hold the largest sets", 198, "hold", 4000, large, kgo.ZstdCompression(), 0, true},
		{"three lanes of 66 hold tiny records", 198, "hold", 36_000, nil, kgo.NoCompression(), 0, true},
		{"three lanes of 66 hold tiny records, lz4", 198, "hold", 100_000, nil, kgo.Lz4Compression(), 0, true},
		{"200 hold gzip", 200, "hold", 1500, large, kgo.GzipCompression(), 0, false},
		{"200 hold lz4", 200, "hold", 1500, large, kgo.Lz4Compression(), 0, false},
		{"200 hold snappy", 200, "hold", 1500, large, kgo.SnappyCompression(), 0, false},
		{"200 hold the largest sets", 200, "hold", 4000, large, kgo.ZstdCompression(), 0, false},
		{"200 hold tiny records", 200, "hold", 36_000, nil, kgo.NoCompression(), 0, false},
		{"200 hold tiny records, zstd", 200, "hold", 100_000, nil, kgo.ZstdCompression(), 0, false},
	})
}
