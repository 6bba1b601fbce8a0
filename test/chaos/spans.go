package chaos

import "time"

// Span is the time between two moments.
type Span struct{ From, To time.Time }

// episode is a fault as it happened.
type episode struct {
	fault   Fault
	whole   Span // from the first try to the end of the healing
	inForce Span // between injection and healing; empty if it was not injected
}

// calm returns the parts of a span that nothing else affects: they begin later than grace after the span began, and
// after each other span ended. A fault that delays something does so for less than the grace.
func calm(span Span, others []Span, grace time.Duration) []Span {
	free := without([]Span{{span.From.Add(grace), span.To}}, Span{})
	for _, o := range others {
		free = without(free, Span{o.From, o.To.Add(grace)})
	}
	return free
}

// without cuts one span out of others. Empty spans are left out.
func without(spans []Span, cut Span) []Span {
	var left []Span
	for _, s := range spans {
		for _, part := range []Span{{s.From, earlier(s.To, cut.From)}, {later(s.From, cut.To), s.To}} {
			if part.From.Before(part.To) {
				left = append(left, part)
			}
		}
	}
	return left
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
