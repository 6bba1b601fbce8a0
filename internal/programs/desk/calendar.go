package desk

import (
	"context"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/postgres/historydb"
)

// mostShelved limits the archived days of a calendar.
const mostShelved = 1000

// Calendar joins the days of the database with those of the storage. If either cannot be read, the answer has the
// other, and says so.
func Calendar(rows *historydb.Reader, days *cold.Days, now func() time.Time) func(ctx context.Context) (archive.Calendar, error) {
	return func(ctx context.Context) (archive.Calendar, error) {
		today := archive.DayOf(now())
		held, err := rows.Holdings(ctx, today)
		if err != nil {
			return archive.Calendar{}, err
		}
		if days.None() {
			return archive.CalendarOf(held, nil, today), nil
		}
		reading, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		shelved, more, err := days.Shelved(reading, mostShelved)
		if err != nil {
			held.Lacks = append(held.Lacks, "The archives in "+days.Where+" could not be read: "+days.Told(err)+". A day that looks dropped or missing can be there.")
		}
		if more {
			held.Lacks = append(held.Lacks, "The newest 1,000 archived days are looked at. An earlier day that looks dropped or missing can be archived.")
		}
		c := archive.CalendarOf(held, shelved, today)
		c.Where = days.Where
		return c, nil
	}
}
