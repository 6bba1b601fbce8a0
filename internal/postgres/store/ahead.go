package store

import (
	"unsafe"

	"docket/internal/record/decision"
)

// Rows are sent in the order of their identity, and so all over memory. A batch is larger than the caches near a core, and the
// encoding of each row would wait for memory. So it asks for the rows to come: for the fields of one, and a little later, when
// these are there, for its payload.
const (
	fieldsAhead  = 6
	payloadAhead = 3
	mostAhead    = 2 << 10 // bytes of a payload; the processor sees by itself that it is read to its end
)

// ahead asks for the memory of the rows that come after the next one.
func (c *copyReader) ahead() {
	if i := c.next + fieldsAhead; i < len(c.at) {
		prefetch(unsafe.Pointer(c.rows[c.at[i]].Log), int(unsafe.Sizeof(decision.Log{})))
	}
	if i := c.next + payloadAhead; i < len(c.at) {
		if raw := c.rows[c.at[i]].Log.Raw; len(raw) > 0 {
			prefetch(unsafe.Pointer(unsafe.SliceData(raw)), min(len(raw), mostAhead))
		}
	}
}
