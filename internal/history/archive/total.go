package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Total is the count and the hash of a set of rows, in any order.
//
// The hash of a row is the SHA-256 of its line, without the line feed, as four big-endian words of 64 bits. The hash
// of a set is the sum of each word over its rows, modulo 2^64. A row is hashed whole, so values that moved between
// two rows change both. Sums count a repeated row twice, and with XOR two equal rows would cancel out. Postgres
// computes the same over the table. The hash detects accidents. It does not stop an attacker who can write to both
// the table and the storage.
type Total struct {
	Rows int64
	Sum  [4]uint64
}

// Add counts a line.
func (t *Total) Add(line []byte) { t.AddHash(sha256.Sum256(line)) }

// AddHash counts a line by its SHA-256.
func (t *Total) AddHash(d [sha256.Size]byte) {
	t.Rows++
	for i := range t.Sum {
		t.Sum[i] += binary.BigEndian.Uint64(d[8*i:])
	}
}

// Join adds another set.
func (t *Total) Join(o Total) {
	t.Rows += o.Rows
	for i := range t.Sum {
		t.Sum[i] += o.Sum[i]
	}
}

// Hash returns the sum as 64 hexadecimal digits.
func (t Total) Hash() string {
	return fmt.Sprintf("%016x%016x%016x%016x", t.Sum[0], t.Sum[1], t.Sum[2], t.Sum[3])
}

// parseTotal reads the output of [Total.Hash].
func parseTotal(rows int64, hash string) (Total, error) {
	b, err := hex.DecodeString(hash)
	if err != nil || len(b) != 32 || rows < 0 {
		return Total{}, &BrokenError{Problem: "its manifest has no proper count and hash"}
	}
	t := Total{Rows: rows}
	for i := range t.Sum {
		t.Sum[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return t, nil
}
