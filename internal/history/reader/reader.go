// Package reader is what may be asked of stored decisions, and what their answers mean: filters and pages, verdicts,
// explanations, differences and rates.
//
// It stays free of SQL, HTTP and of how anything is shown.
package reader

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Verdict is how a decision ended, as far as its columns and the two fields result and error say it.
type Verdict string

// All the verdicts there are.
const (
	Allowed   Verdict = "allowed"   // allowed is true
	Denied    Verdict = "denied"    // allowed is false
	Undefined Verdict = "undefined" // there is no result, and no error
	Error     Verdict = "error"     // OPA reports an error, and allowed is NULL
	Other     Verdict = "other"     // a result that says neither allowed nor denied, as a list or a number
)

// Match asks for a value inside a decision.
type Match struct {
	In      string          // "input", "result" or "raw"
	Pointer string          // RFC 6901, into that; "" is all of it
	Value   json.RawMessage // equal to it as JSON; nil: something is there, null included
}

// Filter says which decisions are meant; the zero value means all. Fields are joined by and, the values of one by or.
type Filter struct {
	Since, Until time.Time // Since <= ts < Until; zero: without that end
	// Paths are whole paths, or all below one where it ends in "/*".
	Paths    []string
	Services []string
	Verdicts []Verdict
	// RequestedBy is requested_by; one without a port stands for every port of that host.
	RequestedBy []string
	// Labels have these texts, every one of them.
	Labels map[string]string
	// Matches hold, every one of them.
	Matches []Match
}

// Row is a decision as far as it has columns.
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
	UploadedBy  *string // the client of the collector: the name of its token or certificate
	// EditedAuditID is the line of the ledger's audit of the edit that produced the row, nil where it is what OPA sent. An edit of a moment ago
	// may not be marked yet: see [AddEdits].
	EditedAuditID *int64
	Edit          *Edit // of [AddEdits]
	// Unfaithful are the places, as JSON pointers, at which the payload is not what came, as jsonb cannot hold that; the empty one points
	// to all of it. nil: the payload is what came.
	Unfaithful []string
	// Unreadable says that the payload, labels and bundles are missing because their text would take far more memory than they do: an earlier
	// release stored numbers such as 1e30000 as they came.
	Unreadable bool
}

// Decision is a row with its payload.
type Decision struct {
	Row
	Raw json.RawMessage // the whole decision, as jsonb writes it
}

// Page says which part of the answer is wanted.
type Page struct {
	// Limit is the most decisions, 1 to MaxLimit.
	Limit int
	// After is the cursor of the last page; empty: from the beginning.
	After string
	// Oldest is the order: false is newest first.
	Oldest bool
	// Payload asks for Raw, too.
	Payload bool
}

// MaxLimit is the most decisions of one page.
const MaxLimit = 1000

// Found is a page of decisions in the order of (ts, decision_id), ids byte by byte.
type Found struct {
	Decisions []Decision
	// Next is the cursor of the page behind this one; empty: there is none as yet. Where much had to be looked through and
	// the time was over, a page is shorter than was asked for, or empty, and has a Next all the same: the search goes on there.
	Next string
	// Reached is how far was looked, where the page is not full because the time for it was over; zero: it is full, or the last.
	Reached time.Time
}

// ErrCursor says that a cursor is none of ours, or of another order.
var ErrCursor = errors.New("the cursor is not one of this search")

// Tail is a place in the order in which decisions were stored; what is in it is the store's business. The zero value is now.
type Tail struct{ Mark any }

// StatsQuery asks for counts of verdicts.
type StatsQuery struct {
	Since, Until time.Time // whole steps; zero Until: now
	Step         time.Duration
	Paths        []string // as of Filter
	Services     []string
	ByPath       bool // a line for each path, else for each service
}

// OtherPaths is the name of the line of paths, and of services, that have no line of their own: names are few, and whoever sends decisions
// can invent paths without end. With a filter that line is in the answer wherever decisions that fit can be in it.
const OtherPaths = "(other)"

// Stats is what one line of an answer counts.
type Stats struct {
	From   time.Time // of the step
	Name   string    // the path or the service; empty: decisions that have none; OtherPaths
	Counts map[Verdict]int64
}

// Store is where decisions are read. Errors of it are safe to show.
type Store interface {
	// Search finds decisions by keyset, never by counting what lies before.
	Search(ctx context.Context, f Filter, p Page) (Found, error)
	// ByID finds the decisions of one id, oldest first: several where the same id came with several timestamps.
	ByID(ctx context.Context, id string) ([]Decision, error)
	// Begins finds the decisions whose id begins with prefix, bytes as they are: of each id the oldest one, without its payload, at
	// most limit. The error is [ErrWhole] where it cannot be found out in time whether these are all.
	Begins(ctx context.Context, prefix string, limit int) ([]Decision, error)
	// Follow returns what was stored since t and fits f, in the order in which it was stored, each decision once however late
	// its transaction ended, and the place to go on from. It returns at once, with nothing where nothing is new.
	Follow(ctx context.Context, f Filter, t Tail, limit int, payload bool) ([]Decision, Tail, error)
	// Stats counts; lines without any decision are left out. They are in the order of [Stats.Compare].
	Stats(ctx context.Context, q StatsQuery) ([]Stats, error)
}
