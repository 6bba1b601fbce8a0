package worker

import (
	"context"
	"errors"
	"strconv"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
)

// alertReason is the reason to send an alert.
type alertReason uint8

const (
	firstTime alertReason = iota
	stillSo               // it was sent, and Repeat has passed
	muchWorse             // it was sent, and has doubled since
)

// alarm sends an alert, holds it back for repeat, or resolves it. level is its severity, 0: none.
func (a *Alerts) alarm(ctx context.Context, now time.Time, key string, level int64, repeat time.Duration, alert func(alertReason) notify.Message, resolved func() notify.Message) error {
	name := "alert:" + key
	text, at, err := a.remembered(ctx, name)
	if err != nil {
		return err
	}
	told, _ := strconv.ParseInt(text, 10, 64) // an unreadable text counts as not sent
	why := firstTime
	switch {
	case level == 0 && told == 0:
		return nil
	case level == 0:
		m := resolved()
		m.Kind, m.Key, m.Severity = notify.Resolved, key, notify.Info
		a.to.Send(m)
		return a.book.Remember(ctx, name, "")
	case told == 0:
	case level >= 2*told:
		why = muchWorse
	case now.Sub(at) >= repeat:
		why = stillSo
	default:
		return nil
	}
	m := alert(why)
	m.Kind, m.Key = notify.Alert, key
	a.to.Send(m)
	return a.book.Remember(ctx, name, strconv.FormatInt(level, 10))
}

func (a *Alerts) remembered(ctx context.Context, name string) (string, time.Time, error) {
	text, at, err := a.book.Remembered(ctx, name)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", time.Time{}, nil
	}
	return text, at, err
}

// Remembered is the part of the ledger with what was told. Each [AlertBook] is one.
type Remembered interface {
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
}

// Told is an alert that was sent, and whose end was not.
type Told struct {
	Topic string // with records that retention deletes; empty: there are many open dead letters
	Level int64
	At    time.Time // when it was sent last
}

// AlertsNow returns the alerts that last, of any desk. topics are those of the horizon.
func AlertsNow(ctx context.Context, book Remembered, topics ...string) (all []Told, err error) {
	for _, topic := range append([]string{""}, topics...) {
		name := "alert:unresolved"
		if topic != "" {
			name = "alert:horizon:" + topic
		}
		text, at, err := book.Remembered(ctx, name)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return nil, err
		}
		if level, _ := strconv.ParseInt(text, 10, 64); level > 0 { // an unreadable text counts as not sent
			all = append(all, Told{topic, level, at})
		}
	}
	return all, nil
}
