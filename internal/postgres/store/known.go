package store

import (
	"crypto/sha256"
	"encoding/binary"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/db"
)

// byHash marks those rows Present that are there with the very bytes that are in hand, and gives those that only their
// payload can tell. A row that is not there is neither marked nor given.
func (w *writing) byHash(t *transaction, at []int) (others []int, err error) {
	for len(at) > 0 {
		n := portionOf(at, func(i int) int { return len(w.rows[i].Log.ID) + knownSize })
		if others, err = w.hashPortion(t, at[:n], others); err != nil {
			return nil, err
		}
		at = at[n:]
	}
	return others, nil
}

// knownSize is what the question sends of a row beside its id, in bytes.
const knownSize = 4 + 12 + 4 + sha256.Size

func (w *writing) hashPortion(t *transaction, at, others []int) ([]int, error) {
	err := t.ask(knownSQL, knownColumns(w.rows, at), func(values [][]byte) error {
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

// knownColumns are the parameters of the question for the rows at these positions, of which there is one at least.
func knownColumns(rows []pipeline.Row, at []int) [][]byte {
	n, ids := len(at), 0
	for _, i := range at {
		ids += len(rows[i].Log.ID)
	}
	id, ts, sum := newArray(oidText, n, ids), newArray(oidTimestamptz, n, 8*n), newArray(oidBytea, n, sha256.Size*n)
	for _, i := range at {
		id.text(rows[i].Log.ID)
		ts.int8(micros(rows[i].Log.Time))
		sum.hash(rows[i].Log.Sum())
	}
	first, last := spanOf(rows, at)
	return [][]byte{id.bytes(), ts.bytes(), sum.bytes(), first, last}
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
	return errclass.As(&db.AnswerError{Problem: "the comparison answered in another form than asked for"}, errclass.CodeProtocol)
}

func errNotSent() error {
	return errclass.As(&db.AnswerError{Problem: "the comparison returned a row that was not sent"}, errclass.CodeProtocol)
}
