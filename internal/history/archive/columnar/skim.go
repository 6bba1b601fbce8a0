package columnar

import "encoding/binary"

// skimmer walks through a structure in Thrift's compact protocol before the library decodes it. The library makes lists
// as long as the structure says, so a few bytes could ask for gigabytes.
type skimmer struct {
	data []byte
	at   int
	left int64 // bytes that the decoded structure may still have
	bad  bool
	path []int // ids of the fields around the present one
	// number gets each whole number with its path; nil: nobody wants them.
	number func(path []int, value int64)
	// listed gets the length of each list; nil: nobody wants them.
	listed func(path []int, n int)
}

// Types of the compact protocol.
const (
	thriftTrue, thriftFalse, thriftByte, thriftI16, thriftI32, thriftI64, thriftDouble = 1, 2, 3, 4, 5, 6, 7
	thriftBinary, thriftList, thriftSet, thriftMap, thriftStruct                       = 8, 9, 10, 11, 12

	mostDepth = 12
)

// skim reports whether data begins with a structure of at most these bytes in memory, and where it ends.
func skim(data []byte, most int64, number func(path []int, value int64), listed func(path []int, n int)) (end int, ok bool) {
	s := skimmer{data: data, left: most, number: number, listed: listed}
	s.structure()
	return s.at, !s.bad
}

func (s *skimmer) uvarint() uint64 {
	v, n := binary.Uvarint(s.data[min(s.at, len(s.data)):])
	if n <= 0 {
		s.bad = true
		return 0
	}
	s.at += n
	return v
}

func (s *skimmer) varint() int64 {
	u := s.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (s *skimmer) byte() byte {
	if s.at >= len(s.data) {
		s.bad = true
		return 0
	}
	s.at++
	return s.data[s.at-1]
}

// skip passes bytes that are copied.
func (s *skimmer) skip(n uint64) {
	if n > uint64(len(s.data)-s.at) {
		s.bad = true
		return
	}
	s.at += int(n)
	s.take(int64(n))
}

// take spends memory.
func (s *skimmer) take(n int64) {
	if s.left -= n; s.left < 0 {
		s.bad = true
	}
}

func (s *skimmer) structure() {
	if len(s.path) >= mostDepth {
		s.bad = true
		return
	}
	for last := 0; !s.bad; {
		head := s.byte()
		if head == 0 {
			return
		}
		if delta := int(head >> 4); delta > 0 {
			last += delta
		} else {
			last = int(int16(s.varint()))
		}
		s.path = append(s.path, last)
		s.value(head&15, false)
		s.path = s.path[:len(s.path)-1]
	}
}

func (s *skimmer) value(typ byte, inList bool) {
	switch typ {
	case thriftTrue, thriftFalse:
		if inList {
			s.byte()
		}
	case thriftByte:
		s.byte()
	case thriftI16, thriftI32, thriftI64:
		if v := s.varint(); s.number != nil && !s.bad {
			s.number(s.path, v)
		}
	case thriftDouble:
		s.skip(8)
	case thriftBinary:
		s.skip(s.uvarint())
	case thriftList, thriftSet:
		s.list()
	case thriftMap:
		s.pairs()
	case thriftStruct:
		s.structure()
	default:
		s.bad = true
	}
}

// size is what an element of a list has in memory. The outer structures are the largest: a column of a group has about
// 700 bytes.
func (s *skimmer) size(typ byte) int64 {
	switch {
	case typ != thriftStruct:
		return 24
	case len(s.path) <= 2:
		return 1024
	}
	return 64
}

func (s *skimmer) list() {
	head := s.byte()
	n, typ := uint64(head>>4), head&15
	if n == 15 {
		n = s.uvarint()
	}
	if n > uint64(len(s.data)-s.at) { // an element has a byte or more
		s.bad = true
		return
	}
	s.take(int64(n) * s.size(typ))
	if s.listed != nil {
		s.listed(s.path, int(n))
	}
	for ; n > 0 && !s.bad; n-- {
		s.value(typ, true)
	}
}

func (s *skimmer) pairs() {
	n := s.uvarint()
	if n == 0 {
		return
	}
	types := s.byte()
	if n > uint64(len(s.data)-s.at) {
		s.bad = true
		return
	}
	s.take(int64(n) * 128)
	for ; n > 0 && !s.bad; n-- {
		s.value(types>>4, true)
		s.value(types&15, true)
	}
}
