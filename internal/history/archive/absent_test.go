package archive

import (
	"slices"
	"testing"
	"time"
)

func dayNamed(t *testing.T, text string) Day {
	t.Helper()
	d, err := ParseDay(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A day that left the table needs the archives that were noted then, except those that others replace.
func TestAbsent_NotedArchives(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-08-01")
	made := func(generation int, supersedes ...string) *Manifest {
		return &Manifest{Table: "decision_logs", Day: day.String(), Generation: generation, Source: Source{ID: "3f9a2c"}, Attempt: "00000000", Supersedes: supersedes}
	}
	one, two, three := made(1), made(2), made(3, made(1).Name(), made(2).Name())
	note := &Forgotten{At: time.Unix(0, 0), By: "mara", Reason: "over"}
	both := &Forgotten{At: time.Unix(0, 0), By: "mara", Reason: "over", Archives: []string{one.Name(), two.Name()}}
	late, ahead := made(4), made(2)
	late.CreatedAt, ahead.CreatedAt = time.Unix(1, 0), time.Unix(1, 0)
	for name, c := range map[string]struct {
		left   Left
		there  []*Manifest
		broken []string
		is     bool
		want   []string
	}{
		"all there":                       {Left{Archives: []string{one.Name(), two.Name()}}, []*Manifest{one, two}, nil, false, nil},
		"the first is missing":            {Left{Archives: []string{one.Name(), two.Name()}}, []*Manifest{two}, nil, true, []string{one.Name()}},
		"the last is missing":             {Left{Archives: []string{one.Name(), two.Name()}}, []*Manifest{one}, nil, true, []string{two.Name()}},
		"both are missing":                {Left{Archives: []string{one.Name(), two.Name()}}, nil, nil, true, nil},
		"both, and another one is there":  {Left{Archives: []string{one.Name(), two.Name()}}, []*Manifest{made(4)}, nil, true, []string{one.Name(), two.Name()}},
		"another one replaces both":       {Left{Archives: []string{one.Name(), two.Name()}}, []*Manifest{three}, nil, false, nil},
		"one is broken":                   {Left{Archives: []string{one.Name(), two.Name()}}, []*Manifest{two}, []string{one.Name()}, false, nil},
		"the only one is broken":          {Left{Archives: []string{one.Name()}}, nil, []string{one.Name()}, false, nil},
		"not noted":                       {Left{}, []*Manifest{two}, nil, false, nil},
		"not noted, and none is there":    {Left{}, nil, nil, true, nil},
		"forgotten":                       {Left{Forgotten: note, Archives: []string{}}, nil, nil, false, nil},
		"forgotten, and a late one gone":  {Left{Forgotten: note, Archives: []string{two.Name()}}, nil, nil, true, nil},
		"both forgotten":                  {Left{Forgotten: both, Archives: []string{}}, nil, nil, false, nil},
		"both forgotten, one came back":   {Left{Forgotten: both, Archives: []string{}}, []*Manifest{one}, nil, true, []string{two.Name()}},
		"one of a clock that is ahead":    {Left{Forgotten: both, Archives: []string{}}, []*Manifest{ahead}, nil, true, []string{one.Name()}},
		"both forgotten, both came back":  {Left{Forgotten: both, Archives: []string{}}, []*Manifest{one, two}, nil, false, nil},
		"both forgotten, a late one":      {Left{Forgotten: both, Archives: []string{late.Name()}}, []*Manifest{late}, nil, false, nil},
		"forgotten, and a late one there": {Left{Forgotten: note, Archives: []string{two.Name()}}, []*Manifest{two}, nil, false, nil},
	} {
		c.left.Day = day
		all := Absent([]Left{c.left}, c.there, c.broken...)
		if (len(all) == 1) != c.is || c.is && !slices.Equal(all[0].Archives, c.want) {
			t.Errorf("%s: %v, want %t %v", name, all, c.is, c.want)
		}
	}
}

// A calendar says that an archive of a day is missing, and that a day which left the table has none.
func TestCalendar_AbsentArchives(t *testing.T) {
	t.Parallel()
	at := func(text string) Day { return dayNamed(t, text) }
	m := &Manifest{Table: "decision_logs", Day: "2026-03-01", Generation: 2, Source: Source{ID: "3f9a2c"}, Attempt: "00000000"}
	h := Holdings{Left: []Left{{Day: at("2026-03-01"), Archives: []string{"decision_logs-2026-03-01-001-3f9a2c-00000000", m.Name()}}, {Day: at("2026-03-02")}}}
	c := CalendarOf(h, []Shelved{{Day: at("2026-03-01"), Archives: []*Manifest{m}}}, at("2026-07-02"))
	if len(c.Days) != 2 || c.Days[0].State != DayArchived || len(c.Days[0].Gaps) != 1 || c.Days[1].State != DayDropped {
		t.Fatalf("%+v", c.Days)
	}
	if want := "archive decision_logs-2026-03-01-001-3f9a2c-00000000 has no manifest any more: it was removed, or is elsewhere"; c.Days[0].Gaps[0] != want {
		t.Errorf("%q, want %q", c.Days[0].Gaps[0], want)
	}
}

// A calendar says that a forgotten day lacks an archive, if others of it came back, or if a later one is gone.
func TestCalendar_ForgottenInPart(t *testing.T) {
	t.Parallel()
	one, two := dayNamed(t, "2026-03-01"), dayNamed(t, "2026-03-02")
	back := &Manifest{Table: "decision_logs", Day: "2026-03-01", Generation: 1, Source: Source{ID: "3f9a2c"}, Attempt: "00000000"}
	const other, late = "decision_logs-2026-03-01-002-3f9a2c-00000000", "decision_logs-2026-03-02-002-3f9a2c-00000000"
	note := &Forgotten{At: time.Unix(0, 0), By: "mara", Reason: "over", Archives: []string{back.Name(), other}}
	h := Holdings{Left: []Left{{Day: one, Forgotten: note, Archives: []string{}}, {Day: two, Forgotten: note, Archives: []string{late}}}}
	c := CalendarOf(h, []Shelved{{Day: one, Archives: []*Manifest{back}}}, dayNamed(t, "2026-07-02"))
	if len(c.Days) != 2 || c.Days[0].State != DayArchived || len(c.Days[0].Gaps) != 1 || c.Days[0].Gaps[0] != absent(other) || c.Days[0].Forgotten != "" {
		t.Errorf("one of two came back: %+v", c.Days)
	}
	if c.Days[1].State != DayDropped || c.Days[1].Forgotten != "" {
		t.Errorf("a later one is gone: %+v", c.Days[1])
	}
}
