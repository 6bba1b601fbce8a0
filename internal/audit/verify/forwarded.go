package verify

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// ForwardedOf is [ForwardedBy] without keys.
func ForwardedOf(r *kgo.Record, h home.Home, found string) Forwarded {
	return ForwardedBy(envelope.Keys{}, r, h, found)
}

// ForwardedBy reads the headers of a forwarded record. found is its topic or spooled file. The value is not kept. If
// keys do not prove the headers, they are not used.
func ForwardedBy(keys envelope.Keys, r *kgo.Record, h home.Home, found string) Forwarded {
	f := Forwarded{
		Home: h, Found: found, To: r.Topic, Key: SumOf(r.Key), Value: SumOf(r.Value), Stamp: r.Timestamp,
	}
	if h != home.Spooled {
		f.At = Position{r.Partition, r.Offset}
	}
	of := make(map[string]string, len(r.Headers))
	f.Unproven = !keys.Prove(r)
	for _, one := range r.Headers {
		if f.Unproven {
			break
		}
		of[one.Key] = string(one.Value) // the last of a name counts, as in Kafka's own clients
	}
	f.Kind, f.Code, f.Message, f.ID = of[envelope.FailureKind], of[envelope.FailureCode], of[envelope.FailureMessage], of[envelope.DeadLetterID]
	f.RetryOf, f.By = of[envelope.RetryOf], of[envelope.Consumer]
	if h == home.DeadLetter || h == home.Exhausted {
		f.Entry = keys.OpenDead(r).ID
	}
	if f.AnyClient = f.Unproven || keys.None(); !f.AnyClient {
		f.Client = string(envelope.Uploader(of[envelope.UploadedBy]))
	}
	f.NoOrigin = !f.unplaced(of) && !f.origin(of)
	if !f.NoOrigin {
		f.WrongID = f.ID != envelope.ID(envelope.Origin{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Index: f.Index}, r.Value)
	}
	if n, err := strconv.Atoi(of[envelope.RetryAttempt]); err == nil {
		f.Attempt = n
	}
	if ms, err := strconv.ParseInt(of[envelope.NotBefore], 10, 64); err == nil && ms > 0 {
		f.NotBefore = time.UnixMilli(ms)
	}
	if at, err := time.Parse(time.RFC3339Nano, of[envelope.FailedAt]); err == nil {
		f.FailedAt = at
	}
	return f
}

// unplaced reports whether this is a dead letter of a collector, refused before it came to Kafka.
func (f *Forwarded) unplaced(of map[string]string) bool {
	f.Unplaced = f.Home == home.DeadLetter && f.Kind == string(envelope.Decode) && of[envelope.OriginalTopic] != ""
	for _, name := range []string{envelope.OriginalPartition, envelope.OriginalOffset, envelope.OriginalIndex} {
		if _, there := of[name]; there {
			f.Unplaced = false
		}
	}
	if f.Unplaced {
		f.Place = Place{of[envelope.OriginalTopic], envelope.NoPlace, envelope.NoPlace, envelope.NoIndex}
	}
	return f.Unplaced
}

// origin reads where the record was first read; false if its headers do not say.
func (f *Forwarded) origin(of map[string]string) bool {
	partition, perr := strconv.ParseInt(of[envelope.OriginalPartition], 10, 32)
	offset, oerr := strconv.ParseInt(of[envelope.OriginalOffset], 10, 64)
	f.Place = Place{of[envelope.OriginalTopic], int32(partition), offset, envelope.NoIndex}
	if text, there := of[envelope.OriginalIndex]; there {
		index, err := strconv.Atoi(text)
		if err != nil || index < 0 {
			return false
		}
		f.Index = index
	}
	return f.Topic != "" && perr == nil && oerr == nil
}
