package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"

	"docket/internal/consumer/pipeline"
	"docket/internal/record/decision"
)

// fixed is what a row takes at most beside its texts: the count of the columns, their lengths, the numbers, the bool,
// the versions of jsonb and the hash.
const fixed = 2 + copyColumns*4 + 4*8 + 2*4 + 1 + 3 + sha256.Size

// wholeRow is a row as [window.row] encodes it, in one pass, into a buffer that is sure to have room for it. Nearly every
// faithful row is: a message takes some dozens of them. Where one might not fit, the content of the buffer is undefined.
func wholeRow(to []byte, r *pipeline.Row) (n int, fits bool) {
	l := r.Log
	if l.Unfaithful != nil || fixed+len(l.ID)+len(l.Path.V)+len(l.RequestedBy.V)+len(l.OPAID.V)+len(l.OPAVersion.V)+len(l.Service.V)+
		len(l.Labels)+len(l.Bundles)+len(l.Raw)+len(l.Pieces)+len(r.Topic)+len(r.UploadedBy) > len(to) {
		return 0, false
	}
	b := binary.BigEndian.AppendUint16(to[:0:len(to)], copyColumns)
	b = appendText(b, l.ID)
	b = appendInt8(b, micros(l.Time))
	b = appendNullText(b, l.Path)
	b = appendNullBool(b, l.Allowed)
	b = appendNullText(b, l.RequestedBy)
	if l.ReqID.Valid {
		b = appendInt8(b, l.ReqID.V)
	} else {
		b = appendNull(b)
	}
	b = appendNullText(b, l.OPAID)
	b = appendNullText(b, l.OPAVersion)
	b = appendNullText(b, l.Service)
	b = appendJSON(b, l.Labels)
	b = appendJSON(b, l.Bundles)
	b = appendRaw(b, l)
	b = appendText(b, r.Topic)
	b = binary.BigEndian.AppendUint64(b, 4<<32|uint64(uint32(r.Partition)))
	b = appendInt8(b, r.Offset)
	b = binary.BigEndian.AppendUint64(b, 4<<32|uint64(uint32(r.Index)))
	sum := l.Sum()
	b = append(binary.BigEndian.AppendUint32(b, sha256.Size), sum[:]...)
	b = appendNull(appendNull(b))
	b = appendNullText(b, uploader(r))
	return len(b), len(b) <= len(to) // pieces that overlap are longer than what they are pieces of
}

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }

func appendText(b []byte, s string) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

func appendNullText(b []byte, s sql.Null[string]) []byte {
	if !s.Valid {
		return appendNull(b)
	}
	return appendText(b, s.V)
}

func appendInt8(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(append(b, 0, 0, 0, 8), uint64(v))
}

func appendNullBool(b []byte, v sql.Null[bool]) []byte {
	switch {
	case !v.Valid:
		return appendNull(b)
	case v.V:
		return append(b, 0, 0, 0, 1, 1)
	}
	return append(b, 0, 0, 0, 1, 0)
}

func appendJSON(b, value []byte) []byte {
	if len(value) == 0 {
		return appendNull(b)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(jsonbHead-4+len(value)))
	return append(append(b, jsonbVersion), value...)
}

// appendRaw is the payload: its pieces in their order, where there are some.
func appendRaw(b []byte, l *decision.Log) []byte {
	if len(l.Pieces) == 0 {
		return appendJSON(b, l.Raw)
	}
	head := len(b)
	b = append(b, 0, 0, 0, 0, jsonbVersion)
	for _, p := range l.Pieces {
		stretch, comma := p.Of(l.Raw)
		if comma {
			b = append(b, ',')
		}
		b = append(b, stretch...)
	}
	binary.BigEndian.PutUint32(b[head:], uint32(len(b)-head-4))
	return b
}
