package verify

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/errclass"
	"docket/internal/record/decision"
)

// DecisionsOf reads what a record of the source carries and what each decision deserves as far as the decoder is
// concerned: what it refuses is bad, everything else is good unless the table refuses it. maxBytes is what the reader
// is set to. Bodies alias the record, or what it inflates to.
func DecisionsOf(r *kgo.Record, maxBytes int64) []Decision {
	base := Decision{
		Place: Place{r.Topic, r.Partition, r.Offset, 0}, Key: SumOf(r.Key), KeyText: string(r.Key), Value: SumOf(r.Value), Body: r.Value,
	}
	read, refused := decode(r.Value, maxBytes)
	if refused != "" {
		base.Code = refused
		return []Decision{base}
	}
	ds := make([]Decision, len(read.Parts))
	for i, part := range read.Parts {
		d := base
		d.Index, d.Body = i, part.Value
		if !read.Sole {
			d.Value = SumOf(part.Value)
		}
		if part.Err != nil {
			d.Code = string(part.Err.Reason)
		} else {
			d.ID, d.Time, d.Body = part.Log.ID, part.Log.Time, part.Log.Came()
		}
		ds[i] = d
	}
	return ds
}

// decode says with which code a record is refused whole, empty where it is not. A record on which the decoder panics is
// one of its own.
func decode(value []byte, maxBytes int64) (read decision.Record, code string) {
	defer func() {
		if recover() != nil {
			code = errclass.CodePanic
		}
	}()
	read, refused := decision.Decode(value, maxBytes)
	if refused != nil {
		code = string(refused.Reason)
	}
	return read, code
}
