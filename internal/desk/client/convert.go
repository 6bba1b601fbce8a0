package client

import (
	"time"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
)

func at(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return *t
}

func decisionOf(d api.Decision) reader.Decision {
	out := reader.Decision{Raw: d.Decision, Row: reader.Row{
		ID: d.ID, Time: d.Timestamp, Path: d.Path, Service: d.Service, Verdict: d.Verdict, Allowed: d.Allowed, RequestedBy: d.RequestedBy, ReqID: d.ReqID,
		OPAID: d.OPAID, OPAVersion: d.OPAVersion, Labels: d.Labels, Bundles: d.Bundles, Topic: d.Origin.Topic, Partition: d.Origin.Partition, Offset: d.Origin.Offset,
		StoredAt: d.StoredAt, Shard: d.Shard, UploadedBy: d.UploadedBy, Edit: d.Edited, Unfaithful: d.Unfaithful, Unreadable: d.Unreadable, Archived: d.Archived,
	}}
	if d.Origin.Index != nil {
		out.Index = *d.Origin.Index
	}
	return out
}

func decisionsOf(all []api.Decision) (out []reader.Decision) {
	for _, d := range all {
		out = append(out, decisionOf(d))
	}
	return out
}

func gapsOf(all []api.Gap) (out []reader.Gap) {
	for _, g := range all {
		out = append(out, reader.Gap{Name: g.Place, Why: g.Why, Rows: g.Rows, Far: g.Far, Forgotten: g.Forgotten})
	}
	return out
}

func originOf(o api.Origin) envelope.Origin {
	out := envelope.Origin{Topic: o.Topic, Partition: o.Partition, Offset: o.Offset, Index: envelope.NoIndex, Timestamp: at(o.Timestamp)}
	if o.Index != nil {
		out.Index = *o.Index
	}
	return out
}

func foundOf(f api.Found) ledger.Found {
	return ledger.Found{Topic: f.Topic, Partition: f.Partition, Offset: f.Offset, Stamp: at(f.Timestamp)}
}

func entryOf(l api.Letter) ledger.Entry {
	return ledger.Entry{
		Letter: ledger.Letter{
			ID: l.ID, Origin: originOf(l.Origin), Found: foundOf(l.Found), FirstFailedAt: l.FirstFailedAt, FailedAt: l.FailedAt,
			Cause: envelope.Cause{Kind: l.Kind, Code: l.Code, Message: l.Message, Table: l.Table, Column: l.Column, Constraint: l.Constraint},
			Path:  l.Path, DecisionID: l.DecisionID, DecisionTime: at(l.DecisionTime),
		},
		State: l.State, Fingerprint: l.Fingerprint, Attempts: l.Attempts, Edited: l.Edited, SeenAt: l.SeenAt, ChangedAt: l.ChangedAt, ChangedBy: l.ChangedBy, Why: l.Why,
		LeaseUntil: at(l.LeaseUntil), Owner: l.Owner, Job: l.Job, Parent: l.Parent, ArchivedIn: l.ArchivedIn, Assigned: l.Assigned, SnoozedUntil: at(l.SnoozedUntil),
	}
}

func entriesOf(all []api.Letter) (out []ledger.Entry) {
	for _, l := range all {
		out = append(out, entryOf(l))
	}
	return out
}
