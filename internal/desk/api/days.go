package api

import (
	"context"
	"net/http"
	"slices"
	"time"

	"docket/internal/history/archive"
)

type calendarInput struct {
	Before string `query:"before" maxLength:"10" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" doc:"Only days before this one: the next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"4000" default:"100"`
}

// ArchiveDay is a day in UTC, and where its decisions are.
type ArchiveDay struct {
	Day   string           `json:"day"`
	State archive.DayState `json:"state" doc:"hot: in the table. archived: in an archive alone. hot, and archived: in both. at work: a process archives or restores it now. left off: out of the table and not dropped. dropped: counted once, and no known place has it. forgotten: no known place has it, and an operator gave it up on purpose. missing: nothing is known of it"`
	// Numbers that are absent are not known.
	Rows     *int64     `json:"rows,omitempty" doc:"In the table, approximate; without it, it is not known"`
	Bytes    int64      `json:"bytes" doc:"In the table, with indexes"`
	Counted  *int64     `json:"counted,omitempty" doc:"Decisions that were counted of the day; without it, it is not known"`
	Archived *int64     `json:"archived,omitempty" doc:"Rows of its archives; without it, there is none"`
	Size     int64      `json:"archive_bytes"`
	Formats  []string   `json:"formats,omitempty"`
	MadeAt   *time.Time `json:"made_at,omitempty" doc:"When the last archive was made"`
	MadeBy   string     `json:"made_by,omitempty"`
	Gaps     []string   `json:"gaps,omitempty" doc:"Why its archives could not be read completely"`
	// Unfinished is [archive.CalendarDay.Unfinished].
	Unfinished []string `json:"unfinished,omitempty" nullable:"false" doc:"Archives that are not finished: a run is writing them, or was killed. They are in no other field"`
	Forgotten  string   `json:"forgotten,omitempty" doc:"The note of the operator who gave it up on purpose: name, time and reason"`
}

// SharedDays are decisions in a part of the table that has no day of its own.
type SharedDays struct {
	Day   string `json:"day" doc:"The last day that is in it"`
	Rows  *int64 `json:"rows,omitempty"`
	Bytes int64  `json:"bytes"`
}

// ArchiveDays are days, the newest first.
type ArchiveDays struct {
	Days   []ArchiveDay `json:"days" nullable:"false"`
	Next   string       `json:"next,omitempty" doc:"The next page begins with this as before; missing on the last page"`
	Where  string       `json:"where,omitempty" doc:"The place of the archives; without it, there is none"`
	Shared []SharedDays `json:"shared" nullable:"false" doc:"Decisions of several days together, which no archive takes"`
	Lacks  []string     `json:"lacks" nullable:"false" doc:"The places that could not be looked at, a sentence each"`
}

type calendarOutput struct{ Body ArchiveDays }

// days adds the days of decisions, where the desk knows them. A viewer sees their numbers, as in rates.
func (s *api) days() {
	if s.Calendar != nil {
		register(s, route{role: Viewer, method: http.MethodGet, path: "/archive", id: "show-calendar",
			summary: "Show where the decisions of each day are: in the table, in an archive, or in both", text: "The newest day comes first."}, s.calendar)
	}
}

func (s *api) calendar(ctx context.Context, _ caller, in *calendarInput) (*calendarOutput, error) {
	var before archive.Day
	if in.Before != "" {
		var err error
		if before, err = archive.ParseDay(in.Before); err != nil {
			return nil, faulty("query.before", "a day like 2026-11-02")
		}
	}
	c, err := s.Calendar(ctx)
	if err != nil {
		return nil, err
	}
	out := &calendarOutput{ArchiveDays{Days: []ArchiveDay{}, Where: c.Where, Shared: []SharedDays{}, Lacks: append([]string{}, c.Lacks...)}}
	for i := range slices.Backward(c.Days) {
		d := &c.Days[i]
		if in.Before != "" && !d.Day.Before(before.Time) {
			continue
		}
		if len(out.Body.Days) == in.Limit {
			out.Body.Next = out.Body.Days[in.Limit-1].Day
			break
		}
		out.Body.Days = append(out.Body.Days, ArchiveDay{Day: d.Day.String(), State: d.State, Rows: known(d.Rows), Bytes: d.Bytes, Counted: known(d.Counted), Archived: known(d.Archived), Size: d.Size,
			Formats: d.Formats, MadeAt: moment(d.Made), MadeBy: d.By, Gaps: d.Gaps, Unfinished: d.Unfinished, Forgotten: d.Forgotten})
	}
	for _, h := range c.Shared {
		out.Body.Shared = append(out.Body.Shared, SharedDays{h.Day.String(), known(h.Rows), h.Bytes})
	}
	return out, nil
}

// known is a number that can be unknown.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}
