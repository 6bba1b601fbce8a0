package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/history/reader"
)

type auditsInput struct {
	Of     string   `query:"of" enum:"letters,groups" default:"letters" doc:"Lines of dead letters, or of groups and their rules; each have numbers of their own"`
	Group  string   `query:"group" pattern:"^[0-9a-f]{16}$" doc:"With of=groups: the whole fingerprint of one group"`
	Actor  string   `query:"actor" maxLength:"200" doc:"The author, exact; that of a rule is like: rule 7 of mara"`
	Act    []string `query:"act,explode" nullable:"false" maxItems:"30" doc:"One of these acts, of ledger lines or of groups; without it, all"`
	Since  string   `query:"since" maxLength:"40" doc:"2h, 3d, a date, or RFC 3339"`
	Until  string   `query:"until" maxLength:"40" doc:"Up to this time, which is left out"`
	Before int64    `query:"before" minimum:"1" doc:"Only lines with a lower number: the next of the page before"`
	After  int64    `query:"after" minimum:"1" doc:"Only lines with a higher number, those nearest to it"`
	Limit  int      `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

// AuditLine is one line of the audit of all dead letters, or of all groups, without payloads.
type AuditLine struct {
	ID          int64        `json:"audit_id"`
	At          time.Time    `json:"at"`
	Act         ledger.Act   `json:"act"`
	LetterID    string       `json:"id,omitempty" doc:"The dead letter; without it, the line is about a group"`
	Fingerprint string       `json:"fingerprint,omitempty" doc:"The group"`
	Rule        int64        `json:"rule,omitempty" doc:"Of a line about a group: its rule"`
	From        ledger.State `json:"from,omitempty" enum:"PENDING,PROCESSING,FAILED,RESOLVED"`
	To          ledger.State `json:"to,omitempty" enum:"PENDING,PROCESSING,FAILED,RESOLVED"`
	By          string       `json:"by"`
	Why         string       `json:"why"`
	Attempts    int          `json:"attempts"`
	Job         int64        `json:"job,omitempty"`
	Changed     bool         `json:"changed" doc:"It has a payload, a difference or columns; show-history has them"`
	Login       string       `json:"login,omitempty" doc:"The database login that did it; by is what the program said"`
	Application string       `json:"application,omitempty" doc:"The application_name of the session, which the program chooses"`
	Client      string       `json:"client,omitempty" doc:"The address that the session came from; without it, a local socket"`
}

// AuditList is a part of the audit, the newest first.
type AuditList struct {
	Lines []AuditLine `json:"lines" nullable:"false"`
	Next  int64       `json:"next,omitempty" doc:"The next page begins with this as before, or as after if the question has that; missing on the last page"`
	// Reached is where a look ended that took too long.
	Reached *time.Time `json:"reached,omitempty" doc:"The time was over at lines of this time. Others that fit can be beyond: ask for next"`
}

type auditsOutput struct{ Body AuditList }

// audit adds the audits of all dead letters and groups, where the ledger can read them. They have the role of the history of one
// letter, and show no payload.
func (s *api) audit() {
	if _, ok := s.Book.(ledger.Auditor); ok {
		register(s, route{role: Viewer, method: http.MethodGet, path: "/audit", id: "list-audit", many: []string{"act"},
			summary: "List who did what to dead letters, or to groups and their rules, the newest first",
			text:    "Lines are never changed or removed. Payloads and differences are in the history of a dead letter."}, s.listAudit)
	}
}

func (s *api) listAudit(ctx context.Context, _ caller, in *auditsInput) (*auditsOutput, error) {
	q := ledger.AuditQuery{By: in.Actor, Groups: in.Of == "groups", Fingerprint: in.Group, Before: in.Before, After: in.After, Limit: in.Limit}
	acts := ledger.Acts()
	if q.Groups {
		acts = ledger.GroupActs()
	}
	for _, act := range in.Act {
		if !slices.Contains(acts, ledger.Act(act)) {
			return nil, faulty("query.act", "an act of these lines")
		}
		q.Acts = append(q.Acts, ledger.Act(act))
	}
	switch {
	case in.Group != "" && !q.Groups:
		return nil, faulty("query.group", "of=groups with it")
	case in.Before > 0 && in.After > 0:
		return nil, faulty("query.after", "before or after, not both")
	}
	for _, end := range []struct {
		name, text string
		to         *time.Time
	}{{"since", in.Since, &q.Since}, {"until", in.Until, &q.Until}} {
		var err error
		if end.text == "" {
			continue
		}
		if *end.to, err = reader.ParseTime(end.text, s.Now()); err != nil {
			return nil, faulty("query."+end.name, err.Error())
		}
	}
	if !q.Since.IsZero() && !q.Until.IsZero() && !q.Since.Before(q.Until) {
		return nil, faulty("query.until", "a time after since")
	}
	found, err := s.audits(ctx, q)
	if err != nil {
		return nil, err
	}
	out := &auditsOutput{AuditList{Lines: make([]AuditLine, 0, len(found.Lines)), Next: found.Next, Reached: moment(found.Reached)}}
	for i := range found.Lines {
		a := &found.Lines[i]
		out.Body.Lines = append(out.Body.Lines, AuditLine{ID: a.ID, At: a.At.UTC(), Act: a.Act, LetterID: a.LetterID, Fingerprint: a.Fingerprint, Rule: a.Rule, From: a.From, To: a.To, By: a.By, Why: a.Why,
			Attempts: a.Attempts, Job: a.Job, Changed: a.Withheld, Login: a.Login, Application: a.Application, Client: a.Client})
	}
	return out, nil
}

// audits reads lines without payloads, whatever the ledger gives.
func (s *api) audits(ctx context.Context, q ledger.AuditQuery) (ledger.Audits, error) {
	if strings.ContainsRune(q.By, 0) || strings.ToValidUTF8(q.By, "") != q.By {
		return ledger.Audits{}, faulty("query.actor", "text in UTF-8 without U+0000")
	}
	found, err := s.Book.(ledger.Auditor).Audits(ctx, q) //nolint:forcetypeassert // the route is there for these alone
	if err != nil {
		return ledger.Audits{}, err
	}
	for n := range found.Lines {
		a := &found.Lines[n]
		a.Original, a.Diff, a.Was = nil, "", nil
	}
	return found, nil
}
