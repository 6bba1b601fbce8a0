package pipeline

import (
	"context"
	"errors"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kerr"

	"docket/internal/errclass"
)

// Keys of log lines.
const (
	keyTopic     = "topic"
	keyPartition = "partition"
	keyOffset    = "offset"
	keyFirst     = "first_offset"
	keyLast      = "last_offset"
	keyTrace     = "trace_id"
	keyRecords   = "records"
	keyTarget    = "target"
	keyClass     = "class"
	keyCode      = "code"
	keyName      = "name"
	keyKind      = "kind"
	keyNamed     = "constraint"
	keyHint      = "hint"
)

// on adds the place of the batch to a log line.
func (c *carrier) on(e *zerolog.Event) *zerolog.Event {
	e = e.Str(keyTopic, c.topic).Int32(keyPartition, c.partition).Int64(keyFirst, c.first).Int64(keyLast, c.last)
	if id := c.trace.ID(); id != "" {
		e = e.Str(keyTrace, id)
	}
	return e
}

// failed logs and reports a failed write.
func (c *carrier) failed(v errclass.Classification, rows int) {
	c.observer.StoreFailed(v)
	c.on(c.log.Warn()).Str(keyClass, v.Class.String()).Str(keyCode, v.Code).Str(keyName, v.Name).Int(keyRecords, rows).
		Msg("database write failed")
}

// unsent counts, by topic and code, the records that a publish did not deliver.
type unsent map[unsentFor]int

type unsentFor struct{ topic, code string }

func (c *carrier) notSent(u *unsent, topic string, err error) {
	c.observer.PublishFailed(topic, err)
	if *u == nil {
		*u = unsent{}
	}
	(*u)[unsentFor{topic, publishCode(err)}]++
}

// tell writes a log line for each topic and code.
func (c *carrier) tell(u unsent) {
	for of, n := range u {
		c.on(c.log.Warn()).Str(keyTarget, of.topic).Str(keyCode, of.code).Int(keyRecords, n).Msg("records not published")
	}
}

// publishCode returns Kafka's name for the error, or one of Docket's codes if it has none.
func publishCode(err error) string {
	if k := (*kerr.Error)(nil); errors.As(err, &k) {
		return k.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errclass.CodeTimeout
	}
	return errclass.Classify(err).Code
}
