package ledger

import (
	"context"
	"slices"
	"time"
)

// AuditQuery chooses lines of the audit of all dead letters, or of all groups. Fields are joined by and.
type AuditQuery struct {
	By   string // the name of the author, exact; empty: all
	Acts []Act  // one of these; empty: all
	// Groups chooses the lines of groups and of their rules, in place of those of dead letters. They have numbers of their
	// own. Fingerprint is that of one group; empty: all.
	Groups       bool
	Fingerprint  string
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

// Auditor reads the audits of all dead letters and of all groups.
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

// GroupActs are the acts of groups and of their rules.
func GroupActs() []Act {
	return []Act{Assigned, Snoozed, "rule_added", "rule_proposed", "rule_approved", "rule_stopped", "rule_removed"}
}

// Fits reports whether a line is one that q chooses, but for its limits of numbers.
func (q AuditQuery) Fits(a *Audit) bool {
	return (q.By == "" || a.By == q.By) && (q.Fingerprint == "" || a.Fingerprint == q.Fingerprint) && (len(q.Acts) == 0 || slices.Contains(q.Acts, a.Act)) && (q.Since.IsZero() || !a.At.Before(q.Since)) && (q.Until.IsZero() || a.At.Before(q.Until))
}
