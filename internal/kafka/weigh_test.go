package kafka

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
)

// recorded encodes a record with this many headers.
func recorded(offset, headers int, value []byte) []byte {
	body := binary.AppendVarint([]byte{0, 2}, int64(offset))
	body = binary.AppendVarint(body, -1)
	body = append(binary.AppendVarint(body, int64(len(value))), value...)
	body = append(binary.AppendVarint(body, int64(headers)), make([]byte, 2*headers)...)
	return append(binary.AppendVarint(nil, int64(len(body))), body...)
}

func TestWeigh_CountsRecordsAndHeaders(t *testing.T) {
	t.Parallel()
	three := bytes.Join([][]byte{recorded(0, 0, nil), recorded(1, 5, []byte("value")), recorded(2, 300, nil)}, nil)
	message := append([]byte{0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 14}, make([]byte, 14)...)
	for name, tc := range map[string]struct {
		set              []byte
		records, headers int64
	}{
		"nothing":                     {nil, 0, 0},
		"records":                     {three, 3, 305},
		"a record is cut":             {three[:len(three)-1], 2, 5},
		"old messages":                {bytes.Repeat(message, 4), 4, 0},
		"a negative count of headers": {append(binary.AppendVarint(nil, 6), 0, 0, 0, 1, 1, 1), 1, 0},
	} {
		if got, n := weigh(tc.set); got != int64(len(tc.set))+tc.headers*headerSize || n != tc.records {
			t.Errorf("%s: %d bytes and %d records, want %d headers of %d and %d", name, got, n, tc.headers, headerSize, tc.records)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 { // any bytes are weighed without a panic
		broken := bytes.Clone(three)
		for range 1 + random.IntN(4) {
			broken[random.IntN(len(broken))] = byte(random.Uint32())
		}
		if got, n := weigh(broken[:random.IntN(len(broken)+1)]); got < 0 || n < 0 {
			t.Fatalf("%d bytes, %d records for %x", got, n, broken)
		}
	}
}
