package logs

import (
	"context"
	"strconv"
	"strings"
	"time"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// begin reads what has to be known before the rows are read.
func begin(ctx context.Context, call frame.Call, r complete.Range) complete.Begun {
	return call.Sys.Complete.Begin(ctx, r)
}

// ended says how complete an answer is; nil if nothing is said of it. One that lacks a shard is partial.
func (p *printer) ended(b complete.Begun, f complete.Facts) *reader.Completeness {
	if p.Sys.Complete == nil && p.parts.Err() == nil {
		return nil
	}
	c := b.End(f)
	c.Lack(&p.parts)
	return &c
}

// endedStates is ended for states and flips.
func (p *printer) endedStates(b complete.Begun, f complete.Facts, m state.Mark) *reader.Completeness {
	if p.Sys.Complete == nil && p.parts.Err() == nil {
		return nil
	}
	c := reader.Completeness{}
	if p.parts.Err() == nil {
		c = b.EndStates(f, m.StoredBefore)
	}
	c.Lack(&p.parts)
	return &c
}

// tellComplete prints one line about it.
func tellComplete(call frame.Call, c *reader.Completeness) {
	if c != nil {
		call.Tell("%s\n", completeLine(c, call.Now()))
	}
}

// completeLine says how complete an answer is, in one line: until when, what still waits, and for how long.
func completeLine(c *reader.Completeness, now time.Time) string {
	parts := []string{untilWords(c, now)}
	switch {
	case c.Behind == nil:
		parts = append(parts, "Kafka was not seen")
	case *c.Behind > 0:
		parts = append(parts, behindWords(c))
	}
	if c.Freshness == reader.Holding {
		parts = append(parts, "no progress for 30 s, or no consumer runs (see /readyz of the consumers)")
	}
	var unknown []string
	for _, count := range []struct {
		n    *int64
		name string
	}{{c.Parked, "parked"}, {c.DeadLettered, "dead-lettered"}, {c.Spooled, "spooled"}} {
		switch {
		case count.n == nil:
			unknown = append(unknown, count.name)
		case *count.n > 0:
			parts = append(parts, term.Grouped(*count.n)+" "+count.name)
		}
	}
	if len(unknown) > 0 {
		parts = append(parts, "not known: "+strings.Join(unknown, ", "))
	}
	return strings.Join(parts, "; ")
}

func untilWords(c *reader.Completeness, now time.Time) string {
	if c.CompleteUntil == nil {
		return "not known until when this is complete"
	}
	return "complete until " + c.CompleteUntil.Format("2006-01-02 15:04:05Z") + " (" + term.Ago(*c.CompleteUntil, now) + ")"
}

func behindWords(c *reader.Completeness) string {
	words := term.Counted(*c.Behind, "record") + " not stored yet"
	if c.ETA == nil {
		return words
	}
	words += ", about " + term.Span(seconds(*c.ETA))
	if c.ETALow != nil && c.ETAHigh != nil && seconds(*c.ETALow) < seconds(*c.ETAHigh) {
		words += " (" + term.Span(seconds(*c.ETALow)) + " to " + term.Span(seconds(*c.ETAHigh)) + ")"
	}
	return words
}

// seconds rounds up to whole ones.
func seconds(ms int64) time.Duration { return time.Duration((ms+999)/1000) * time.Second }

// jsonComplete are the members of an object about it, indented, each after a comma; empty if nothing is said of it.
func jsonComplete(c *reader.Completeness) string {
	if c == nil {
		return ""
	}
	var b strings.Builder
	add := func(name, value string) { b.WriteString(",\n  " + strconv.Quote(name) + ": " + value) }
	number := func(n *int64) string {
		if n == nil {
			return "null"
		}
		return strconv.FormatInt(*n, 10)
	}
	add("freshness", strconv.Quote(string(c.Freshness)))
	until := "null"
	if c.CompleteUntil != nil {
		until = strconv.Quote(c.CompleteUntil.Format(time.RFC3339Nano))
	}
	add("complete_until", until)
	add("behind", number(c.Behind))
	add("eta_ms", number(c.ETA))
	add("eta_low_ms", number(c.ETALow))
	add("eta_high_ms", number(c.ETAHigh))
	add("parked", number(c.Parked))
	add("dead_lettered", number(c.DeadLettered))
	add("spooled", number(c.Spooled))
	return b.String()
}
