package verify

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/errclass"
	"docket/internal/record/decision"
)

// DecisionsOf reads the decisions of a source record. Those that the decoder refuses are bad. The others are good
// unless the table refuses them. maxBytes is the reader's limit. Bodies share the memory of the record, or of its
// inflated value.
func DecisionsOf(r *kgo.Record, maxBytes int64) []Decision {
	base := Decision{
		Place: Place{r.Topic, r.Partition, r.Offset, 0}, Key: SumOf(r.Key), KeyText: string(r.Key), Value: SumOf(r.Value), Whole: SumOf(r.Value), Body: r.Value, Stamp: r.Timestamp,
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

// decode returns the code with which a whole record is refused, or "". A record on which the decoder panics has its
// own code.
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
