package postgres

import (
	"encoding/binary"
	"math"
	"slices"

	"docket/internal/errclass"
	"docket/internal/pipeline"
)

// hasPlace says whether a row can be known by its place, among rows from that source. Of a copy it is not known when the
// record was appended; a time before 1970 stands for none, and one that Postgres may not have says nothing.
func hasPlace(r *pipeline.Row, from source) bool {
	appended := r.Appended.Unix()
	return appended > 0 && appended < year10000 && r.Partition == from.partition && r.Topic == from.topic
}

const year10000 = 253_402_300_800 // in Unix seconds

// byPlace marks those rows Present that are there as the very record that is in hand, and gives those that only their
// payload can tell. What is not there is neither marked nor given.
func (w *writing) byPlace(t *transaction, at []int) ([]int, error) {
	from := sourceOf(w.rows)
	placed, others := at, []int(nil)
	if slices.ContainsFunc(at, func(i int) bool { return !hasPlace(&w.rows[i], from) }) {
		placed = nil
		for _, i := range at {
			if hasPlace(&w.rows[i], from) {
				placed = append(placed, i)
			} else {
				others = append(others, i)
			}
		}
	}
	for len(placed) > 0 {
		n := portionOf(placed, func(i int) int { return len(w.rows[i].Log.ID) + placeSize })
		there, err := w.placePortion(t, from, placed[:n])
		if err != nil {
			return nil, err
		}
		others, placed = append(others, there...), placed[n:]
	}
	return others, nil
}

// placeSize is what the question sends of a row beside its id, in bytes.
const placeSize = 4 + 12 + 12 + 8 + 12

func (w *writing) placePortion(t *transaction, from source, at []int) (others []int, err error) {
	err = t.ask(placeSQL, placeColumns(w.rows, from, at), func(values [][]byte) error {
		if len(values) != 1 {
			return errOtherForm()
		}
		return eachInt8(values[0], func(n int64) error {
			same := n > 0
			if !same {
				n = -n
			}
			if n < 1 || n > int64(len(at)) || w.outcomes[at[n-1]] != 0 {
				return errNotSent()
			}
			if same {
				w.outcomes[at[n-1]] = pipeline.Present
			} else {
				others = append(others, at[n-1])
			}
			return nil
		})
	})
	return others, err
}

func placeColumns(rows []pipeline.Row, from source, at []int) [][]byte {
	n, ids := len(at), 0
	for _, i := range at {
		ids += len(rows[i].Log.ID)
	}
	id, ts, appended := newArray(oidText, n, ids), newArray(oidTimestamptz, n, 8*n), newArray(oidTimestamptz, n, 8*n)
	offset, index := newArray(oidInt8, n, 8*n), newArray(oidInt4, n, 4*n)
	first, last := int64(math.MaxInt64), int64(math.MinInt64)
	for _, i := range at {
		r := &rows[i]
		at := micros(r.Log.Time)
		first, last = min(first, at), max(last, at)
		id.text(r.Log.ID)
		ts.int8(at)
		offset.int8(r.Offset)
		index.int4(int32(r.Index))
		appended.int8(micros(r.Appended))
	}
	return [][]byte{
		id.bytes(), ts.bytes(), offset.bytes(), index.bytes(), appended.bytes(),
		[]byte(from.topic), binary.BigEndian.AppendUint32(nil, uint32(from.partition)), timestamp(first), timestamp(last),
	}
}

// eachInt8 reads an array of int8 in binary form; NULL has no elements.
func eachInt8(b []byte, each func(int64) error) error {
	if len(b) == 0 {
		return nil
	}
	const element = 4 + 8
	if len(b) < arrayHeader || binary.BigEndian.Uint32(b) != 1 || binary.BigEndian.Uint32(b[8:]) != oidInt8 ||
		len(b) != arrayHeader+element*int(binary.BigEndian.Uint32(b[12:])) {
		return errOtherForm()
	}
	for b = b[arrayHeader:]; len(b) > 0; b = b[element:] {
		if binary.BigEndian.Uint32(b) != 8 {
			return errOtherForm()
		}
		if err := each(int64(binary.BigEndian.Uint64(b[4:]))); err != nil {
			return err
		}
	}
	return nil
}

func errOtherForm() error {
	return errclass.As(&AnswerError{Problem: "the comparison answered in another form than asked for"}, errclass.CodeProtocol)
}

func errNotSent() error {
	return errclass.As(&AnswerError{Problem: "the comparison returned a row that was not sent"}, errclass.CodeProtocol)
}
