package client

import (
	"context"
	"net/url"
	"slices"
	"strconv"

	"docket/internal/desk/api"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
)

// Audits asks for lines of the audit of all dead letters, or of all groups.
func (b Book) Audits(ctx context.Context, q ledger.AuditQuery) (ledger.Audits, error) {
	ask := url.Values{"limit": {strconv.Itoa(min(max(q.Limit, 1), ledger.MostAudits))}}
	for name, text := range map[string]string{"actor": q.By, "group": q.Fingerprint} {
		if text != "" {
			ask.Set(name, text)
		}
	}
	if q.Groups {
		ask.Set("of", "groups")
	}
	for _, act := range q.Acts {
		ask.Add("act", string(act))
	}
	if !q.Since.IsZero() {
		ask.Set("since", instant(q.Since))
	}
	if !q.Until.IsZero() {
		ask.Set("until", instant(q.Until))
	}
	if q.Before > 0 {
		ask.Set("before", strconv.FormatInt(q.Before, 10))
	}
	if q.After > 0 {
		ask.Set("after", strconv.FormatInt(q.After, 10))
	}
	var list api.AuditList
	if err := b.client.ask(ctx, get("/audit", ask), &list); err != nil {
		return ledger.Audits{}, older(err)
	}
	found := ledger.Audits{Next: list.Next, Reached: at(list.Reached)}
	for i := range list.Lines {
		a := &list.Lines[i]
		found.Lines = append(found.Lines, ledger.Audit{
			ID: a.ID, At: a.At, LetterID: a.LetterID, Act: a.Act, From: a.From, To: a.To, By: a.By, Why: a.Why, Attempts: a.Attempts, Job: a.Job,
			Login: a.Login, Application: a.Application, Client: a.Client, Withheld: a.Changed, Fingerprint: a.Fingerprint, Rule: a.Rule,
		})
	}
	return found, nil
}

// Calendar asks where the decisions of each day are, of all days, page by page.
func (c *Client) Calendar(ctx context.Context) (archive.Calendar, error) {
	const page = 4000
	var out archive.Calendar
	q := url.Values{"limit": {strconv.Itoa(page)}}
	for {
		var list api.ArchiveDays
		if err := c.ask(ctx, get("/archive", q), &list); err != nil {
			return out, older(err)
		}
		if err := daysOf(&out, &list); err != nil {
			return out, err
		}
		if list.Next == "" {
			slices.Reverse(out.Days)
			return out, nil
		}
		if was := q.Get("before"); was != "" && list.Next >= was {
			return out, errPages
		}
		q.Set("before", list.Next)
	}
}

// daysOf adds a page of days, the newest first. The rest is the same on each page.
func daysOf(out *archive.Calendar, list *api.ArchiveDays) error {
	out.Where, out.Lacks, out.Shared = list.Where, list.Lacks, nil
	for i := range list.Days {
		d := &list.Days[i]
		day, err := archive.ParseDay(d.Day)
		if err != nil {
			return err
		}
		out.Days = append(out.Days, archive.CalendarDay{
			Day: day, State: d.State, Rows: orUnknown(d.Rows), Bytes: d.Bytes, Counted: orUnknown(d.Counted), Archived: orUnknown(d.Archived), Size: d.Size,
			Formats: d.Formats, Made: at(d.MadeAt), By: d.MadeBy, Gaps: d.Gaps, Unfinished: d.Unfinished, Forgotten: d.Forgotten,
		})
	}
	for _, s := range list.Shared {
		day, err := archive.ParseDay(s.Day)
		if err != nil {
			return err
		}
		out.Shared = append(out.Shared, archive.Held{Day: day, Location: archive.Shared, Rows: orUnknown(s.Rows), Bytes: s.Bytes})
	}
	return nil
}

// orUnknown is a number of days; -1: it is not known.
func orUnknown(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}
