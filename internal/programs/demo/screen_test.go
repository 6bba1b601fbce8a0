package demo

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestScreen_Thousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := number(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
}

func TestScreen_LinesOrLiveLine(t *testing.T) {
	t.Parallel()
	for live, want := range map[bool]string{
		false: "1\n2\nnews\n3\n",
		true:  "\x1b[?7l1\x1b[?7h\r\x1b[2K\x1b[?7l2\x1b[?7h\r\x1b[2Knews\n\x1b[?7l3\x1b[?7h",
	} {
		var out strings.Builder
		s := newScreen(&out, live)
		s.progress("1")
		s.progress("2")
		s.say("news")
		s.progress("3")
		if out.String() != want {
			t.Errorf("live %v: %q", live, out.String())
		}
	}
}

func TestGauge_PromisedMetrics(t *testing.T) {
	t.Parallel()
	r, err := parseMetrics(strings.NewReader(`# HELP docket_records_total Decisions.
# TYPE docket_records_total counter
docket_records_total{home="row"} 1.5e+06
docket_records_total{home="parked"} 12
docket_store_retries_total 3
docket_hold{reason="read_only"} 0
docket_hold{reason="database_away"} 1
go_info{version="go 1"} 1
`))
	if err != nil || r.homes["row"] != 1500000 || r.homes["parked"] != 12 || r.retries != 3 || r.hold != "database_away" {
		t.Errorf("read %+v, %v", r, err)
	}
}

func TestScreen_State(t *testing.T) {
	t.Parallel()
	at := func(parked, retries int, hold string, replayed int, replayHold string) [2]reading {
		return [2]reading{
			{homes: map[string]int{"parked": parked}, retries: retries, hold: hold},
			{homes: map[string]int{"row": replayed}, hold: replayHold},
		}
	}
	before := at(5, 5, "", 5, "")
	for want, now := range map[string][2]reading{
		"running":                       at(5, 5, "", 5, ""),
		"retrying":                      at(5, 6, "", 5, ""),
		"parking":                       at(6, 6, "", 5, ""),
		"HOLD: database_away":           at(6, 6, "database_away", 5, "database_away"),
		"replayer holds: database_away": at(5, 5, "", 5, "database_away"),
		"replaying":                     at(5, 5, "", 6, ""),
	} {
		if got := state(before, now); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}

func TestOutage_EachTurnOnce(t *testing.T) {
	t.Parallel()
	at := func(retries, parked int, hold string, replayed int) [2]reading {
		return [2]reading{{homes: map[string]int{"parked": parked}, retries: retries, hold: hold}, {homes: map[string]int{"row": replayed}}}
	}
	course := [][2]reading{
		{}, at(0, 0, "", 0), at(1, 0, "", 0), at(2, 500, "", 0), at(3, 900, "database_away", 0), at(3, 900, "database_away", 0),
		at(3, 900, "", 0), at(3, 900, "", 400), at(3, 900, "", 900),
	}
	var told []string
	for i := range course[1:] {
		told = append(told, events(course[i], course[i+1])...)
	}
	want := []string{"retrying", "parking", "HOLD (database_away)", "resumed", "replaying"}
	if len(told) != len(want) {
		t.Fatalf("told %q", told)
	}
	for i, w := range want {
		if !strings.Contains(told[i], w) {
			t.Errorf("%q, expected %q", told[i], w)
		}
	}
}

func TestPace_Even(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		p := newPace(10, 10*time.Second)
		for i := range 10 {
			if err := p.wait(t.Context(), i); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != time.Duration(i)*time.Second {
				t.Errorf("step %d comes after %v", i, took)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.wait(ctx, 100); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
	})
}
