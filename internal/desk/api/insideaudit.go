package api

import (
	"context"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/state"
)

type insideCalendar struct{ calendar archive.Calendar }

// Calendar says where the decisions of each day are.
func (i Inside) Calendar(ctx context.Context, c Caller) (archive.Calendar, error) {
	out, err := ask(ctx, i.s, "show-calendar", c, &nothing{}, func(ctx context.Context, _ caller, _ *nothing) (*insideCalendar, error) {
		found, err := i.s.Calendar(ctx)
		return &insideCalendar{found}, err
	})
	if err != nil {
		return archive.Calendar{}, err
	}
	return out.calendar, nil
}

type insideAudits struct{ audits ledger.Audits }

// Audit returns lines of the audit of all dead letters, or of all groups, without payloads.
func (i Inside) Audit(ctx context.Context, c Caller, q ledger.AuditQuery) (ledger.Audits, error) {
	out, err := ask(ctx, i.s, "list-audit", c, &q, func(ctx context.Context, _ caller, q *ledger.AuditQuery) (*insideAudits, error) {
		found, err := i.s.audits(ctx, *q)
		return &insideAudits{found}, err
	})
	if err != nil {
		return ledger.Audits{}, err
	}
	return out.audits, nil
}

// revisions adds the counts of revisions for the console, where states have them. They name no subject.
func (s *api) revisions() {
	if _, ok := s.States.(state.Revisions); ok {
		s.routes["list-revisions"] = route{role: Viewer, id: "list-revisions"}
	}
}

// mostRevisions limits the revisions of an answer.
const mostRevisions = 200

// RevisionRates are the counts of revisions, those seen last first.
type RevisionRates struct {
	Rates []state.Rate
	More  bool
	StatesAsOf
	reader.Completeness
}

type revisionsOutput struct{ rates RevisionRates }

// Revisions returns the counts of revisions by path, since states are kept.
func (i Inside) Revisions(ctx context.Context, c Caller, paths []string) (RevisionRates, error) {
	out, err := ask(ctx, i.s, "list-revisions", c, &nothing{}, func(ctx context.Context, _ caller, _ *nothing) (*revisionsOutput, error) {
		if err := legible(paths); err != nil {
			return nil, err
		}
		begun := i.s.Complete.Begin(ctx, complete.Range{Paths: paths})
		all, mark, err := i.s.States.(state.Revisions).Revisions(ctx, paths, mostRevisions+1) //nolint:forcetypeassert // the route is there for these alone
		if err != nil {
			return nil, ofStates(err)
		}
		return &revisionsOutput{RevisionRates{all[:min(len(all), mostRevisions)], len(all) > mostRevisions, asOf(mark), begun.EndStates(complete.Facts{Found: len(all) > 0}, mark.StoredBefore)}}, nil
	})
	if err != nil {
		return RevisionRates{}, err
	}
	return out.rates, nil
}
