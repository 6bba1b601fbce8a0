package worker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
	"docket/internal/record/envelope"
)

const stillTen = "alert unresolved: 10 dead letters are still open"

func TestAlerts_RaisedRepeatedAndResolved(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		b.open(9)
		runAlerts(t, alertConfig, b, nil, in)
		pass(5 * time.Minute)
		in.expect(t, "below the threshold")
		b.open(10)
		pass(time.Minute)
		in.expect(t, "at the threshold", "alert unresolved: 10 dead letters are open")
		pass(59 * time.Minute)
		in.expect(t, "held back")
		pass(time.Minute)
		in.expect(t, "an hour later", stillTen)
		pass(3*time.Hour + time.Second)
		in.expect(t, "three hours later", stillTen, stillTen, stillTen)
		b.open(3)
		pass(time.Minute)
		in.expect(t, "below again", "resolved unresolved: 3 dead letters are open, below the threshold again")
		pass(3 * time.Hour)
		in.expect(t, "resolved is told once")
		b.open(11)
		pass(time.Minute)
		in.expect(t, "a new one", "alert unresolved: 11 dead letters are open")
	})
}

func TestAlerts_SnoozedAreMuted(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		b.open(10)
		b.set(func() { b.asleep = 1 })
		runAlerts(t, alertConfig, b, nil, in)
		pass(5 * time.Minute)
		in.expect(t, "one is snoozed")
		b.set(func() { b.asleep = 0 })
		pass(time.Minute)
		in.expect(t, "it came back", "alert unresolved: 10 dead letters are open")
		b.set(func() { b.asleep = 9 })
		pass(time.Minute)
		in.expect(t, "snoozed again", "resolved unresolved: 1 dead letters are open and not snoozed, below the threshold again")
	})
}

func TestAlerts_DoubledIsRepeatedEarly(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		b.open(1200)
		runAlerts(t, alertConfig, b, nil, in)
		in.expect(t, "at the start", "alert unresolved: 1,200 dead letters are open")
		b.open(2399)
		pass(10 * time.Minute)
		in.expect(t, "not doubled")
		b.open(2400)
		pass(time.Minute)
		in.expect(t, "doubled", "alert unresolved: 2,400 dead letters are open, more than twice as many as at the last alert")
		b.open(4700)
		pass(30 * time.Minute)
		in.expect(t, "not doubled again")
	})
}

func TestAlerts_RestartRepeatsNothing(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		b.open(10)
		// The database's clock decides, and this desk's is hours ahead of it.
		b.ahead = -5 * time.Hour
		for i := range 20 {
			_, stop := runAlerts(t, alertConfig, b, nil, in)
			pass(time.Minute)
			if i == 0 {
				in.expect(t, "first", "alert unresolved: 10 dead letters are open")
			}
			stop()
			pass(time.Minute)
		}
		in.expect(t, "after restarts")
		b.open(0)
		runAlerts(t, alertConfig, b, nil, in)
		in.expect(t, "resolved is told by another process", "resolved unresolved: 0 dead letters are open, below the threshold again")
	})
}

func TestAlerts_OneOfTwoDesks(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		b.open(10)
		b.slow = 100 * time.Millisecond
		_, stop := runAlerts(t, alertConfig, b, nil, in)
		pass(20 * time.Second)
		other := alertConfig
		other.Holder = "desk-b"
		runAlerts(t, other, b, nil, in)
		pass(30 * time.Minute)
		in.expect(t, "one alert of two desks", "alert unresolved: 10 dead letters are open")
		if x, y := b.looked("desk-a"), b.looked("desk-b"); x != 31 || y != 0 {
			t.Errorf("%d and %d looks", x, y)
		}
		stop()
		pass(5 * time.Minute)
		if n := b.looked("desk-b"); n < 4 {
			t.Errorf("%d looks after one is gone", n)
		}
		b.open(20)
		pass(time.Minute)
		in.expect(t, "the other tells", "alert unresolved: 20 dead letters are open, more than twice as many as at the last alert")
	})
}

func TestAlerts_LedgerAway(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		var log bytes.Buffer
		b.open(10)
		b.err = errAlertLedger
		cfg := alertConfig
		cfg.ReportInterval = 24 * time.Hour
		a := NewAlerts(cfg, b, nil, in, zerolog.New(zerolog.SyncWriter(&log)))
		ctx := t.Context()
		go func() { _ = a.Run(ctx) }()
		pass(10 * time.Minute)
		in.expect(t, "nothing is known")
		b.set(func() { b.err = nil })
		pass(2 * time.Minute)
		in.expect(t, "it answers", "alert unresolved: 10 dead letters are open")
		if n := strings.Count(log.String(), `"level":"warn"`); n != 2 || strings.Count(log.String(), "alert check recovered") != 2 {
			t.Errorf("%d warnings of two duties: %s", n, log.String())
		}
	})
}

// TestAlerts_AnotherDeskTakesOver: a desk that cannot look at Kafka leaves the duty to one that can.
func TestAlerts_AnotherDeskTakesOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ every, later time.Duration }{
		"between": {time.Minute, 20 * time.Second}, "at once": {time.Minute, 0}, "while it looks": {time.Minute, 5 * time.Second}, "often": {10 * time.Second, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
				b.slow = 10 * time.Second
				blind, logs := newAlertLogs(), newAlertLogs()
				blind.err["parking"] = errors.New("the brokers refuse this desk")
				logs.unread["parking replayer"] = Unread{Oldest: time.Now().Add(-6 * 24 * time.Hour), Records: 7}
				cfg := alertConfig
				cfg.Interval = c.every
				runAlerts(t, cfg, b, NewHorizon(alertTopics, blind, b), in)
				pass(c.later)
				other := cfg
				other.Holder = "desk-b"
				runAlerts(t, other, b, NewHorizon(alertTopics, logs, b), in)
				pass(5 * time.Minute)
				if told := in.take(); len(told) != 1 || told[0].Key != "horizon:parking" {
					t.Errorf("told %+v", told)
				}
			})
		})
	}
}

// A report that failed is tried again soon, and not a whole interval later.
func TestAlerts_FailedReportIsRepeated(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		b.lines = []ledger.ReportLine{{Kind: envelope.Data, Code: "23514", Counts: map[ledger.State]int64{ledger.Pending: 3}}}
		b.unreported = errAlertLedger
		cfg := alertConfig
		cfg.ReportInterval = 24 * time.Hour
		runAlerts(t, cfg, b, nil, in)
		pass(time.Hour)
		in.expect(t, "it fails")
		b.set(func() { b.unreported = nil })
		pass(10 * time.Minute)
		in.expect(t, "it answers", "report report: Report: 3 dead letters are open")
	})
}

func group(i int) ledger.Group {
	return ledger.Group{Fingerprint: fmt.Sprintf("%016x", i), Kind: envelope.Data, Code: "23514", Table: "decision_logs",
		Constraint: "path_known", Message: "SECRET of a message", Paths: []string{"http/authz", "http://evil.com/@all"}}
}

func TestAlerts_NewFingerprints(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		a, stop := runAlerts(t, alertConfig, b, nil, in)
		a.New(nil)
		a.New([]ledger.Group{group(0)})
		synctest.Wait() // no time has passed
		first := in.take()
		if len(first) != 1 || first[0].Key != "fingerprint:0000000000000000" || first[0].Kind != notify.Alert ||
			first[0].Lines[0] != "data 23514 table decision_logs constraint path_known path http/authz fingerprint 0000000000000000" {
			t.Fatalf("%+v", first)
		}
		for i := range 103 {
			a.New([]ledger.Group{group(i + 1)})
		}
		pass(5*time.Second - time.Millisecond)
		in.expect(t, "too early")
		pass(time.Millisecond)
		storm := in.take()
		if len(storm) != 1 || storm[0].Title != "Dead letters with 103 new causes" || len(storm[0].Lines) != 12 ||
			!strings.Contains(storm[0].Lines[9], "000000000000000a") || storm[0].Lines[10] != "and 93 more" {
			t.Fatalf("%+v", storm)
		}
		a.New([]ledger.Group{group(200), group(201)})
		pass(time.Millisecond)
		in.expect(t, "within five seconds of the storm")
		stop()
		in.expect(t, "what came up to the end is told", "alert fingerprints: Dead letters with 2 new causes")
	})
}

func TestAlerts_NothingThatAChatRenders(t *testing.T) {
	t.Parallel()
	g := group(1)
	g.Paths = g.Paths[1:]
	g.Code = "<!channel>"
	m := newGroups([]ledger.Group{g}, 0)
	text := m.Title + strings.Join(m.Lines, "\n")
	if strings.Contains(text, "SECRET") || strings.ContainsAny(text, "<>@") || strings.Contains(text, "://") || strings.Contains(text, "evil.com") {
		t.Error(text)
	}
}

func TestAlerts_Report(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		runAlerts(t, alertConfig, b, nil, in)
		pass(30 * time.Minute)
		in.expect(t, "nothing is unresolved")
		line := ledger.ReportLine{Kind: envelope.Data, Code: "23514", Path: "http/authz@x", Counts: map[ledger.State]int64{ledger.Failed: 3}, Oldest: time.Now()}
		b.set(func() { b.lines = []ledger.ReportLine{line} })
		pass(10 * time.Minute)
		got := in.take()
		if len(got) != 1 || got[0].Kind != notify.Report || got[0].Title != "Report: 3 dead letters are open" || !strings.Contains(got[0].Lines[1], "http/authz·x") {
			t.Fatalf("%+v", got)
		}
		pass(50 * time.Minute)
		in.expect(t, "it says the same, but for ages")
		pass(10 * time.Minute)
		in.expect(t, "an hour later", "report report: Report: 3 dead letters are open")
		line.Counts = map[ledger.State]int64{ledger.Failed: 2, ledger.Pending: 1}
		b.set(func() { b.lines = []ledger.ReportLine{line} })
		pass(10 * time.Minute)
		in.expect(t, "it says something else", "report report: Report: 3 dead letters are open")
		b.set(func() { b.lines = nil })
		pass(10 * time.Minute)
		b.set(func() { b.lines = []ledger.ReportLine{line} })
		pass(10 * time.Minute)
		in.expect(t, "it was empty in between", "report report: Report: 3 dead letters are open")
	})
}

// A fingerprint that is new in this batch is never new again.
func TestAlerts_NewFingerprintsAtTheEnd(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		a := NewAlerts(alertConfig, b, nil, in, zerolog.Nop())
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := a.Run(ctx); err != nil {
			t.Fatal(err)
		}
		a.New([]ledger.Group{{Fingerprint: "0123456789abcdef", Kind: envelope.Data, Code: "23514"}})
		in.expect(t, "after the end", "alert fingerprint:0123456789abcdef: Dead letters with a new cause: data 23514")
	})
}

// TestAlertsNow_ListsThoseThatLast: resolved ones and unreadable texts do not count.
func TestAlertsNow_ListsThoseThatLast(t *testing.T) {
	t.Parallel()
	noted := noted{"alert:unresolved": "120", "alert:horizon:a": "", "alert:horizon:b": "3", "alert:horizon:c": "x"}
	all, err := AlertsNow(t.Context(), noted, "a", "b", "c", "d")
	if err != nil || len(all) != 2 || all[0].Level != 120 || all[0].Topic != "" || all[1].Topic != "b" || all[1].Level != 3 {
		t.Errorf("%+v, %v", all, err)
	}
}

// noted is what was told. A name without an entry was never told.
type noted map[string]string

func (n noted) Remembered(_ context.Context, name string) (string, time.Time, error) {
	text, known := n[name]
	if !known {
		return "", time.Time{}, ledger.ErrNotFound
	}
	return text, time.Time{}, nil
}
