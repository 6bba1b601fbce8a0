package verify

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/decision"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
)

// mostInflated is how far a rest is inflated: as far as the largest value that a program takes.
const mostInflated = 256 << 20

// AllForwardedOf is [AllForwardedBy] without keys.
func AllForwardedOf(r *kgo.Record, h home.Home, found string) []Forwarded {
	return AllForwardedBy(envelope.Keys{}, r, h, found)
}

// AllForwardedBy is [ForwardedBy] for each decision that a forwarded record holds. Most hold one. A dead letter that refused decisions of one upload
// share is as many as it holds, each at its own place and with the code that the decoder refuses it with.
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
		return []Forwarded{one} // it has lost its value, or never was what it says
	}
	all := make([]Forwarded, len(parts))
	for i, part := range parts {
		all[i] = one
		all[i].Index, all[i].Value = part.Index, SumOf(part.Value)
		if part.Err != nil { // else an earlier release refused it, and the letter says why
			all[i].Code = string(part.Err.Reason)
		}
	}
	return all
}

// restOf reads a rest. One on which the decoder panics holds nothing that could be told apart.
func restOf(value []byte) (parts []decision.Part) {
	defer func() {
		if recover() != nil {
			parts = nil
		}
	}()
	parts, _ = new(decision.Decoder).Rest(value, mostInflated)
	return parts
}
