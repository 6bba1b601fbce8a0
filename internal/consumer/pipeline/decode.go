package pipeline

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// codePanic is the failure code of a record on which the decoder panicked.
const codePanic = "panic"

// decode opens records until their decisions fill a batch. These records are cut off as the batch to carry now. A
// plain record with one decision does not grow, so records that were fetched together are usually stored together. A
// refused decision is marked for the dead-letter topic. It goes there when the batch gets its homes, not before.
func (c *carrier) decode(ctx context.Context, rest *home.Batch) (*home.Batch, error) {
	c.awaitTurn(ctx)
	c.scratch = c.newScratch(len(rest.Records()))
	bytes, most := int64(0), c.cfg.BatchBytes
	if own := rest.Most(); own > 0 && (own < most || most <= 0) {
		most = own
	}
	n := 0
	for room := c.room(most); n < len(rest.Records()) && (most <= 0 || bytes < most); n++ {
		grew, ok := c.open(rest, n, room)
		if !ok {
			break // it begins the next batch
		}
		bytes += grew
	}
	if n == 0 {
		if err := c.openLarge(ctx, rest); err != nil {
			return nil, err
		}
		n = 1
	}
	c.took()
	return rest.Cut(n), nil
}

// openLarge opens the first portion of the first record, once no other partition has a large record in hand.
func (c *carrier) openLarge(ctx context.Context, b *home.Batch) error {
	c.returnScratch() // waiting may take long
	if err := c.awaitLarge(ctx); err != nil {
		return err
	}
	c.scratch = c.newScratch(1)
	room := c.room(c.cfg.BatchBytes)
	room.bytes, room.alone = c.cfg.MaxRecordBytes, true
	c.open(b, 0, room)
	return nil
}

// room returns how far a record may be opened in a batch of this many bytes; 0 or less: no limit.
func (c *carrier) room(most int64) opening {
	if most <= 0 {
		return opening{bytes: c.cfg.MaxRecordBytes, decisions: decision.MaxDecisions}
	}
	most = max(most, leastOpened)
	return opening{bytes: most, decisions: int(min(most/itemBytes, decision.MaxDecisions))}
}

// took notes and reports the decoded items as in hand.
func (c *carrier) took() {
	c.items = c.scratch.all
	c.observer.Took(decisionsOf(c.items))
}

// open reads record i into the scratch and returns by how many bytes the batch grew. If the record is too large for
// the room and is not opened alone, ok is false and nothing has changed.
func (c *carrier) open(b *home.Batch, i int, room opening) (grew int64, ok bool) {
	r, d := b.Records()[i], c.scratch
	c.flood = flood{}
	env := &take(&d.envelopes, 1)[0]
	*env = c.openEnvelope(r)
	limit := c.cfg.MaxRecordBytes
	if decision.IsGzip(r.Value) {
		limit = min(limit, room.bytes)
	}
	read, refused := c.read(r, r.Value, limit, 0, room.decisions)
	tooLarge := refused != nil && refused.Code == string(decision.TooLarge) && limit < c.cfg.MaxRecordBytes
	if !room.alone && (tooLarge || len(read.Parts) < read.Count) {
		return 0, false
	}
	if refused != nil {
		it := &take(&d.items, 1)[0]
		*it = item{entry: &b.Carries(i, 1)[0], env: env, index: env.Origin.Index, value: r.Value}
		it.deadLetter(refused)
		d.all = append(d.all, it)
		return int64(len(r.Value)), true
	}
	entries := b.Carries(i, read.Count)
	c.openItems(env, entries, &read)
	letters := 0
	if len(read.Parts) == read.Count {
		letters = c.closeFlood(env, read.Plain)
	}
	if room.alone {
		c.large.plain, c.large.entries, c.large.opened = read.Plain, entries, len(read.Parts)
	}
	return int64(len(r.Value) + read.Inflated + letters + (len(read.Parts)-1)*itemBytes), true
}

// openItems makes items of a record's decisions, except for refused ones that share a dead letter.
func (c *carrier) openItems(env *envelope.Envelope, entries []home.Entry, read *decision.Record) {
	items := take(&c.scratch.items, len(read.Parts))
	for j := range read.Parts {
		if read.Parts[j].Err != nil && c.flood.takes(c.cfg.MaxRefused, &read.Parts[j], &entries[j]) {
			continue
		}
		c.openItem(&items[j], env, &entries[j], &read.Parts[j], read.Sole)
		c.scratch.all = append(c.scratch.all, &items[j])
	}
}

func (c *carrier) openEnvelope(r *kgo.Record) envelope.Envelope {
	env := envelope.Open(r)
	if c.cfg.Replay {
		env = c.scratch.opener.OpenParked(r, c.cfg.MaxBackoff)
	}
	env.UploadedBy = c.scratch.opener.Uploader(c.cfg.Keys, r)
	return env
}

func (c *carrier) openItem(it *item, env *envelope.Envelope, entry *home.Entry, part *decision.Part, sole bool) {
	*it = item{entry: entry, env: env, index: part.Index, value: part.Value}
	if sole {
		it.value, it.bare = env.Record.Value, part.Value // byte for byte, compressed or not
		if env.Origin.Index >= 0 {
			it.index = env.Origin.Index // it was one of several decisions where it was first read
		}
	}
	switch {
	case part.Err != nil:
		it.deadLetter(refusal(part.Err))
	case env.Parked && env.Attempt >= c.cfg.MaxAttempts:
		it.log = &part.Log
		it.exhaust(env.Code, env.Attempt)
	default:
		it.log = &part.Log
		it.log.KeepSum()
	}
}

// read decodes a record's value like [decision.Decoder.DecodeSome]. It turns a panic of the decoder into a refusal of
// this record. Other panics are not caught.
func (c *carrier) read(r *kgo.Record, value []byte, maxBytes int64, from, most int) (read decision.Record, refused *envelope.Cause) {
	defer func() {
		if v := recover(); v != nil {
			c.log.Error().Str(keyTopic, r.Topic).Int32(keyPartition, r.Partition).Int64(keyOffset, r.Offset).
				Str(keyKind, fmt.Sprintf("%T", v)).Str(keyHint, "report this bug with the topic, partition and offset").
				Msg("decoder panicked")
			c.scratch.decoder = decision.Decoder{} // it may have left a decision half read
			refused = &envelope.Cause{Kind: envelope.Decode, Code: codePanic, Message: "the decoder panicked on this record: a bug in Docket"}
		}
	}()
	read, err := c.decodeValue(&c.scratch.decoder, value, maxBytes, from, most)
	if err != nil {
		return decision.Record{}, refusal(err)
	}
	return read, nil
}
