package failpoint

import "encoding/binary"

// frames cuts a stream of Kafka's wire into requests or answers: a length of four bytes and what it counts. Of what is
// not wanted nothing is kept.
type frames struct {
	buf  []byte // the length and what came of a frame that may be wanted
	skip int    // bytes of an unwanted frame that are still to come
}

// head is how much of a frame is needed to know whether it is wanted.
const head = 4

// feed takes the next bytes of the stream and calls take with each wanted frame that is whole. The frame is good until
// take returns. wanted is called with the first bytes of a frame.
func (f *frames) feed(p []byte, wanted func(head []byte) bool, take func(frame []byte)) {
	for len(p) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(p))
			f.skip -= n
			p = p[n:]
			continue
		}
		need := 4 + head
		if len(f.buf) >= need {
			need = 4 + int(binary.BigEndian.Uint32(f.buf))
		}
		n := min(need-len(f.buf), len(p))
		f.buf = append(f.buf, p[:n]...)
		p = p[n:]
		if len(f.buf) < need {
			return
		}
		size := 4 + int(binary.BigEndian.Uint32(f.buf))
		switch {
		case need == 4+head && !wanted(f.buf[4:need]):
			f.skip = size - need
			f.buf = f.buf[:0]
		case len(f.buf) >= size:
			take(f.buf[4:size])
			f.buf = f.buf[:0]
		}
	}
}
