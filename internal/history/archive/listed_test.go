package archive

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestUnfinished_Listed: one listing names the archives that have a marker and no manifest. Their days are not archived by them.
func TestUnfinished_Listed(t *testing.T) {
	t.Parallel()
	shelf := Dir(t.TempDir())
	of := func(table, day string, generation int) *Manifest {
		return &Manifest{Format: FormatParquet, Table: table, Day: day, Generation: generation, Source: Source{ID: "abcdef"}, Attempt: "00000000", Hash: Total{}.Hash(), Files: []File{}}
	}
	const table = "decision_logs"
	whole, marked := of(table, "2026-03-04", 1), of(table, "2026-03-05", 1)
	for _, m := range []*Manifest{whole, marked} {
		if err := seal(t.Context(), shelf, m); err != nil {
			t.Fatal(err)
		}
	}
	second, third, alone := of(table, "2026-03-04", 2), of(table, "2026-03-04", 3), of(table, "2026-03-06", 1)
	for _, m := range []*Manifest{marked, third, second, alone, of(LettersName, "2026-03-06", 1)} {
		unfinished(t, shelf, m, true)
	}
	unfinished(t, shelf, of(table, "2026-03-07", 1), false)
	for _, name := range []string{table + "-2026-02-30-001-abcdef-00000000", table + "-2026-03-08", "x" + alone.Name()} {
		if err := shelf.Put(t.Context(), name+startedSuffix, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
	}
	var kept Manifests
	l, err := kept.List(t.Context(), shelf, table)
	if err != nil || len(l.Days) != 2 || l.Days[0].String() != "2026-03-04" || l.Days[1].String() != "2026-03-05" || len(l.Days[0].Manifests) != 1 {
		t.Errorf("archived: %+v, %v", l.Days, err)
	}
	want := map[Day][]string{dayNamed(t, "2026-03-04"): {second.Name(), third.Name()}, dayNamed(t, "2026-03-06"): {alone.Name()}}
	if !maps.EqualFunc(l.Unfinished, want, slices.Equal[[]string]) {
		t.Errorf("unfinished: %v, want %v", l.Unfinished, want)
	}
	if days, err := ListDays(t.Context(), shelf, table); err != nil || len(days) != 2 {
		t.Errorf("%v, %v", days, err)
	}
}

// TestCalendar_Unfinished: an archive that is not finished is told beside the state of its day, and changes no state. So a day
// that has nothing else is not archived.
func TestCalendar_Unfinished(t *testing.T) {
	t.Parallel()
	at := func(text string) Day { return dayNamed(t, text) }
	m := &Manifest{Table: "decision_logs", Day: "2026-03-01", Generation: 1, Source: Source{ID: "3f9a2c"}, Attempt: "00000000"}
	h := Holdings{
		Held:    []Held{{Day: at("2026-03-02"), Location: Attached}, {Day: at("2026-03-03"), Location: Leaving}, {Day: at("2026-03-04"), Location: Attached}},
		Working: []Day{at("2026-03-04")}, Counted: map[Day]int64{at("2026-03-05"): 4},
		Left: []Left{{Day: at("2026-03-06")}, {Day: at("2026-03-07"), Forgotten: &Forgotten{At: time.Unix(0, 0), By: "mara", Reason: "over"}}},
	}
	shelved := []Shelved{{Day: at("2026-03-01"), Archives: []*Manifest{m}, Unfinished: []string{"a", "b"}}}
	want := []DayState{DayArchived, DayHot, DayLeftOff, DayWorking, DayDropped, DayDropped, DayForgotten, DayMissing}
	for i := 2; i <= len(want); i++ {
		shelved = append(shelved, Shelved{Day: at(fmt.Sprintf("2026-03-%02d", i)), Unfinished: []string{"c"}})
	}
	shelved = append(shelved, Shelved{Day: at("2026-08-01"), Unfinished: []string{"of tomorrow"}})
	c := CalendarOf(h, shelved, at("2026-07-31"))
	if len(c.Days) != len(want) {
		t.Fatalf("%d days: %+v", len(c.Days), c.Days)
	}
	for i, d := range c.Days {
		if n := map[bool]int{true: 2, false: 1}[i == 0]; d.State != want[i] || len(d.Unfinished) != n || len(d.Gaps) > 0 || i > 0 && d.Archived != -1 {
			t.Errorf("%s is %s, want %s: %+v", d.Day, d.State, want[i], d)
		}
	}
}
