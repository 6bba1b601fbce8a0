package archive

import (
	"slices"
	"time"
)

// DayState says where the decisions of a day are.
type DayState string

// The states of a day.
const (
	DayHot       DayState = "hot"               // in the table alone
	DayBoth      DayState = "hot, and archived" // in the table and in an archive: restored, or not dropped yet
	DayArchived  DayState = "archived"          // in an archive alone
	DayWorking   DayState = "at work"           // a process archives or restores it now
	DayLeftOff   DayState = "left off"          // out of the table and not dropped, and no process works on it
	DayDropped   DayState = "dropped"           // its decisions were counted once; no known place has them
	DayForgotten DayState = "forgotten"         // no known place has it, and an operator gave it up on purpose
	DayMissing   DayState = "missing"           // nothing is known of it
)

// Holdings are the days that a database knows.
type Holdings struct {
	Held []Held
	// Counted are the decisions that were counted of a day, also of days that left the table; nil: they are not known.
	Counted map[Day]int64
	// Working are the days on which a process works now.
	Working []Day
	// Left are the days that archives took out of the table.
	Left []Left
	// Lacks says what could not be looked at, one sentence each.
	Lacks []string
}

// Shelved is a day in the storage.
type Shelved struct {
	Day      Day
	Archives []*Manifest // those that no other replaces, the latest last
	Gaps     []string    // why it could not be read completely
	// Unfinished are archives without a manifest: a run is writing them, or was killed. A day can have these alone, and is not
	// archived then.
	Unfinished []string
}

// CalendarDay is a day, and where its decisions are.
type CalendarDay struct {
	Day      Day
	State    DayState
	Rows     int64 // in the table, approximate; -1: not known
	Bytes    int64 // in the table, with indexes
	Counted  int64 // -1: not known
	Archived int64 // rows of its archives; -1: there is none
	Size     int64 // bytes of its archives
	Formats  []string
	Made     time.Time // when the last archive was made; zero: there is none
	By       string
	Gaps     []string
	// Unfinished are the names of archives that are not finished: see [NotFinished].
	Unfinished []string
	// Forgotten says who gave the day up on purpose, when and why; empty: nobody did, or an archive of it came back.
	Forgotten string
}

// Calendar has one line for each day from the first to the last that is known.
type Calendar struct {
	Days  []CalendarDay // in order
	Where string        // the place of the archives; empty: there is none
	// Shared are days in a partition with others. Their number is not known.
	Shared []Held
	Lacks  []string // places that could not be looked at
}

// mostDays limits a calendar: the newest are in it.
const mostDays = 4000

// CalendarOf joins what the table and the storage have. Days after today are left out: they are empty partitions.
func CalendarOf(h Holdings, shelved []Shelved, today Day) Calendar {
	c := Calendar{Lacks: slices.Clone(h.Lacks)}
	days := map[Day]*CalendarDay{}
	get := func(d Day) *CalendarDay {
		if days[d] == nil {
			days[d] = &CalendarDay{Day: d, State: DayMissing, Rows: 0, Counted: -1, Archived: -1}
		}
		return days[d]
	}
	for _, held := range h.Held {
		switch {
		case held.Location == Shared:
			c.Shared = append(c.Shared, held)
		case held.Day.After(today.Time):
		default:
			get(held.Day).hold(held)
		}
	}
	for _, s := range shelved {
		if len(s.Archives) > 0 || len(s.Gaps) > 0 || !s.Day.After(today.Time) {
			get(s.Day).shelve(s)
		}
	}
	for day, n := range h.Counted {
		if n > 0 && !day.After(today.Time) {
			get(day).Counted = n
		}
	}
	for _, d := range days {
		if d.Counted > 0 && d.State == DayMissing {
			d.State = DayDropped
		}
	}
	for i := range h.Left {
		h.Left[i].mark(get, shelved, today)
	}
	for _, l := range h.Left {
		there := manifestsOf(shelved, l.Day)
		if l.Forgotten == nil || l.After(today.Time) || !l.Forgotten.Holds(there) || len(there) == 0 && len(l.Archives) > 0 {
			continue
		}
		d := get(l.Day)
		if d.Forgotten = l.Forgotten.String(); d.State == DayMissing || d.State == DayDropped {
			d.State = DayForgotten
		}
	}
	for _, day := range h.Working {
		get(day).State = DayWorking
	}
	if len(days) == 0 {
		return c
	}
	first, last := today, Day{}
	for day := range days {
		if day.Before(first.Time) {
			first = day
		}
		if day.After(last.Time) {
			last = day
		}
	}
	if least := (Day{last.AddDate(0, 0, 1-mostDays)}); first.Before(least.Time) {
		first = least
		c.Lacks = append(c.Lacks, "Days before "+first.String()+" are left out.")
	}
	for day := first; !day.After(last.Time); day = day.Next() {
		c.Days = append(c.Days, *get(day))
	}
	return c
}

// mark says in the calendar that a day which left the table lacks archives. A manifest that cannot be read is said already.
func (l *Left) mark(get func(Day) *CalendarDay, shelved []Shelved, today Day) {
	there := manifestsOf(shelved, l.Day)
	if l.After(today.Time) || l.Forgotten != nil && len(l.needs(there)) == 0 {
		return
	}
	d := get(l.Day)
	if d.State == DayMissing {
		d.State = DayDropped
	}
	if lacks := l.Lacks(there); len(there) > 0 && len(d.Gaps) == 0 && len(lacks) > 0 {
		d.Gaps = append(d.Gaps, (&AbsentError{l.Day, lacks}).Error())
	}
}

func manifestsOf(shelved []Shelved, day Day) (all []*Manifest) {
	for _, s := range shelved {
		if s.Day == day {
			all = append(all, s.Archives...)
		}
	}
	return all
}

// hold adds a place of the table.
func (d *CalendarDay) hold(h Held) {
	if d.Rows >= 0 && h.Rows >= 0 {
		d.Rows += h.Rows
	} else {
		d.Rows = -1
	}
	d.Bytes += h.Bytes
	if h.Location == Leaving || d.State != DayLeftOff && d.State != DayBoth {
		if d.State = DayHot; h.Location == Leaving {
			d.State = DayLeftOff
		}
	}
}

// shelve adds the archives.
func (d *CalendarDay) shelve(s Shelved) {
	d.Gaps, d.Unfinished = append(d.Gaps, s.Gaps...), append(d.Unfinished, s.Unfinished...)
	if len(s.Archives) > 0 {
		d.Archived = 0
	}
	for _, m := range s.Archives {
		d.Archived, d.Size = d.Archived+m.Rows, d.Size+m.Bytes()
		if f := FormatName(m.Format); !slices.Contains(d.Formats, f) {
			d.Formats = append(d.Formats, f)
		}
		if m.CreatedAt.After(d.Made) {
			d.Made, d.By = m.CreatedAt.UTC(), m.CreatedBy
		}
	}
	switch {
	case len(s.Archives) == 0 && len(s.Gaps) == 0:
	case d.State == DayHot:
		d.State = DayBoth
	case d.State == DayMissing:
		d.State = DayArchived
	}
}

// FormatName names a format for people.
func FormatName(format int) string {
	switch format {
	case FormatLines:
		return "lines"
	case FormatParquet:
		return "parquet"
	}
	return "unknown"
}
