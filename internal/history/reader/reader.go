// Package reader defines the questions about stored decisions and their answers: filters and pages, verdicts,
// explanations, differences and rates.
//
// It imports no SQL and no HTTP, and shows nothing.
package reader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"docket/internal/record/verdict"
)

// Verdict is how a decision ended, from its columns and the two fields result and error.
type Verdict = verdict.Verdict

// All verdicts.
const (
	Allowed   = verdict.Allowed
	Denied    = verdict.Denied
	Undefined = verdict.Undefined
	Error     = verdict.Error
	Other     = verdict.Other
)

// Match requires a value inside a decision.
type Match struct {
	In      string          // "input", "result" or "raw"
	Pointer string          // RFC 6901, into that; "" is all of it
	Value   json.RawMessage // equal as JSON; nil: any value, null included
}

// Filter chooses decisions; the zero value chooses all. Fields are joined by and, the values of one field by or.
type Filter struct {
	Since, Until time.Time // Since <= ts < Until; zero: no limit
	// Paths are whole paths, or all below one if it ends in "/*".
	Paths    []string
	Services []string
	Verdicts []Verdict
	// RequestedBy is requested_by. One without a port matches every port of that host.
	RequestedBy []string
	// Labels must all have these texts.
	Labels map[string]string
	// Matches must all hold.
	Matches []Match
}

// Row is a decision with its columns.
type Row struct {
	ID          string // decision_id
	Time        time.Time
	Path        *string
	Service     *string
	Verdict     Verdict
	Allowed     *bool
	RequestedBy *string
	ReqID       *int64
	OPAID       *string
	OPAVersion  *string
	Labels      json.RawMessage
	Bundles     json.RawMessage
	Topic       string // where it was first read
	Partition   int32
	Offset      int64
	Index       int
	StoredAt    time.Time
	Shard       string  // that has it; empty without shards
	UploadedBy  *string // the client of the collector: the name of its token or certificate
	// EditedAuditID is the audit line of the edit that produced the row, nil if the row is what OPA sent. A recent
	// edit may not be marked yet: see [AddEdits].
	EditedAuditID *int64
	Edit          *Edit // set by [AddEdits]
	// Unfaithful are the places, as JSON pointers, where the payload differs from the original because jsonb cannot
	// hold it. An empty pointer means all of it. nil means that the payload is the original.
	Unfaithful []string
	// Unreadable says that payload, labels and bundles are missing, because their text would take far more memory. An
	// earlier release stored numbers such as 1e30000 unchanged.
	Unreadable bool
	// Archived is the archive that the decision was read from; nil: it is a row of the table.
	Archived *ArchivedIn
}

// Decision is a row with its payload.
type Decision struct {
	Row
	Raw json.RawMessage // the whole decision, in jsonb's notation
}

// Page chooses a part of the result.
type Page struct {
	// Limit is the number of decisions, 1 to MaxLimit.
	Limit int
	// After is the cursor of the page before; empty: from the beginning.
	After string
	// Oldest is the order: false is newest first.
	Oldest bool
	// Payload includes Raw.
	Payload bool
	// ArchiveBy limits the reading of archived days: those not read by then are in [Found.NotLooked]. Zero: a search
	// that runs out of time has a Next, and continues there.
	ArchiveBy time.Time
}

// MaxLimit limits the decisions of one page.
const MaxLimit = 1000

// Found is a page of decisions in the order of (ts, decision_id), ids byte by byte.
type Found struct {
	Decisions []Decision
	// Next is the cursor of the next page; empty: there is none yet. If the search ran out of time, a page is shorter
	// than requested, or empty, and still has a Next: the search continues there.
	Next string
	// Reached is how far the search came if it ran out of time; zero: the page is full, or the last.
	Reached time.Time
	// Archives says that archived days were searched, too.
	Archives bool
	// NotLooked are archived days of the asked range that were not read completely.
	NotLooked []Gap
}

// ErrCursor says that a cursor is invalid, or of another order.
var ErrCursor = errors.New("the cursor is not one of this search")

// Tail is a place in the order of storing. Its content belongs to the store. The zero value is now.
type Tail struct{ Mark any }

// StatsQuery asks for counts of verdicts.
type StatsQuery struct {
	Since, Until time.Time // whole steps; zero Until: now
	Step         time.Duration
	Paths        []string // as in Filter
	Services     []string
	ByPath       bool // a line for each path, else for each service
}

// OtherPaths is the name of the line for paths and services without a line of their own. Names are limited, because
// senders of decisions can invent paths without end. With a filter the answer has that line if it may contain
// matching decisions.
const OtherPaths = "(other)"

// Stats is one line of counts.
type Stats struct {
	From   time.Time // of the step
	Name   string    // the path or the service; empty: decisions without one; OtherPaths
	Counts map[Verdict]int64
}

// Late is a decision that [Stats] counts and that an archive may have, too: it was stored after its day was archived.
type Late struct {
	Spot
	StoredAt time.Time
	From     time.Time // of its line
	Name     string
	Verdict  Verdict
}

// Lates are the late decisions of an answer.
type Lates struct {
	Some []Late // at most [MostLates]
	All  int64
}

// MostLates is how many late decisions one answer looks for in archives.
const MostLates = 2000

// LateGap says that late decisions may be counted twice.
func LateGap(n int64, why string) Missed {
	return Missed{Place: "archived days", Err: fmt.Errorf("%d decisions were stored after their day was archived, and may be counted twice: %s", n, why)}
}

// Store reads decisions. Its errors are safe to show. With a [*PartialError] comes an answer without some shards.
type Store interface {
	// Search finds decisions by keyset, without counting earlier ones.
	Search(ctx context.Context, f Filter, p Page) (Found, error)
	// ByID returns the decisions of one id, oldest first. An id may have several timestamps.
	ByID(ctx context.Context, id string) ([]Decision, error)
	// Begins returns decisions whose id begins with prefix, byte by byte: for each id the oldest, without its
	// payload, at most limit. The error is [ErrWhole] if there was not enough time to find all.
	Begins(ctx context.Context, prefix string, limit int) ([]Decision, error)
	// Follow returns the decisions stored since t that match f, in the order of storing. It returns each once,
	// however late its transaction ended, and the place to continue from. It returns at once, with nothing if nothing
	// is new.
	Follow(ctx context.Context, f Filter, t Tail, limit int, payload bool) ([]Decision, Tail, error)
	// Stats returns counts, without empty lines, in the order of [Stats.Compare].
	Stats(ctx context.Context, q StatsQuery) ([]Stats, error)
}
