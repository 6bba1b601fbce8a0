package verify

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// mostInflated limits the inflated size of a rest: the largest value that a program accepts.
const mostInflated = 256 << 20

// AllForwardedOf is [AllForwardedBy] without keys.
func AllForwardedOf(r *kgo.Record, h home.Home, found string) []Forwarded {
	return AllForwardedBy(envelope.Keys{}, r, h, found)
}

// AllForwardedBy is [ForwardedBy] for each decision in a forwarded record, usually one. A shared dead letter has
// several, each with its own place and the decoder's code.
func AllForwardedBy(keys envelope.Keys, r *kgo.Record, h home.Home, found string) []Forwarded {
	one := ForwardedBy(keys, r, h, found)
	if one.Unproven || one.NoOrigin || one.Unplaced || one.Index != envelope.NoIndex {
		return []Forwarded{one}
	}
	refused := keys.OpenDead(r).Refused
	if refused == 0 {
		return []Forwarded{one}
	}
	parts := restOf(r.Value)
	if len(parts) != refused {
		return []Forwarded{one} // it has lost its value, or its header was wrong
	}
	all := make([]Forwarded, len(parts))
	for i, part := range parts {
		all[i] = one
		all[i].Index, all[i].Value = part.Index, SumOf(part.Value)
		if part.Err != nil { // else an earlier release refused it, and the letter has the reason
			all[i].Code = string(part.Err.Reason)
		}
	}
	return all
}

// Parted returns evidence in which a dead letter of a whole record is one for each decision of it. An earlier release refused
// the record, and the decoder reads several decisions today.
func Parted(ev *Evidence, t *Truth) *Evidence {
	several := func(f *Forwarded) bool {
		if f.Index != envelope.NoIndex || f.NoOrigin || !isDecoders(f.Code) {
			return false
		}
		first := t.byPlace[f.Place.record()]
		return first != nil && !first.Sole && first.Whole == f.Value
	}
	var all []Forwarded
	for i := range ev.Forwarded {
		f := &ev.Forwarded[i]
		if !several(f) {
			if all != nil {
				all = append(all, *f)
			}
			continue
		}
		if all == nil {
			all = slices.Clone(ev.Forwarded[:i])
		}
		at := f.Place.record()
		for ; t.byPlace[at] != nil; at.Index++ {
			one := *f
			one.Place, one.Value, one.Whole = at, t.byPlace[at].Value, true
			all = append(all, one)
		}
	}
	if all == nil {
		return ev
	}
	of := *ev
	of.Forwarded = all
	return &of
}

// restOf reads a rest. One on which the decoder panics counts as empty.
func restOf(value []byte) (parts []decision.Part) {
	defer func() {
		if recover() != nil {
			parts = nil
		}
	}()
	parts, _ = new(decision.Decoder).Rest(value, mostInflated)
	return parts
}
