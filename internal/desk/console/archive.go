package console

import (
	"net/url"
	"slices"
	"time"

	"docket/internal/desk/api"
	"docket/internal/history/archive"
)

// archivePage is the content of the calendar of days.
type archivePage struct {
	Month         time.Time
	Weeks         [][]calendarCell
	Days          []archive.CalendarDay // of the month
	Totals        []archiveTotal        // of all months
	Earlier, Next string
	Where         string
	Shared        []archive.Held
	Lacks         []string
	None          bool
	Command       string
}

// calendarCell is a day of the month; the zero value is a place without a day.
type calendarCell struct {
	N    int
	Text string // the day
	At   *archive.CalendarDay
	To   string // its decisions; empty: there are none to ask for
}

// archiveTotal sums up the days of a state.
type archiveTotal struct {
	State               archive.DayState
	Days                int
	Rows, Bytes, Stored int64 // in the table, and of archives
}

const monthForm = "2006-01"

func (c *Console) archive(in *request) (page, error) {
	found, err := c.ask.Calendar(in.ctx(), in.who)
	if err != nil {
		return page{}, err
	}
	body := archivePage{Where: found.Where, Shared: found.Shared, Lacks: found.Lacks, None: len(found.Days) == 0, Totals: totalsOf(found.Days), Command: "docket archive list"}
	newest := monthOf(in.now)
	if n := len(found.Days); n > 0 && found.Days[n-1].Day.Before(newest) {
		newest = monthOf(found.Days[n-1].Day.Time)
	}
	body.Month = newest
	if text := in.URL.Query().Get("month"); text != "" {
		if body.Month, err = time.Parse(monthForm, text); err != nil {
			return page{}, asking("month", "a month like 2026-11")
		}
	}
	for i := range found.Days {
		if monthOf(found.Days[i].Day.Time).Equal(body.Month) {
			body.Days = append(body.Days, found.Days[i])
		}
	}
	slices.Reverse(body.Days)                   // the list has the newest day first
	body.Weeks = weeksOf(body.Month, body.Days) // it points into Days, whose order is final by now
	if !body.None && found.Days[0].Day.Before(body.Month) {
		body.Earlier = "/archive?month=" + body.Month.AddDate(0, -1, 0).Format(monthForm)
	}
	if body.Month.Before(newest) {
		body.Next = "/archive?month=" + body.Month.AddDate(0, 1, 0).Format(monthForm)
	}
	return page{name: "archive", title: "Archive", body: body}, nil
}

func monthOf(t time.Time) time.Time {
	y, m, _ := t.UTC().Date()
	return time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
}

// weeksOf lays a month out in weeks from Monday on.
func weeksOf(month time.Time, days []archive.CalendarDay) (weeks [][]calendarCell) {
	by := map[int]*archive.CalendarDay{}
	for i := range days {
		by[days[i].Day.Day()] = &days[i]
	}
	week := make([]calendarCell, (int(month.Weekday())+6)%7, 7)
	for day := month; day.Month() == month.Month(); day = day.AddDate(0, 0, 1) {
		cell := calendarCell{N: day.Day(), Text: day.Format(time.DateOnly), At: by[day.Day()]}
		if cell.At != nil {
			cell.To = dayURL(cell.At)
		}
		if week = append(week, cell); len(week) == 7 {
			weeks, week = append(weeks, week), nil
		}
	}
	if len(week) > 0 {
		weeks = append(weeks, append(week, make([]calendarCell, 7-len(week))...))
	}
	return weeks
}

// dayURL is the page of the decisions of a day; empty: no place has any.
func dayURL(d *archive.CalendarDay) string {
	if d.State == archive.DayMissing || d.State == archive.DayDropped || d.State == archive.DayForgotten {
		return ""
	}
	return "/decisions?" + url.Values{"since": {d.Day.String()}, "until": {d.Day.Next().String()}}.Encode()
}

func totalsOf(days []archive.CalendarDay) (all []archiveTotal) {
	for _, state := range []archive.DayState{archive.DayHot, archive.DayBoth, archive.DayArchived, archive.DayWorking, archive.DayLeftOff, archive.DayDropped, archive.DayForgotten, archive.DayMissing} {
		t := archiveTotal{State: state}
		for i := range days {
			if d := &days[i]; d.State == state {
				t.Days, t.Rows, t.Bytes, t.Stored = t.Days+1, t.Rows+max(d.Rows, 0), t.Bytes+d.Bytes, t.Stored+d.Size
			}
		}
		if t.Days > 0 {
			all = append(all, t)
		}
	}
	return all
}

// archiving is the screen about days.
func (c *Console) archiving() (all []screen) {
	if c.ask.Has("show-calendar") {
		all = append(all, screen{pattern: "GET /archive", role: api.Viewer, handle: (*Console).archive})
	}
	return all
}
