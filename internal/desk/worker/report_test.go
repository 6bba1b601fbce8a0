package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

func TestReportText_FitsTheWidth(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	lines := []ledger.ReportLine{
		{Kind: envelope.Decode, Code: "syntax", Counts: map[ledger.State]int64{ledger.Pending: 2}, Oldest: now.Add(-90 * time.Second)},
		{Kind: envelope.Data, Code: "23514", Path: "http/authz/" + strings.Repeat("é", 60), Counts: map[ledger.State]int64{ledger.Pending: 4000, ledger.Failed: 812, ledger.Processing: 7},
			Oldest: now.Add(-50 * time.Hour)},
		{Kind: envelope.Data, Code: "done", Counts: map[ledger.State]int64{ledger.Resolved: 9}},
	}
	got := NewReport(lines, nil, now).Text(80)
	want := "OPEN   KIND    CODE    PENDING  PROCESSING  FAILED  OLDEST  PATH\n" +
		"4,819  data    23514   4,000    7           812     2d 2h   http/authz/éééééééé…\n" +
		"2      decode  syntax  2        0           0       1m\n"
	if got != want {
		t.Errorf("\n%s\n%s", got, want)
	}
	for _, l := range strings.Split(got, "\n") {
		if utf8.RuneCountInString(l) > 80 {
			t.Errorf("%d characters: %s", utf8.RuneCountInString(l), l)
		}
	}
	if s := NewReport([]ledger.ReportLine{{Path: "a\x1b[31m\u202eb", Counts: map[ledger.State]int64{ledger.Failed: 1}}}, nil, now).Text(0); strings.ContainsAny(s, "\x1b\u202e") {
		t.Errorf("%q", s)
	}
	if s := NewReport(nil, []HorizonLine{{Topic: "t"}}, now).Text(0); s != "No open dead letters.\nt: nothing unread or parked is left in it\n" {
		t.Error(s)
	}
}

func TestReportText_TwentyLines(t *testing.T) {
	t.Parallel()
	var lines []ledger.ReportLine
	for i := range 25 {
		lines = append(lines, ledger.ReportLine{Kind: envelope.Data, Code: "23514", Path: fmt.Sprint("p", i), Counts: map[ledger.State]int64{ledger.Failed: int64(i + 1)}})
	}
	text := strings.Split(strings.TrimSpace(NewReport(lines, nil, time.Now()).Text(100)), "\n")
	if len(text) != 1+ReportLines+1 || !strings.HasPrefix(text[1], "25 ") || text[21] != "and 5 more lines with 15 dead letters" {
		t.Error(strings.Join(text, "\n"))
	}
	body, err := json.Marshal(NewReport(lines, nil, time.Now()))
	if err != nil || strings.Count(string(body), `"path"`) != 25 || !strings.Contains(string(body), `"unresolved":325`) {
		t.Errorf("%v %s", err, body)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -100: "-100"} {
		if thousands(n) != want {
			t.Errorf("%d is %s", n, thousands(n))
		}
	}
	for d, want := range map[time.Duration]string{-1: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m", 90 * time.Minute: "1h 30m", 49 * time.Hour: "2d 1h"} {
		if Age(d) != want {
			t.Errorf("%s is %s", d, Age(d))
		}
	}
}
