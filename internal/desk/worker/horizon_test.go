package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
)

const week = 7 * 24 * time.Hour

// alertLogs are topics as the horizon sees them.
type alertLogs struct {
	mu     sync.Mutex
	kept   map[string]Retention
	unread map[string]Unread // by topic and group
	err    map[string]error
}

func (l *alertLogs) Retention(_ context.Context, topic string) (Retention, error) {
	return l.kept[topic], l.err[topic]
}

func (l *alertLogs) Unread(_ context.Context, topic, group string) (Unread, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.unread[topic+" "+group], nil
}

func (l *alertLogs) set(topic, group string, u Unread) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unread[topic+" "+group] = u
}

var alertTopics = HorizonConfig{ParkingTopic: "parking", ParkingGroup: "replayer", DLQTopic: "dlq", ParkingDLQTopic: "parking-dlq", DeskGroup: "desk"}

func newAlertLogs() *alertLogs {
	kept := Retention{Time: week, Known: true, Bytes: -1}
	return &alertLogs{kept: map[string]Retention{"parking": kept, "dlq": kept, "parking-dlq": kept}, unread: map[string]Unread{}, err: map[string]error{}}
}

func TestHorizon_OldestNeededRecord(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	day := func(n float64) time.Time { return now.Add(-time.Duration(n * 24 * float64(time.Hour))) }
	logs, b := newAlertLogs(), newAlertLedger()
	logs.unread["parking replayer"] = Unread{Oldest: day(3.5), Records: 1204}
	logs.unread["parking desk"] = Unread{Oldest: day(6), Records: 9}
	logs.unread["dlq desk"] = Unread{Oldest: day(1), Records: 2}
	b.found = map[string]time.Time{"dlq": day(5), "parking": day(6)}
	lines := NewHorizon(alertTopics, logs, b).Look(t.Context(), now)
	if len(lines) != 3 {
		t.Fatalf("%d lines", len(lines))
	}
	parking, dlq, rest := lines[0], lines[1], lines[2]
	if !parking.Parked || !parking.Oldest.Equal(day(3.5)) || parking.Used != 0.5 || !parking.Deadline.Equal(day(-3.5)) || parking.LeftSeconds != 302400 || parking.level() == 0 {
		t.Errorf("%+v", parking)
	}
	if dlq.Parked || !dlq.Oldest.Equal(day(5)) || !dlq.LossAt.Equal(day(-6)) || dlq.Unread != 2 || dlq.level() == 0 {
		t.Errorf("%+v", dlq)
	}
	if !rest.Oldest.IsZero() || rest.level() != 0 || rest.Text(now) != "parking-dlq: nothing unread or parked is left in it" {
		t.Errorf("%+v", rest)
	}
	want := "parking: the oldest record that is still needed can be deleted in 3d 12h, at 2026-03-12 00:00 UTC; 50% of the retention has passed; 1,204 parked records wait in it"
	if got := parking.Text(now); got != want {
		t.Errorf("%s", got)
	}
	// An unread record that is older than all of the ledger counts as well.
	logs.unread["dlq desk"] = Unread{Oldest: day(6), Records: 2}
	if l := NewHorizon(alertTopics, logs, b).Look(t.Context(), now)[1]; !l.Oldest.Equal(day(6)) || !l.LossAt.Equal(l.Deadline) {
		t.Errorf("%+v", l)
	}
}

func TestHorizon_UnknownValues(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	old := Unread{Oldest: now.Add(-100 * week), Records: 1}
	for name, c := range map[string]struct {
		kept   Retention
		unread Unread
		text   string
		alarm  bool
	}{
		"not told":  {Retention{Time: -1}, old, "its retention is unknown; the oldest record that is still needed is 700d 0h old; 1 parked", false},
		"for ever":  {Retention{Time: -time.Millisecond, Known: true, Bytes: 1 << 30}, old, "keeps records of any age (or earlier: retention.bytes is set); 1 parked", false},
		"late":      {Retention{Time: week, Known: true}, old, "the oldest record that is still needed can be deleted at any moment; 1 parked", true},
		"by size":   {Retention{Time: week, Known: true, Bytes: 1}, Unread{Oldest: now, Records: 1}, "7d 0h, at 2026-03-15 12:00 UTC; 0% of the retention has passed (or earlier", false},
		"gone":      {Retention{Time: week, Known: true}, Unread{Gone: 12000}, "LOST: 12,000 records were deleted before they were read", true},
		"a hair":    {Retention{Time: week, Known: true}, Unread{Oldest: now.Add(-week/2 + time.Second)}, "in 3d 12h", false},
		"at once":   {Retention{Known: true}, Unread{Oldest: now}, "at any moment", true},
		"in future": {Retention{Time: week, Known: true}, Unread{Oldest: now.Add(week)}, "in 14d 0h", false},
	} {
		logs := newAlertLogs()
		logs.kept["parking"], logs.unread["parking replayer"] = c.kept, c.unread
		l := NewHorizon(alertTopics, logs, newAlertLedger()).Look(t.Context(), now)[0]
		if !strings.Contains(l.Text(now), c.text) || (l.level() > 0) != c.alarm {
			t.Errorf("%s: %s, level %d", name, l.Text(now), l.level())
		}
		if _, err := json.Marshal(l); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestHorizon_OneTopicFails(t *testing.T) {
	t.Parallel()
	logs, b := newAlertLogs(), newAlertLedger()
	logs.err["dlq"] = errAlertLedger
	logs.unread["parking replayer"] = Unread{Oldest: time.Now(), Records: 1}
	lines := NewHorizon(alertTopics, logs, b).Look(t.Context(), time.Now())
	if lines[1].Error == "" || lines[0].Error != "" || lines[0].Unread != 1 || !strings.Contains(lines[1].Text(time.Now()), "unknown when it loses records") {
		t.Errorf("%+v", lines)
	}
	b.err = errAlertLedger
	lines = NewHorizon(alertTopics, logs, b).Look(t.Context(), time.Now())
	if lines[2].Error == "" || lines[0].Error != "" {
		t.Errorf("a ledger that does not answer: %+v", lines)
	}
}

// TestHorizon_Lanes: a record that no consumer has committed is lost when Kafka deletes it. The ledger does not matter.
func TestHorizon_Lanes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	logs, b := newAlertLogs(), newAlertLedger()
	b.err = errAlertLedger
	logs.kept["d"], logs.kept["u"] = logs.kept["dlq"], logs.kept["dlq"]
	logs.unread["u urgent"] = Unread{Oldest: now.Add(-6 * 24 * time.Hour), Records: 1204}
	logs.unread["u default"] = Unread{Gone: 9}
	cfg := alertTopics
	cfg.Sources = []LaneSource{{"default", "d", "default"}, {"urgent", "u", "urgent"}}
	lines := NewHorizon(cfg, logs, b).Look(t.Context(), now)
	if len(lines) != 5 {
		t.Fatalf("%d lines", len(lines))
	}
	idle, urgent := lines[3], lines[4]
	if idle.Lane != "default" || idle.level() != 0 || idle.Text(now) != "d: all of it is committed" {
		t.Errorf("%+v", idle)
	}
	if urgent.level() == 0 || urgent.safe() || !urgent.LossAt.Equal(now.Add(24*time.Hour)) {
		t.Errorf("%+v", urgent)
	}
	m := horizonAlert(urgent, now)
	for got, want := range map[string]string{
		m.Title:    "Topic u: retention deletes the oldest record that is still needed in 1d 0h",
		m.Lines[0]: urgent.Topic + ": the oldest record that is still needed can be deleted in 1d 0h, at 2026-03-09 12:00 UTC; 86% of the retention has passed; lane urgent, 1,204 not committed",
		m.Lines[1]: "Records that are not stored yet exist nowhere else: at that time they are lost.",
		m.Lines[2]: "Do: see that a consumer with the lane urgent runs and the database takes rows; until then raise retention.ms of the topic.",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	logs.err["u"] = errAlertLedger
	if l := NewHorizon(cfg, logs, b).Look(t.Context(), now)[4]; l.Error == "" || l.Lane != "urgent" {
		t.Errorf("%+v", l)
	}
}

// A lane that the desk may not read does not spoil the duty: that is said once for each time that it begins.
func TestHorizon_UnknownLaneIsSaidOnce(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	logs, b := newAlertLogs(), newAlertLedger()
	logs.kept["u"] = logs.kept["dlq"]
	cfg := alertTopics
	cfg.Sources = []LaneSource{{"urgent", "u", "urgent"}}
	var said bytes.Buffer
	a := NewAlerts(AlertConfig{Interval: time.Minute, Threshold: 1, Repeat: time.Hour}, b, NewHorizon(cfg, logs, b), &alertInbox{}, zerolog.New(&said))
	for n, c := range []struct {
		err  error
		want int
	}{{errAlertLedger, 1}, {errAlertLedger, 1}, {nil, 1}, {errAlertLedger, 2}} {
		logs.err["u"] = c.err
		if err := a.check(t.Context(), now); err != nil {
			t.Errorf("%d: %v", n, err)
		}
		if got := strings.Count(said.String(), "loss horizon of lane not known"); got != c.want {
			t.Errorf("%d: said %d times, want %d: %s", n, got, c.want, &said)
		}
	}
	logs.err["u"], logs.err["dlq"] = nil, errAlertLedger
	if err := a.check(t.Context(), now); err == nil {
		t.Error("the duty has no error, and nothing is known of a dead-letter topic")
	}
}

func TestHorizon_AlarmLevels(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		logs := newAlertLogs()
		logs.kept["parking"] = Retention{Time: 24 * time.Hour, Known: true}
		logs.unread["parking replayer"] = Unread{Oldest: time.Now(), Records: 7}
		cfg := alertConfig
		cfg.Repeat = 100 * time.Hour
		began := time.Now()
		_, stop := runAlerts(t, cfg, b, NewHorizon(alertTopics, logs, b), in)
		pass(30 * time.Hour)
		in.mu.Lock()
		got, when := in.got, in.when
		in.mu.Unlock()
		var hours []string
		for i, m := range got {
			hours = append(hours, Age(when[i].Sub(began)))
			if m.Key != "horizon:parking" || m.Severity != notify.Error || !strings.Contains(strings.Join(m.Lines, " "), "raise retention.ms") {
				t.Errorf("%+v", m)
			}
		}
		// Half, 3/4, 7/8 … of a day, as long as there is more than about a minute between two.
		if len(hours) < 8 || strings.Join(hours[:4], ",") != "12h 0m,18h 0m,21h 0m,22h 30m" || len(hours) > 12 {
			t.Errorf("told after %v", hours)
		}
		if title := got[len(got)-1].Title; title != "Topic parking: retention can delete records that are still needed at any moment" {
			t.Error(title)
		}
		in.take()
		stop()
		logs.set("parking", "replayer", Unread{})
		runAlerts(t, cfg, b, NewHorizon(alertTopics, logs, b), in)
		pass(time.Minute)
		in.expect(t, "all is read", "resolved horizon:parking: Topic parking: records that are still needed are safe again")
	})
}

func TestHorizon_SafeTopicIsHeldBackLonger(t *testing.T) {
	t.Parallel()
	alertBubble(t, func(t *testing.T, b *alertLedger, in *alertInbox) {
		logs := newAlertLogs()
		b.found = map[string]time.Time{"dlq": time.Now().Add(-2 * week)}
		runAlerts(t, alertConfig, b, NewHorizon(alertTopics, logs, b), in)
		const told = "alert horizon:dlq: Topic dlq: retention can delete records that are still needed at any moment"
		in.expect(t, "at the start", told)
		pass(23 * time.Hour)
		in.expect(t, "held back")
		pass(time.Hour)
		in.expect(t, "a day later", told)
		// Records that are not in the ledger count differently.
		logs.set("dlq", "desk", Unread{Oldest: time.Now().Add(-2 * week), Records: 1})
		pass(time.Hour)
		in.expect(t, "something is lost with it", told)
	})
}

func TestHorizon_AlertText(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 8, 12, 0, 0, 0, time.UTC)
	line := func(parked bool, unread, gone int64) string {
		l := HorizonLine{Topic: "t", Parked: parked, Oldest: now.Add(-6 * 24 * time.Hour), Unread: unread, Gone: gone, RetentionKnown: true, RetentionSeconds: int64(week / time.Second)}
		if unread > 0 {
			l.OldestUnread = now.Add(-5 * 24 * time.Hour)
		}
		l.reckon(now)
		m := horizonAlert(l, now)
		return string(m.Severity) + " " + m.Title + " " + strings.Join(m.Lines, " ")
	}
	for _, c := range []struct{ got, want string }{
		{line(true, 3, 0), "error Topic t: retention deletes the oldest record that is still needed in 1d 0h"},
		{line(true, 3, 0), "nowhere else: at that time they are lost"},
		{line(false, 3, 0), "3 dead letters are not in the ledger yet, the first may be deleted in 2d 0h: those are lost"},
		{line(false, 3, 0), "error "},
		{line(false, 0, 0), "warning "},
		{line(false, 0, 0), "Nothing is lost: all of them are in the ledger with key, value and headers"},
		{line(true, 3, 5), "error Topic t has LOST 5 records"},
		{line(false, 3, 5), "error Topic t has LOST 5 records"},
		{line(false, 0, 5), "error Topic t has LOST 5 records"},
	} {
		if !strings.Contains(c.got, c.want) {
			t.Errorf("%q is not in %q", c.want, c.got)
		}
	}
	if s := line(true, 3, 5); !strings.Contains(s, "more will follow") {
		t.Error(s)
	}
	if s := line(false, 0, 5); strings.Contains(s, "Nothing is lost") {
		t.Error(s)
	}
}

var _ AlertBook = ledger.Book(nil)
var _ Finds = ledger.Book(nil)
