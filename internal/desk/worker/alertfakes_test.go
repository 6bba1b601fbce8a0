package worker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
)

// alertLedger is the ledger for alerts. Its clock may differ from the desks'.
type alertLedger struct {
	ahead time.Duration // of the desks' clocks
	slow  time.Duration // that Counts takes

	mu     sync.Mutex
	counts map[ledger.State]int64
	asleep int64 // letters that are snoozed
	lines  []ledger.ReportLine
	found  map[string]time.Time
	notes  map[string]alertNote
	duties map[string]alertDuty
	looks  map[string]int // by holder
	err    error

	unreported error // of Report alone
}

type alertNote struct {
	text string
	at   time.Time
}

type alertDuty struct {
	holder      string
	until, done time.Time
}

func newAlertLedger() *alertLedger {
	return &alertLedger{notes: map[string]alertNote{}, duties: map[string]alertDuty{}, looks: map[string]int{}}
}

func (b *alertLedger) now() time.Time { return time.Now().Add(b.ahead) }

func (b *alertLedger) set(change func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change()
}

func (b *alertLedger) Snoozed(context.Context) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asleep, b.err
}

// looked returns how often a desk checked.
func (b *alertLedger) looked(holder string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.looks[holder]
}

func (b *alertLedger) open(pending int64) {
	b.set(func() { b.counts = map[ledger.State]int64{ledger.Pending: pending, ledger.Resolved: 1000} })
}

func (b *alertLedger) Counts(context.Context, ledger.Filter) (map[ledger.State]int64, error) {
	time.Sleep(b.slow)
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts, b.err
}

func (b *alertLedger) Report(context.Context) ([]ledger.ReportLine, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lines, errors.Join(b.err, b.unreported)
}

func (b *alertLedger) OldestFound(context.Context) (map[string]time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.found, b.err
}

func (b *alertLedger) Duty(_ context.Context, name, holder string, every, lease time.Duration) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, now := b.duties[name], b.now()
	switch {
	case b.err != nil:
		return false, b.err
	case d.holder != holder && d.until.After(now), !d.done.IsZero() && now.Sub(d.done) < every:
		return false, nil
	}
	b.duties[name] = alertDuty{holder, now.Add(lease), d.done}
	if name == "alerts" {
		b.looks[holder]++
	}
	return true, nil
}

func (b *alertLedger) DutyDone(_ context.Context, name, _ string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.duties[name] = alertDuty{done: b.now()}
	return b.err
}

func (b *alertLedger) Remembered(_ context.Context, name string) (string, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, ok := b.notes[name]
	if !ok {
		return "", time.Time{}, ledger.ErrNotFound
	}
	return n.text, n.at, b.err
}

func (b *alertLedger) Remember(_ context.Context, name, text string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes[name] = alertNote{text, b.now()}
	return b.err
}

// alertInbox records the messages.
type alertInbox struct {
	answers chan func(taken bool) // of delivered messages, where the test answers; nil: all are taken at once

	mu   sync.Mutex
	got  []notify.Message
	when []time.Time
}

func (i *alertInbox) Send(m notify.Message) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got, i.when = append(i.got, m), append(i.when, time.Now())
}

func (i *alertInbox) Deliver(m notify.Message, done func(taken bool)) {
	i.Send(m)
	if i.answers == nil {
		done(true)
	} else {
		i.answers <- done
	}
}

// answer says how the oldest delivery without an answer ended.
func (i *alertInbox) answer(t *testing.T, taken bool) {
	t.Helper()
	select {
	case done := <-i.answers:
		done(taken)
	default:
		t.Fatal("nothing is delivered")
	}
}

// take returns the messages since the last take.
func (i *alertInbox) take() []notify.Message {
	i.mu.Lock()
	defer i.mu.Unlock()
	got := i.got
	i.got, i.when = nil, nil
	return got
}

// expect compares the messages since then with "kind key: title".
func (i *alertInbox) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	var got []string
	for _, m := range i.take() {
		got = append(got, string(m.Kind)+" "+m.Key+": "+m.Title)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: told %q, not %q", what, got, want)
	}
}

var alertConfig = AlertConfig{Holder: "desk-a", Threshold: 10, Interval: time.Minute, Repeat: time.Hour, ReportInterval: 10 * time.Minute}

// alertBubble runs a test in virtual time.
func alertBubble(t *testing.T, test func(t *testing.T, b *alertLedger, in *alertInbox)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newAlertLedger(), &alertInbox{}) })
}

// runAlerts starts a desk's alerts. stop waits for their end.
func runAlerts(t *testing.T, cfg AlertConfig, b AlertBook, h *Horizon, to Sender) (a *Alerts, stop func()) {
	t.Helper()
	a = NewAlerts(cfg, b, h, to, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	synctest.Wait()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return a, stop
}

// pass lets time pass, with all events in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

var errAlertLedger = errors.New("the ledger does not answer")
