package archive_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
)

const (
	lettersOne   = "dead_letters-2026-03-04-001-3f9a2c-4f397d52"
	lettersTwo   = "dead_letters-2026-03-04-002-3f9a2c-4f397d52"
	lettersLater = "dead_letters-2026-03-05-001-3f9a2c-4f397d52"
)

func marchFourth(t *testing.T) archive.Day {
	t.Helper()
	day, err := archive.ParseDay("2026-03-04")
	if err != nil {
		t.Fatal(err)
	}
	return day
}

// TestAbsentLetters_ByDay: noted archives without a manifest are lost, by day. Broken ones are there. A name without a day has
// that of its note.
func TestAbsentLetters_ByDay(t *testing.T) {
	t.Parallel()
	over := &archive.Forgotten{At: time.Unix(0, 0), By: "mara", Reason: "over"}
	noted := []archive.Noted{
		{Archive: lettersLater}, {Archive: "tape 7", At: time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC)}, {Archive: lettersTwo}, {Archive: lettersOne},
		{Archive: "dead_letters-2026-03-06-001-3f9a2c-00000000"}, {Archive: "dead_letters-2026-03-06-001-3f9a2c-00000001"},
		{Archive: "dead_letters-2026-03-07-001-3f9a2c-00000000", Forgotten: over},
	}
	there := &archive.Manifest{Table: archive.LettersName, Day: "2026-03-06", Generation: 1, Source: archive.Source{ID: "3f9a2c"}, Attempt: "00000000"}
	lost, forgotten := archive.AbsentLetters(noted, []*archive.Manifest{there}, "dead_letters-2026-03-06-001-3f9a2c-00000001")
	all := archive.AbsentByDay(lost)
	if len(all) != 2 || all[0].Day != marchFourth(t) || !slices.Equal(all[0].Archives, []string{lettersOne, lettersTwo, "tape 7"}) || !slices.Equal(all[1].Archives, []string{lettersLater}) {
		t.Errorf("%+v", all)
	}
	if len(forgotten) != 1 || archive.GivenUp(forgotten) != "dead_letters-2026-03-07-001-3f9a2c-00000000 was "+over.String() {
		t.Errorf("%+v: %s", forgotten, archive.GivenUp(forgotten))
	}
	if two := archive.GivenUp(append(forgotten, forgotten[0])); !strings.HasPrefix(two, "2 archives were forgotten on purpose, like dead_letters-2026-03-07") || archive.GivenUp(nil) != "" {
		t.Error(two)
	}
}

// TestForgetLetters_OnlyThoseWithoutAFile: the missing archives of the day are given up together. One that has a file is refused,
// and so is a place that cannot be asked.
func TestForgetLetters_OnlyThoseWithoutAFile(t *testing.T) {
	t.Parallel()
	day := marchFourth(t)
	with := func(names ...string) archive.Shelf {
		shelf := archive.Dir(t.TempDir())
		for _, name := range names {
			if err := shelf.Put(t.Context(), name, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		return shelf
	}
	over := func(at int64) *archive.Forgotten { return &archive.Forgotten{At: time.Unix(at, 0), By: "oleg"} }
	both := []archive.Noted{{Archive: lettersOne}, {Archive: lettersTwo}, {Archive: lettersLater}}
	for what, c := range map[string]struct {
		noted []archive.Noted
		shelf archive.Shelf
		taken bool
		want  []string
		fails string
		at    int64 // of the note of before
	}{
		"both":                   {noted: both, shelf: with(), want: []string{lettersOne, lettersTwo}},
		"one that is broken":     {noted: both, shelf: with(lettersOne + ".manifest.json"), want: []string{lettersTwo}},
		"a file, no manifest":    {noted: both, shelf: with(lettersTwo + ".0001.jsonl.gz"), fails: lettersTwo + " is not gone"},
		"none is noted":          {noted: both[2:], shelf: with(), fails: "no archive of dead letters of 2026-03-04 is missing"},
		"all are there":          {noted: both[:1], shelf: with(lettersOne + ".manifest.json"), fails: "is missing"},
		"given up before":        {noted: []archive.Noted{{Archive: lettersOne, Forgotten: over(7)}, {Archive: lettersTwo, Forgotten: over(5)}}, shelf: with(), at: 7},
		"one was given up":       {noted: []archive.Noted{{Archive: lettersOne, Forgotten: over(7)}, {Archive: lettersTwo}}, shelf: with(), want: []string{lettersTwo}},
		"no directory":           {noted: both, shelf: archive.Dir(filepath.Join(t.TempDir(), "mount")), fails: "not known whether archives are missing"},
		"storage away":           {noted: both, shelf: unasked{}, fails: "not known whether archives are missing"},
		"another process has it": {noted: both, shelf: with(), taken: true, fails: archive.ErrBusy.Error()},
	} {
		for _, dry := range []bool{true, false} {
			b := &book{noted: slices.Clone(c.noted), taken: c.taken}
			carrier := archive.LettersCarrier{Table: b, Shelf: c.shelf, By: "mara"}
			done, err := carrier.Forget(t.Context(), day, "over", dry)
			if (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%s: %v, want %q", what, err, c.fails)
			}
			if !slices.Equal(done.Archives, c.want) || (done.Earlier != nil) != (c.at > 0) || c.at > 0 && done.Earlier.At.Unix() != c.at {
				t.Errorf("%s: %+v", what, done)
			}
			if wrote := len(b.given) == 1; wrote != (!dry && len(c.want) > 0) || wrote && b.given[0] != "["+strings.Join(c.want, " ")+"] mara: over" {
				t.Errorf("%s, dry %v: %q", what, dry, b.given)
			}
			if b.taken != c.taken {
				t.Errorf("%s: the day is still taken", what)
			}
		}
	}
	b := &book{lost: archive.ErrNotedUnread}
	carrier := archive.LettersCarrier{Table: b, Shelf: with()}
	if _, err := carrier.Forget(t.Context(), day, "over", false); !errors.Is(err, archive.ErrNotedUnread) {
		t.Error(err)
	}
}

// unasked is a shelf that cannot be asked.
type unasked struct{ archive.Shelf }

func (unasked) List(context.Context, string) ([]string, error) { return nil, errors.New("away") }
