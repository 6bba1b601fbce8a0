package ledger

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"docket/internal/record/envelope"
)

// ErrBadPage says that Page.After is not the Next of a list.
var ErrBadPage = errors.New("this page does not exist; list again from the start")

// InvalidError names an invalid field of a request. Nothing was done.
type InvalidError struct {
	Field   string // name in JSON
	Problem string
}

func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

// Filter chooses dead letters that match every set field. The zero value chooses all.
type Filter struct {
	Fingerprint string        `json:"fingerprint,omitempty"` // whole, or its first characters, at least 4
	Kind        envelope.Kind `json:"kind,omitempty"`
	Code        string        `json:"code,omitempty"`
	Path        string        `json:"path,omitempty"` // of the decision, exact
	States      []State       `json:"states,omitempty"`
	From        time.Time     `json:"from,omitzero"`       // last failure, from this time on
	To          time.Time     `json:"to,omitzero"`         // and before this time
	Topic       string        `json:"topic,omitempty"`     // original
	Partition   *int32        `json:"partition,omitempty"` // original
	// AttemptsBelow chooses letters with fewer attempts; 0: any number.
	AttemptsBelow int `json:"attempts_below,omitempty"`
	// Snoozed chooses by whether letters are snoozed, and Assigned by who looks after them; [Nobody] stands for nobody.
	// Jobs take neither, because a desk of an earlier release would not heed it.
	Snoozed  Snoozing `json:"snoozed,omitempty"`
	Assigned string   `json:"assigned,omitempty"`
	// Free chooses letters that are not snoozed and that no rule decides about. It is for the schedule.
	Free bool `json:"-"`
}

// MinFingerprint is the least number of characters of a fingerprint in a filter.
const MinFingerprint = 4

// Validate returns a [*InvalidError] for each invalid field.
func (f Filter) Validate() error {
	var wrong []error
	problem := func(field, format string, args ...any) {
		wrong = append(wrong, &InvalidError{Field: field, Problem: fmt.Sprintf(format, args...)})
	}
	if n := len(f.Fingerprint); n > 0 && (n < MinFingerprint || n > FingerprintLength || strings.Trim(strings.ToLower(f.Fingerprint), "0123456789abcdef") != "") {
		problem("fingerprint", "give %d to %d of its characters, 0-9 and a-f", MinFingerprint, FingerprintLength)
	}
	if !slices.Contains([]envelope.Kind{"", envelope.Decode, envelope.Data, envelope.Conflict, envelope.Transient, envelope.Exhausted, envelope.Foreign}, f.Kind) {
		problem("kind", "there are decode, data, conflict, transient, exhausted and foreign")
	}
	for _, s := range f.States {
		if !slices.Contains(States(), s) {
			problem("states", "there are PENDING, PROCESSING, FAILED and RESOLVED")
			break
		}
	}
	for _, text := range []struct{ field, value string }{{"code", f.Code}, {"path", f.Path}, {"topic", f.Topic}} {
		if !utf8.ValidString(text.value) || strings.ContainsRune(text.value, 0) {
			problem(text.field, "no dead letter has such characters there")
		}
	}
	if !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To) {
		problem("to", "it has to be after from")
	}
	if f.Partition != nil && *f.Partition < 0 {
		problem("partition", "partitions are numbered from 0")
	}
	if f.Snoozed != SnoozedToo && f.Snoozed != NotSnoozed && f.Snoozed != OnlySnoozed {
		problem("snoozed", "there are no and only")
	}
	if len(f.Assigned) > LongestName || !utf8.ValidString(f.Assigned) || strings.ContainsRune(f.Assigned, 0) {
		problem("assigned", "nobody has such a name")
	}
	if f.AttemptsBelow < 0 {
		problem("attempts_below", "attempts are counted from 0")
	}
	return errors.Join(wrong...)
}

// Limits of Page.Limit.
const (
	DefaultPage = 50
	MaxPage     = 1000
)

// Page chooses a part of a list.
type Page struct {
	After string // the Next of the page before; empty: the newest
	Limit int    // 1 to 1000; 0: 50
}

// List is a part of a list, newest failure first, without payloads, keys and headers.
type List struct {
	Entries []Entry
	Next    string // empty: there are no more
}

// Group is all dead letters of one fingerprint that match a filter.
type Group struct {
	Fingerprint string
	Kind        envelope.Kind
	Code        string
	Table       string
	Column      string
	Constraint  string
	Message     string // of the first one
	Counts      map[State]int64
	// Paths are up to 5, the most frequent first. If the filter has a time range or an original place, they may be
	// those of the whole group.
	Paths     []string
	FirstSeen time.Time // of the group, independent of the filter
	Oldest    time.Time // first failure of the oldest unresolved letter; zero: none
	Newest    time.Time // last failure
	// Assigned looks after the group; empty: nobody. SnoozedUntil is when the whole group comes back; zero: it is not
	// snoozed. Snoozed counts its open letters that are snoozed; with a time range it may count others of the group.
	Assigned     string
	SnoozedUntil time.Time
	Snoozed      int64
}

// Open returns how many letters of the group are not resolved.
func (g Group) Open() int64 { return g.Counts[Pending] + g.Counts[Processing] + g.Counts[Failed] }

// ReportLine is one line of a report: unresolved dead letters by kind, code and path.
type ReportLine struct {
	Kind   envelope.Kind
	Code   string
	Path   string
	Counts map[State]int64
	Oldest time.Time // first failure of the oldest unresolved letter
}
