package escape

import (
	"encoding/json"
	"testing"
	"time"
)

// TestTime_IsWritten: an offset moves a timestamp with four digits of a year out of the years that JSON can have in UTC.
func TestTime_IsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"9999-12-31T23:59:59.5-01:00": "9999-12-31T01:00:59.5-23:59",
		"9999-12-31T23:59:59-23:59":   "9999-12-31T23:59:59-23:59",
		"0000-01-01T00:00:00+01:00":   "0000-01-01T22:59:00+23:59",
		"0000-01-01T00:00:00+23:59":   "0000-01-01T00:00:00+23:59",
		"9999-12-31T23:59:59Z":        "9999-12-31T23:59:59Z",
		"2026-11-21T20:15:03+09:00":   "2026-11-21T11:15:03Z",
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(Time(at))
		if err != nil || string(got) != `"`+want+`"` || Instant(at) != want {
			t.Errorf("%s: %s %v", text, got, err)
		}
		var back time.Time
		if err := json.Unmarshal(got, &back); err != nil || !back.Equal(at) {
			t.Errorf("%s is read as %v: %v", text, back, err)
		}
	}
	for _, far := range []time.Time{time.UnixMilli(1<<63 - 1), time.UnixMilli(-1 << 63), time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if text, err := json.Marshal(Time(far)); err != nil {
			t.Errorf("%v: %v", far, err)
		} else if y := Time(far).Year(); y != 0 && y != 9999 {
			t.Errorf("%v: %s", far, text)
		}
	}
}
