package ledger

import (
	"context"
	"slices"
	"time"
)

// AuditQuery chooses lines of the audit of all dead letters. Fields are joined by and.
type AuditQuery struct {
	By           string // the name of the author, exact; empty: all
	Acts         []Act  // one of these; empty: all
	Since, Until time.Time
	// Before and After are numbers of lines: only lines with a lower, or with a higher number; 0: no limit. With After
	// the lines nearest to it are returned.
	Before, After int64
	Limit         int // 1 to [MostAudits]
}

// MostAudits limits one answer.
const MostAudits = 500

// Audits are lines of the audit, the newest first. They have no payload and no diff.
type Audits struct {
	Lines []Audit
	// Next is the number for the next question in the same direction; 0: there are no more.
	Next int64
	// Reached is the time of the last line that was looked at, if the time was over before the answer was full.
	Reached time.Time
}

// Auditor reads the audit of all dead letters.
type Auditor interface {
	Audits(ctx context.Context, q AuditQuery) (Audits, error)
}

// PeopleActs are the acts that a person decides, by hand or by a job.
func PeopleActs() []Act {
	return []Act{Retried, Closed, Edited, Proposed, Approved, Rejected, Reopened, Assigned, Snoozed}
}

// Acts are all acts.
func Acts() []Act {
	return []Act{Entered, Retried, Died, Stored, Refused, LeaseEnded, Closed, Edited, Removed, Archived, Restored, Changed, Proposed, Approved, Rejected, Reopened, Assigned, Snoozed}
}

// Fits reports whether a line is one that q chooses, but for its limits of numbers.
func (q AuditQuery) Fits(a *Audit) bool {
	return (q.By == "" || a.By == q.By) && (len(q.Acts) == 0 || slices.Contains(q.Acts, a.Act)) && (q.Since.IsZero() || !a.At.Before(q.Since)) && (q.Until.IsZero() || a.At.Before(q.Until))
}
