package collector

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/subject"
)

// outgoing is a decision on its way to its home.
type outgoing struct {
	record *kgo.Record
	index  int // in the upload, of the first decision
	form   form
	shared []held // the decisions of a dead letter of several; nil: it is one
}

// size is how many decisions it is.
func (o *outgoing) size() int { return max(1, len(o.shared)) }

// form is how a decision is offered. If the brokers refuse one as too large, the next is offered.
type form uint8

const (
	plain      form = iota // to its topic, as it is
	zipped                 // to its topic, gzipped, which the consumer reads alike
	dead                   // to the dead-letter topic, as it is
	deadZipped             // to the dead-letter topic, gzipped
	bare                   // the same, with the necessary headers alone
)

// home publishes every decision and answers nil only when each of them is acknowledged.
func (u *upload) home(ctx context.Context) (refused *refusal) {
	c, t := u.collector, u.tools
	alone := u.alone()
	if refused := u.take(u.forHomes(alone)); refused != nil {
		u.whole = true
		return refused
	}
	now := c.now()
	t.begin(len(u.parts))
	ended := false // it is not if something panics
	defer func() {
		if !ended || refused != nil {
			u.unpay()
		}
	}()
	if traceparent := u.trace.Traceparent(); traceparent != "" {
		u.headers = []kgo.RecordHeader{{Key: "traceparent", Value: []byte(traceparent)}}
	}
	if u.client != "" && !c.cfg.Keys.None() { // nobody believes it without a key
		u.headers = append(u.headers, kgo.RecordHeader{Key: envelope.UploadedBy, Value: envelope.Uploader(u.client)})
	}
	sealer := envelope.Sealer{Keys: c.cfg.Keys}
	route := u.routes(now)
	var shared []held
	for i := range u.parts {
		part := &u.parts[i]
		value, readable := u.redacted(part)
		if part.Err != nil {
			if alone--; alone < 0 {
				shared = append(shared, held{i, value})
				continue
			}
		}
		t.records = append(t.records, kgo.Record{Topic: route(part), Value: value, Key: u.key(part, value, readable), Headers: u.headers})
		o := outgoing{record: u.signed(&t.records[len(t.records)-1]), index: i}
		if part.Err != nil {
			o.form = dead
			o.record = u.letter(&sealer, i, o.record, cause(part.Err), now, 0)
		}
		t.outgoing = append(t.outgoing, o)
	}
	if len(shared) > 0 {
		o, refused := u.together(&sealer, shared, dead, now)
		if refused != nil {
			return refused
		}
		t.outgoing = append(t.outgoing, o)
	}
	c.tellIdle(now)
	refused = u.offer(ctx, t.outgoing, &sealer, now)
	ended = true
	return refused
}

// offer publishes decisions, and those that were too large in one form in the next, of which each has only some.
func (u *upload) offer(ctx context.Context, going []outgoing, sealer *envelope.Sealer, now time.Time) *refusal {
	for len(going) > 0 {
		tooLarge, err := u.publish(ctx, going)
		if err != nil {
			return &refusal{reason: reasonKafka, cause: err}
		}
		going = nil
		for i := range tooLarge {
			next, refused := u.next(&tooLarge[i], sealer, now)
			if refused != nil {
				return refused
			}
			going = append(going, next...)
		}
	}
	u.whole = true
	return nil
}

// forHomes is the memory that dead letters and redacted decisions take on top.
func (u *upload) forHomes(alone int) (n int64) {
	rules, passing := u.collector.cfg.Redact, int64(0)
	for i := range u.parts {
		if u.parts[i].Err != nil {
			if alone--; alone >= 0 {
				n += eachLetter
			} else {
				n += int64(2*len(u.parts[i].Value)) + eachHeld // as it is withheld it is not much more
			}
		}
		if !rules.Empty() {
			stays, passes := rules.Outlay(u.parts[i].Value)
			n += stays
			passing = max(passing, passes) // one comes after the other
		}
	}
	return n + passing
}

// publish offers decisions in their order and returns those that were refused as too large.
func (u *upload) publish(ctx context.Context, going []outgoing) (tooLarge []outgoing, failed error) {
	c, t := u.collector, u.tools
	t.sending = t.sending[:0]
	for i := range going {
		t.sending = append(t.sending, going[i].record)
	}
	done := u.trace.Publishing(len(t.sending))
	failed = errUnanswered // of the span if something panics
	defer func() { done(failed) }()
	answers := c.publisher.Publish(ctx, t.sending)
	failed = nil
	taken := map[string]bool{}
	refusedBy := map[string]error{}
	homes := map[string]int{}
	for i := range going {
		topic := going[i].record.Topic
		err := errUnanswered
		if i < len(answers) {
			err = answers[i]
		}
		switch {
		case err == nil:
			homes[topic] += going[i].size()
			taken[topic] = true
			if going[i].form >= dead {
				u.trace.Dead(going[i].index, envelope.IDOf(going[i].record))
			}
		case errors.Is(err, kerr.MessageTooLarge):
			tooLarge = append(tooLarge, going[i])
			taken[topic] = true // it answers
		default:
			refusedBy[topic], failed = err, err
		}
	}
	u.count(homes)
	for topic, err := range refusedBy {
		c.outages.failed(topic, err)
		delete(taken, topic)
	}
	for topic := range taken {
		c.outages.took(topic)
	}
	return tooLarge, failed
}

var errUnanswered = errors.New("the publisher gave no answer")

// next makes the form in which a decision that was too large is offered next.
func (u *upload) next(o *outgoing, sealer *envelope.Sealer, now time.Time) (next []outgoing, refused *refusal) {
	c, part := u.collector, &u.parts[o.index]
	if o.shared != nil {
		return u.smaller(o, sealer, now)
	}
	switch o.form {
	case plain, dead:
		small, refused := u.zip(o.record.Value)
		if refused != nil {
			return nil, refused
		}
		if o.form == plain {
			o.form = zipped
			o.record = u.signed(&kgo.Record{Topic: o.record.Topic, Key: o.record.Key, Value: small, Headers: u.headers})
			break
		}
		o.form = deadZipped
		again := u.signed(&kgo.Record{Topic: u.meant(part), Key: o.record.Key, Value: small, Headers: u.headers})
		o.record = u.letter(sealer, o.index, again, cause(part.Err), now, 0)
	case zipped:
		o.form = deadZipped
		why := envelope.Cause{Kind: envelope.Decode, Code: string(decision.TooLarge),
			Message: "the brokers refuse the decision as too large, gzipped too: " + strconv.Itoa(len(part.Value)) + " bytes as it came"}
		again := *o.record
		again.Topic = u.meant(part)
		o.record = u.letter(sealer, o.index, &again, why, now, 0)
	case deadZipped:
		o.form = bare
		o.record = c.cfg.Keys.Bare(o.record)
	default:
		return nil, refuse(reasonDecisionBytes, 0)
	}
	return []outgoing{*o}, nil
}

// letter is a dead letter of what never had a place in Kafka: of several decisions that many are refused, else 0.
func (u *upload) letter(sealer *envelope.Sealer, index int, r *kgo.Record, why envelope.Cause, now time.Time, refused int) *kgo.Record {
	cfg, e := &u.collector.cfg, envelope.Unplaced(r, now)
	return sealer.Seal(&e, &why, envelope.Sealed{Topic: cfg.DLQTopic, Index: envelope.NoIndex, Value: r.Value, At: now, Consumer: cfg.Consumer, Refused: refused,
		Traceparent: u.trace.Letter(index, why.Code)})
}

func cause(r *decision.Refusal) envelope.Cause {
	why := envelope.Cause{Kind: envelope.Decode, Code: string(r.Reason), Message: r.Error()}
	if r.Reason == notAllowed {
		why.Message = "the client that uploaded the decision may not upload decisions with its " + r.Field
	}
	return why
}

// redacted is what Kafka sees of a decision, and whether that is the decision.
func (u *upload) redacted(part *decision.Part) (value []byte, readable bool) {
	readable = part.Value[0] == '{' && (part.Err == nil || part.Err.Reason != decision.Syntax)
	rules := u.collector.cfg.Redact
	if rules.Empty() {
		return part.Value, readable
	}
	if readable {
		if value, err := rules.Apply(part.Value); err == nil {
			return value, true
		}
	}
	return withheld(part), false
}

// withheld stands for what no rule could look into.
func withheld(part *decision.Part) []byte {
	why := decision.Syntax
	if part.Err != nil {
		why = part.Err.Reason
	}
	return fmt.Appendf(nil, `{"docket_withheld":"%s","bytes":%d}`, why, len(part.Value))
}

// longestKey is how many bytes a key has at most. The name of a longer subject is hashed. Else a caller that chooses its own
// name could make records that no broker takes, twice as large as its decision.
const longestKey = 256

// key is what a decision's record is keyed by; none where nothing can be read.
func (u *upload) key(part *decision.Part, value []byte, readable bool) []byte {
	if !readable {
		return nil
	}
	text, ok := u.subject(part, value)
	if !ok || text == "" {
		text, ok = part.Log.ID, part.Err == nil
	}
	if !ok {
		text, ok = subject.Spec{Kind: subject.DecisionID}.Of(value)
	}
	if !ok {
		return nil
	}
	t := u.tools
	from := len(t.keys)
	if len(text) > longestKey {
		hash := sha256.Sum256([]byte(text))
		t.keys = hex.AppendEncode(append(t.keys, "sha256:"...), hash[:])
	} else {
		t.keys = append(t.keys, text...)
	}
	return t.keys[from:len(t.keys):len(t.keys)]
}

// subject is who a decision is about as Kafka sees it: from what was decoded where redaction changed nothing.
func (u *upload) subject(part *decision.Part, value []byte) (text string, ok bool) {
	spec := u.collector.cfg.Key
	if part.Err == nil && unsafe.SliceData(value) == unsafe.SliceData(part.Value) {
		switch by := part.Log.RequestedBy; spec.Kind {
		case subject.RequestedBy:
			return by.V, by.Valid
		case subject.RequestedByHost:
			return subject.Host(by.V), by.Valid
		case subject.DecisionID:
			return part.Log.ID, true
		}
	}
	return spec.Of(value)
}

// begin makes room for n decisions.
func (t *tools) begin(n int) {
	t.records = slices.Grow(t.records[:0], n) // records are pointed at: they must not move
	t.sending = slices.Grow(t.sending[:0], n)
	t.outgoing = slices.Grow(t.outgoing[:0], n)
	t.keys = t.keys[:0]
	t.paid.Reset()
}

// zipperBytes is what a compressor takes.
const zipperBytes = 1 << 20

// zip gzips a decision, the same one always to the same bytes.
func (u *upload) zip(value []byte) ([]byte, *refusal) {
	if refused := u.take(int64(len(value)) + zipperBytes); refused != nil {
		return nil, refused
	}
	return decision.Zip(value), nil
}
