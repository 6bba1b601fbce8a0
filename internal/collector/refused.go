package collector

import (
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// held is a refused decision that shares a dead letter with others of its upload.
type held struct {
	index int // in the upload
	value []byte
}

// eachHeld is what such a decision takes beside its bytes and their copy.
const eachHeld = 64

// alone is how many refused decisions of the upload have a dead letter each; the others share one.
func (u *upload) alone() int {
	refused, most := 0, u.collector.cfg.MaxRefused
	for i := range u.parts {
		if u.parts[i].Err != nil {
			refused++
		}
	}
	if most <= 0 || refused <= most+1 {
		return refused
	}
	return most
}

// together is the dead letter of several refused decisions, or that of one.
func (u *upload) together(sealer *envelope.Sealer, shared []held, form form, now time.Time) (outgoing, *refusal) {
	first := &shared[0]
	if len(shared) == 1 {
		part := &u.parts[first.index]
		_, readable := u.redacted(part)
		r := u.signed(&kgo.Record{Topic: u.meant(part), Value: first.value, Key: u.key(part, first.value, readable), Headers: u.headers})
		return outgoing{record: u.letter(sealer, first.index, r, cause(part.Err), now, 0), index: first.index, form: dead}, nil
	}
	each := func(yield func(int, []byte) bool) {
		for i := range shared {
			if !yield(shared[i].index, shared[i].value) {
				return
			}
		}
	}
	onLines := decision.OnLines(u.plain)
	value := decision.AppendRest(make([]byte, 0, decision.RestBytes(onLines, each)), onLines, each)
	if form == deadZipped {
		small, refused := u.zip(value)
		if refused != nil {
			return outgoing{}, refused
		}
		value = small
	}
	why := envelope.Together(func(yield func(string) bool) {
		for i := range shared {
			if !yield(string(u.parts[shared[i].index].Err.Reason)) {
				return
			}
		}
	}, first.index, shared[len(shared)-1].index)
	r := u.signed(&kgo.Record{Topic: u.collector.cfg.Topic, Value: value, Headers: u.headers})
	return outgoing{record: u.letter(sealer, first.index, r, why, now, len(shared)), index: first.index, form: form, shared: shared}, nil
}

// smaller makes the forms in which a dead letter of several decisions is offered next: gzipped, then each half by itself.
func (u *upload) smaller(o *outgoing, sealer *envelope.Sealer, now time.Time) (next []outgoing, refused *refusal) {
	parts := [][]held{o.shared}
	if o.form == deadZipped {
		half := len(o.shared) / 2
		parts = [][]held{o.shared[:half], o.shared[half:]}
	}
	for _, shared := range parts {
		one, refused := u.together(sealer, shared, deadZipped, now)
		if refused != nil {
			return nil, refused
		}
		next = append(next, one)
	}
	return next, nil
}

func (u *upload) signed(r *kgo.Record) *kgo.Record {
	if !u.collector.cfg.Keys.None() {
		u.collector.cfg.Keys.Sign(r)
	}
	return r
}
