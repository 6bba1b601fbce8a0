package lookup

import (
	"fmt"
	"strings"
	"time"

	"docket/internal/errclass"
	"docket/internal/record/envelope"
)

// Text says in one line where the record is and what happens next. Text of others in it is not escaped.
func (f *Found) Text(now time.Time) string {
	var words []string
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	switch f.Where {
	case Spooled:
		add("spooled in %s, for %s", f.Name, f.To)
	case Archived:
		add("dead letter %s in archive %s", named(f.Code), f.Name)
	case InArchive:
		add("in archive file %s of %s", f.Name, f.Day)
	case Unread:
		add("not read yet, at %s", f.Place())
	case Parked:
		add("parked at %s, attempt %d", f.Place(), f.Attempt)
		if f.Code != "" {
			add("%s", named(f.Code))
		}
	case Exhausted:
		add("dead letter of the replayer at %s, %s", f.Place(), named(f.Code))
	default:
		add("dead letter at %s, %s", f.Place(), named(f.Code))
	}
	if f.Lane != "" {
		add("lane %s", f.Lane)
	}
	if !f.Time.IsZero() {
		add("decided %s", f.Time.UTC().Format("2006-01-02 15:04:05.000Z"))
	}
	if f.Unproven {
		add("nothing proves that Docket wrote it")
	}
	if f.Same {
		add("the same decision as the row")
	}
	return strings.Join(words, ", ") + f.next(now)
}

// Place returns its place, in the form that where-is takes; for a file or an archive its name.
func (f *Found) Place() string {
	if f.Partition == envelope.NoPlace {
		return f.Name
	}
	return fmt.Sprintf("%s/%d/%d", f.Name, f.Partition, f.Offset)
}

// next says what happens to it.
func (f *Found) next(now time.Time) string {
	switch f.Where {
	case Parked:
		if f.NotBefore.After(now) {
			return "; next try at " + f.NotBefore.UTC().Format(time.RFC3339) + " by the replayer"
		}
		return "; it is due: the replayer tries it next"
	case Spooled:
		return "; its program publishes it within a minute after Kafka accepts records again"
	case Archived:
		return "; docket restore --dead-letters --day " + f.Day
	case InArchive:
		return ""
	case Unread:
		return "; the consumer reads it next"
	}
	if f.Left {
		return "; it is not in the ledger, as its client brought too many: a desk enters it later (docket dlq surplus)"
	}
	return "; no desk has entered it into the ledger yet"
}

// named returns a code with its name.
func named(code string) string {
	v, ok := errclass.Lookup(code)
	switch {
	case code == "":
		return "without a code"
	case ok && v.Name != "" && v.Name != code:
		return code + " (" + v.Name + ")"
	}
	return code
}
