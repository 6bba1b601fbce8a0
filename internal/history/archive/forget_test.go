package archive

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gone is a table with one day that left, and the day itself.
type gone struct {
	OpenDay
	where   Location
	stays   bool
	note    *Forgotten
	needs   []string
	closed  int
	written string
}

func (g *gone) Name() string                               { return "decision_logs" }
func (g *gone) Days(context.Context, Day) ([]Held, error)  { return nil, nil }
func (g *gone) Open(context.Context, Day) (OpenDay, error) { return g, nil }
func (g *gone) Where(context.Context) (Location, error)    { return g.where, nil }
func (g *gone) Left(context.Context) (*Left, error) {
	if g.stays {
		return nil, nil
	}
	return &Left{Forgotten: g.note, Archives: g.needs}, nil
}
func (g *gone) Close() { g.closed++ }
func (g *gone) Forget(_ context.Context, by, reason string) error {
	g.written = by + ": " + reason
	return nil
}

// unlisted is a shelf that cannot be asked.
type unlisted struct{ Shelf }

func (unlisted) List(context.Context, string) ([]string, error) { return nil, errors.New("away") }

// A day is forgotten only if it left the table and the shelf says that it has no file of it.
func TestForget_RefusesWhatIsNotGone(t *testing.T) {
	t.Parallel()
	day, _ := ParseDay("2026-03-04")
	with := func(name string) Shelf {
		shelf := Dir(t.TempDir())
		if err := shelf.Put(t.Context(), name, strings.NewReader("x")); err != nil {
			t.Fatal(err)
		}
		return shelf
	}
	const name = "decision_logs-2026-03-04-001-3f9a2c-4f397d52"
	empty := Dir(t.TempDir())
	for what, c := range map[string]struct {
		day   gone
		shelf Shelf
		want  string
	}{
		"gone":                     {gone{where: Nowhere}, empty, ""},
		"with late decisions":      {gone{where: Strays}, empty, ""},
		"in the table":             {gone{where: Attached}, empty, "still in the table"},
		"being archived":           {gone{where: Leaving}, empty, "still in the table"},
		"among others":             {gone{where: Shared}, empty, "still in the table"},
		"never left":               {gone{where: Nowhere, stays: true}, empty, "did not leave"},
		"archived":                 {gone{where: Nowhere}, with(name + ".manifest.json"), "is not gone"},
		"a file, and no manifest":  {gone{where: Nowhere}, with("decision_logs/day=2026-03-04/" + name + ".0001.parquet"), "is not gone"},
		"a run was killed":         {gone{where: Nowhere}, with(name + ".started"), "is not gone"},
		"another day is archived":  {gone{where: Nowhere}, with(strings.Replace(name, "03-04", "03-05", 1) + ".manifest.json"), ""},
		"no directory":             {gone{where: Nowhere}, Dir(filepath.Join(t.TempDir(), "mount")), "not known whether an archive has the day"},
		"storage away":             {gone{where: Nowhere}, unlisted{}, "not known whether an archive has the day"},
		"forgotten, then archived": {gone{where: Nowhere, note: &Forgotten{}}, with(name + ".manifest.json"), "is not gone"},
	} {
		for _, dry := range []bool{true, false} {
			g := c.day
			carrier := Carrier{Table: &g, Shelf: c.shelf, By: "mara"}
			_, err := carrier.Forget(t.Context(), day, "over", dry)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", what, err, c.want)
			}
			want := "mara: over"
			if dry || err != nil {
				want = ""
			}
			if g.written != want || g.closed != 1 {
				t.Errorf("%s, dry %v: wrote %q, closed %d times", what, dry, g.written, g.closed)
			}
		}
	}
}

func TestForget_KeepsTheEarlierNote(t *testing.T) {
	t.Parallel()
	day, _ := ParseDay("2026-03-04")
	first := &Forgotten{At: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), By: "oleg", Reason: "first"}
	g := gone{where: Nowhere, note: first}
	c := Carrier{Table: &g, Shelf: Dir(t.TempDir()), By: "mara"}
	if earlier, err := c.Forget(t.Context(), day, "second", false); err != nil || earlier != first || g.written != "" {
		t.Errorf("%v, %v, wrote %q", earlier, err, g.written)
	}
}

// Archives that were made after a day was forgotten can be given up, too.
func TestForget_AgainAfterLateDecisions(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	for _, dry := range []bool{true, false} {
		g := gone{where: Nowhere, note: &Forgotten{By: "oleg", Reason: "first"}, needs: []string{"decision_logs-2026-03-04-002-3f9a2c-4f397d52"}}
		c := Carrier{Table: &g, Shelf: Dir(t.TempDir()), By: "mara"}
		if earlier, err := c.Forget(t.Context(), day, "second", dry); err != nil || earlier != nil || (g.written == "mara: second") == dry {
			t.Errorf("dry %t: %v, %v, wrote %q", dry, earlier, err, g.written)
		}
	}
}

// A forgotten day is not a missing one. It is told beside late decisions, and not once an archive of it came back.
func TestCalendar_Forgotten(t *testing.T) {
	t.Parallel()
	day := func(text string) Day {
		d, _ := ParseDay(text)
		return d
	}
	at := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	f := &Forgotten{At: at, By: "mara", Reason: "over"}
	h := Holdings{
		Held:    []Held{{Day: day("2026-03-03"), Location: Strays, Rows: 1}},
		Counted: map[Day]int64{day("2026-03-01"): 7, day("2026-03-05"): 7},
	}
	for _, text := range []string{"2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04"} {
		h.Left = append(h.Left, Left{Day: day(text), Forgotten: f})
	}
	h.Left = append(h.Left, Left{Day: day("2026-03-05")})
	back := []Shelved{{Day: day("2026-03-04"), Archives: []*Manifest{{CreatedAt: at.Add(-time.Hour)}}}}
	for i, want := range []struct {
		state DayState
		told  bool
	}{{DayForgotten, true}, {DayForgotten, true}, {DayHot, true}, {DayArchived, false}, {DayDropped, false}} {
		d := CalendarOf(h, back, day("2026-07-02")).Days[i]
		if d.State != want.state || (d.Forgotten == f.String()) != want.told {
			t.Errorf("%s is %s, %q", d.Day, d.State, d.Forgotten)
		}
	}
}
