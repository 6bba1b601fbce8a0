package reader

import "context"

// heldFrom is the length of a payload from which on it is worth not to read it again.
const heldFrom = 32 << 10

type heldKey struct{}

// WithHeld returns a context for further questions of a caller that holds these decisions with their payloads. A store
// need not read the largest of these payloads again: it may answer with the held one. A stored decision does not change.
func WithHeld(ctx context.Context, all []Decision) context.Context {
	var largest *Decision
	for i := range all {
		if n := len(all[i].Raw); n >= heldFrom && (largest == nil || n > len(largest.Raw)) {
			largest = &all[i]
		}
	}
	if largest == nil {
		return ctx
	}
	return context.WithValue(ctx, heldKey{}, Held{*largest})
}

// Held is a decision that the caller holds, at most one.
type Held []Decision

// HeldOf returns what the caller of a context of [WithHeld] holds.
func HeldOf(ctx context.Context) Held {
	held, _ := ctx.Value(heldKey{}).(Held)
	return held
}

// Fill gives decisions without a payload that of the held one with the same identity.
func (h Held) Fill(all []Decision) {
	for _, one := range h {
		for i := range all {
			if d := &all[i]; d.Raw == nil && d.ID == one.ID && d.Time.Equal(one.Time) {
				d.Raw = one.Raw
			}
		}
	}
}
