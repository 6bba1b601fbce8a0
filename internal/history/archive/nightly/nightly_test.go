package nightly

import (
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func at(t *testing.T, text string) time.Time {
	t.Helper()
	got, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestHours_OpenAndNext(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hours, now string
		open       bool
		next       string
	}{
		"any time":                 {"", "2026-05-05T12:00:00Z", true, "2026-05-05T12:00:00Z"},
		"before":                   {"01:00-05:00", "2026-05-05T00:59:59Z", false, "2026-05-05T01:00:00Z"},
		"the first minute":         {"01:00-05:00", "2026-05-05T01:00:00Z", true, "2026-05-05T01:00:00Z"},
		"the last minute":          {"01:00-05:00", "2026-05-05T04:59:59Z", true, "2026-05-05T04:59:59Z"},
		"the end":                  {"01:00-05:00", "2026-05-05T05:00:00Z", false, "2026-05-06T01:00:00Z"},
		"over midnight, late":      {"22:30-04:00", "2026-05-05T22:30:00Z", true, "2026-05-05T22:30:00Z"},
		"over midnight, early":     {"22:30-04:00", "2026-05-05T03:59:00Z", true, "2026-05-05T03:59:00Z"},
		"over midnight, by day":    {"22:30-04:00", "2026-05-05T12:00:30Z", false, "2026-05-05T22:30:00Z"},
		"until midnight":           {"20:00-24:00", "2026-05-05T23:59:00Z", true, "2026-05-05T23:59:00Z"},
		"after midnight":           {"20:00-24:00", "2026-05-05T00:00:00Z", false, "2026-05-05T20:00:00Z"},
		"a zone in summer":         {"01:00-05:00 Europe/Berlin", "2026-07-01T22:59:00Z", false, "2026-07-01T23:00:00Z"},
		"a zone in winter":         {"01:00-05:00 Europe/Berlin", "2026-01-01T23:30:00Z", false, "2026-01-02T00:00:00Z"},
		"a zone of half an hour":   {"01:00-05:00 Asia/Kolkata", "2026-01-01T19:00:00Z", false, "2026-01-01T19:30:00Z"},
		"the skipped hour":         {"02:00-03:00 Europe/Berlin", "2026-03-29T00:30:00Z", false, "2026-03-30T00:00:00Z"},
		"the end is skipped":       {"01:00-02:30 Europe/Berlin", "2026-03-29T01:00:00Z", false, "2026-03-29T23:00:00Z"},
		"the first of twin hours":  {"02:00-03:00 Europe/Berlin", "2026-10-25T00:30:00Z", true, "2026-10-25T00:30:00Z"},
		"the second of twin hours": {"02:00-03:00 Europe/Berlin", "2026-10-25T01:30:00Z", true, "2026-10-25T01:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, err := ParseHours(c.hours)
			now := at(t, c.now)
			if next := h.Next(now); err != nil || h.Open(now) != c.open || !next.Equal(at(t, c.next)) {
				t.Errorf("%v: open %v, next %v, %v", h, h.Open(now), next.UTC(), err)
			}
		})
	}
}

func TestHours_WrongOnes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1-5": "not a span", "01:00": "not a span", "01:00-25:00": "not a span", "01:60-02:00": "not a span", "24:00-01:00": "not a span", "01:00-24:01": "not a span", "-1:00-02:00": "not a span",
		"01:00-01:00": "same minute", "00:00-24:00": "same minute", "01:00-05:00 Mars/Base": "zone", "01:00-05:00 Local": "zone", "01:00-05:00 UTC x": "not a span",
	} {
		if _, err := ParseHours(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if h, err := ParseHours("22:30-04:00 Europe/Berlin"); err != nil || h.String() != "22:30-04:00 Europe/Berlin" || (Hours{}).String() != "any time" {
		t.Errorf("%v, %v", h, err)
	}
}

// Next is the first minute that is open: none before it is, whatever a zone does to its clock.
func TestHours_NextIsTheFirst(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		from, length := rapid.IntRange(0, minutesOfDay-1).Draw(t, "from"), rapid.IntRange(1, minutesOfDay-1).Draw(t, "length")
		zone, err := time.LoadLocation(rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"}).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		h := Hours{from: from, to: (from + length) % minutesOfDay, zone: zone}
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "now"), 0)
		next := h.Next(now)
		if !h.Open(next) || next.Before(now) {
			t.Fatalf("%v is not open in %v", next, h)
		}
		for m := now; m.Before(next); m = m.Add(time.Minute) {
			if h.Open(m) {
				t.Fatalf("%v is open before %v in %v", m, next, h)
			}
		}
	})
}

func TestAge_Days(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"1d": 1, "90d": 90, "36500d": 36500, "0d": 0, "36501d": 0, "90": 0, "2160h": 0, "": 0, "-1d": 0, "9 d": 0} {
		if got, err := ParseAge(text); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
}

func TestClasses_ByAge(t *testing.T) {
	t.Parallel()
	cs, err := ParseClasses("90:GLACIER_IR, 10:STANDARD_IA")
	if err != nil {
		t.Fatal(err)
	}
	for age, want := range map[int]string{0: "", 9: "", 10: "STANDARD_IA", 89: "STANDARD_IA", 90: "GLACIER_IR", 5000: "GLACIER_IR"} {
		if got := cs.At(age); got != want {
			t.Errorf("%d days: %q", age, got)
		}
	}
	if none, err := ParseClasses(""); err != nil || none.At(99) != "" {
		t.Error(none, err)
	}
}

// A question to an archived day reads its files at once, so no class may keep them for hours.
func TestClasses_RefusesSlowOnes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0:STANDARD,90:GLACIER": "GLACIER, which cannot be read at once", "0:DEEP_ARCHIVE": "DEEP_ARCHIVE, which cannot", "STANDARD": "not a list", "-1:STANDARD": "not a list",
		"0:standard": "not a list", "0:A B": "not a list", "0:STANDARD,": "not a list", "5:AA,5:BB": "two classes from 5 days on",
	} {
		if _, err := ParseClasses(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestNote_KeepsTheLastOfEachDay(t *testing.T) {
	t.Parallel()
	n := &Note{}
	for i := range mostResults + 5 {
		n.Add(Result{Table: "decision_logs", Day: string(rune('a' + i))})
	}
	n.Add(Result{Table: "decision_logs", Day: "c", Why: "broken"})
	n.Add(Result{Table: "decision_logs", Day: "c", Why: "busy", Waits: true})
	n.Add(Result{Table: "dead_letters", Day: "c", Why: "away"})
	if len(n.Days) != mostResults || len(n.Open()) != 2 || n.Days[1].Why != "busy" {
		t.Fatalf("%d results, open %+v", len(n.Days), n.Open())
	}
	n.Forget(func(r Result) bool { return r.Table == "dead_letters" })
	if open := n.Open(); len(open) != 1 || open[0].Why != "away" {
		t.Errorf("%+v", open)
	}
	text, err := n.Text()
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseNote(text, time.Unix(5, 0))
	if err != nil || !slices.Equal(back.Days, n.Days) || !back.Wrote.Equal(time.Unix(5, 0)) {
		t.Errorf("%+v, %v", back, err)
	}
	if none, err := ParseNote("", time.Time{}); none != nil || err != nil {
		t.Error(none, err)
	}
	if _, err := ParseNote("{", time.Time{}); err == nil {
		t.Error("a broken note is read")
	}
}
