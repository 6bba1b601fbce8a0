package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Total is the count and the hash of a set of rows, whatever their order.
//
// The hash of a row is the SHA-256 of its line, without the line feed, read as four big-endian words of 64 bits; that of a
// set is the sum of each word over its rows, modulo 2^64. A row is hashed whole, so values that changed places between
// two rows change both. Words are added and not XORed, so a row that is there twice counts twice and two equal ones do not
// cancel out. Postgres computes the same over the table by itself. It detects accidents; whoever can write to both the
// table and the shelf is not kept out by any hash.
type Total struct {
	Rows int64
	Sum  [4]uint64
}

// Add counts a line.
func (t *Total) Add(line []byte) {
	d := sha256.Sum256(line)
	t.Rows++
	for i := range t.Sum {
		t.Sum[i] += binary.BigEndian.Uint64(d[8*i:])
	}
}

// Join adds what another set has.
func (t *Total) Join(o Total) {
	t.Rows += o.Rows
	for i := range t.Sum {
		t.Sum[i] += o.Sum[i]
	}
}

// Hash is the sum as 64 hexadecimal digits.
func (t Total) Hash() string {
	return fmt.Sprintf("%016x%016x%016x%016x", t.Sum[0], t.Sum[1], t.Sum[2], t.Sum[3])
}

// parseTotal reads what [Total.Hash] wrote.
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
