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
