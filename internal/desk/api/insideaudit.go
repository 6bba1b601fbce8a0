package api

import (
	"context"
	"strings"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
)

// audit adds the audit of all dead letters for the console, where the ledger can read it. It has the role of the
// history of one letter, and shows no payload.
func (s *api) audit() {
	if _, ok := s.Book.(ledger.Auditor); ok {
		s.routes["list-audit"] = route{role: Viewer, id: "list-audit"}
	}
}

// days adds the days of decisions for the console. A viewer sees their numbers, as in rates.
func (s *api) days() {
	if s.Calendar != nil {
		s.routes["show-calendar"] = route{role: Viewer, id: "show-calendar"}
	}
}

type calendarOutput struct{ calendar archive.Calendar }

// Calendar says where the decisions of each day are.
func (i Inside) Calendar(ctx context.Context, c Caller) (archive.Calendar, error) {
	out, err := ask(ctx, i.s, "show-calendar", c, &nothing{}, func(ctx context.Context, _ caller, _ *nothing) (*calendarOutput, error) {
		found, err := i.s.Calendar(ctx)
		return &calendarOutput{found}, err
	})
	if err != nil {
		return archive.Calendar{}, err
	}
	return out.calendar, nil
}

type auditOutput struct{ audits ledger.Audits }

// Audit returns lines of the audit of all dead letters, without payloads.
func (i Inside) Audit(ctx context.Context, c Caller, q ledger.AuditQuery) (ledger.Audits, error) {
	out, err := ask(ctx, i.s, "list-audit", c, &q, func(ctx context.Context, _ caller, q *ledger.AuditQuery) (*auditOutput, error) {
		if strings.ContainsRune(q.By, 0) || strings.ToValidUTF8(q.By, "") != q.By {
			return nil, faulty("query.actor", "text in UTF-8 without U+0000")
		}
		found, err := i.s.Book.(ledger.Auditor).Audits(ctx, *q) //nolint:forcetypeassert // the route is there for these alone
		return &auditOutput{found}, err
	})
	if err != nil {
		return ledger.Audits{}, err
	}
	for n := range out.audits.Lines { // whatever the store gave
		a := &out.audits.Lines[n]
		a.Original, a.Diff, a.Was = nil, "", nil
	}
	return out.audits, nil
}
