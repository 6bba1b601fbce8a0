package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/desk/notify"
)

// safeRepeats is how much longer an alarm about a topic is held back if nothing is lost with it. Letters without a
// decision outlive their topic while they stay in the ledger.
const safeRepeats = 24

// horizonGood is for how many intervals a horizon is shown, because another desk may have the duty since.
const horizonGood = 3

// check sends or resolves alerts.
func (a *Alerts) check(ctx context.Context, now time.Time) error {
	err := a.checkUnresolved(ctx, now)
	if a.horizon == nil {
		return err
	}
	lines := a.horizon.Look(ctx, now)
	a.cfg.Observer.Horizons(lines, horizonGood*a.cfg.Interval)
	for _, l := range lines {
		if l.Error != "" {
			err = errors.Join(err, a.unknown(l))
			continue
		}
		delete(a.untold, l.Topic)
		repeat := a.cfg.Repeat
		if l.safe() {
			repeat *= safeRepeats
		}
		err = errors.Join(err, a.alarm(ctx, now, "horizon:"+l.Topic, l.level(), repeat,
			func(alertReason) notify.Message { return horizonAlert(l, now) },
			func() notify.Message {
				return notify.Message{Title: "Topic " + l.Topic + ": records that are still needed are safe again", Lines: []string{l.Text(now)}}
			}))
	}
	return err
}

// unknown is the error of a check that does not know when a topic loses records. A lane is not the desk's to read: it may
// lack the right. So that is said once, and the duty is done without it.
func (a *Alerts) unknown(l HorizonLine) error {
	if l.Lane == "" {
		return errors.New(l.Error)
	}
	if !a.untold[l.Topic] {
		a.untold[l.Topic] = true
		a.log.Warn().Str("topic", l.Topic).Str("lane", l.Lane).Str("reason", l.Error).
			Str("hint", "give the desk Read on the topic and Describe on the group of the lane (docs/kafka-security.md)").Msg("loss horizon of lane not known")
	}
	return nil
}

func (a *Alerts) checkUnresolved(ctx context.Context, now time.Time) error {
	counts, err := a.book.Counts(ctx, ledger.Filter{})
	if err != nil {
		return err
	}
	snoozed, err := a.book.Snoozed(ctx)
	if err != nil {
		return err
	}
	open := counts[ledger.Pending] + counts[ledger.Processing] + counts[ledger.Failed]
	level := max(0, open-snoozed) // a snooze mutes alerts
	if level < a.cfg.Threshold {
		level = 0
	}
	state := fmt.Sprintf("%s pending, %s processing, %s failed; the threshold is %s",
		thousands(counts[ledger.Pending]), thousands(counts[ledger.Processing]), thousands(counts[ledger.Failed]), thousands(a.cfg.Threshold))
	if snoozed > 0 {
		state += fmt.Sprintf("; %s of them are snoozed and do not count for it", thousands(snoozed))
	}
	return a.alarm(ctx, now, "unresolved", level, a.cfg.Repeat,
		func(why alertReason) notify.Message {
			title := fmt.Sprintf("%s dead letters are open", thousands(open))
			switch why {
			case stillSo:
				title = fmt.Sprintf("%s dead letters are still open", thousands(open))
			case muchWorse:
				title += ", more than twice as many as at the last alert"
			}
			return notify.Message{Title: title, Severity: notify.Warning, Lines: []string{state, "docket dlq groups shows the causes."}}
		},
		func() notify.Message {
			title := fmt.Sprintf("%s dead letters are open, below the threshold again", thousands(open))
			if snoozed > 0 {
				title = fmt.Sprintf("%s dead letters are open and not snoozed, below the threshold again", thousands(max(0, open-snoozed)))
			}
			return notify.Message{Title: title, Lines: []string{state}}
		})
}

// horizonAlert says which records are safe, which are not, and what to do.
func horizonAlert(l HorizonLine, now time.Time) notify.Message {
	m := notify.Message{Severity: notify.Error, Lines: []string{l.Text(now)}}
	switch {
	case l.Gone > 0:
		m.Title = fmt.Sprintf("Topic %s has LOST %s records: retention deleted them before they were read", l.Topic, thousands(l.Gone))
	case !l.Deadline.After(now):
		m.Title = fmt.Sprintf("Topic %s: retention can delete records that are still needed at any moment", l.Topic)
	default:
		m.Title = fmt.Sprintf("Topic %s: retention deletes the oldest record that is still needed in %s", l.Topic, Age(l.Deadline.Sub(now)))
	}
	reader, only := "docket desk runs and reaches Kafka and the database", "Parked records"
	switch {
	case l.Parked:
		reader = "the parking-replayer runs and the database takes rows"
	case l.Lane != "":
		reader, only = "a consumer with the lane "+l.Lane+" runs and the database takes rows", "Records that are not stored yet"
	}
	switch {
	case l.Gone > 0:
		m.Lines = append(m.Lines,
			"They exist nowhere else, and more will follow.",
			"Do: raise retention.ms of the topic now, then see that "+reader+".")
	case !l.deadLetters():
		m.Lines = append(m.Lines,
			only+" exist nowhere else: at that time they are lost.",
			"Do: see that "+reader+"; until then raise retention.ms of the topic.")
	case l.Unread > 0:
		m.Lines = append(m.Lines,
			NotEntered(l.Unread)+firstLoss(l.LossAt, now)+": those are lost at that time. Those in the ledger are safe, with key, value and headers.",
			"Do: see that "+reader+"; until then raise retention.ms of the topic.")
	default:
		m.Severity = notify.Warning
		m.Lines = append(m.Lines,
			"Nothing is lost: all of them are in the ledger with key, value and headers, and can be retried from there.",
			"Do: decide about the oldest ones (docket dlq list), or raise retention.ms of the topic where other readers need it.")
	}
	return m
}

func firstLoss(lossAt, now time.Time) string {
	switch {
	case lossAt.IsZero():
		return ""
	case !lossAt.After(now):
		return ", the first may be deleted at any moment"
	}
	return ", the first may be deleted in " + Age(lossAt.Sub(now))
}

// report sends the unresolved dead letters. One equal to the last is held back.
func (a *Alerts) report(ctx context.Context, now time.Time) error {
	lines, err := a.book.Report(ctx)
	if err != nil {
		return err
	}
	r := NewReport(lines, nil, now)
	last, at, err := a.remembered(ctx, "report")
	if err != nil {
		return err
	}
	if r.Unresolved == 0 {
		if last == "" {
			return nil
		}
		return a.book.Remember(ctx, "report", "")
	}
	sum := r.sum()
	if sum == last && now.Sub(at) < a.cfg.Repeat {
		return nil
	}
	if a.horizon != nil {
		r.Horizons = a.horizon.Look(ctx, now)
	}
	for i := range r.Lines {
		r.Lines[i].Code, r.Lines[i].Path = notify.Plain(r.Lines[i].Code, 20), notify.Plain(r.Lines[i].Path, 60)
	}
	a.to.Send(notify.Message{
		Kind: notify.Report, Key: "report", Severity: notify.Info, Lines: r.text(100),
		Title: fmt.Sprintf("Report: %s dead letters are open", thousands(r.Unresolved)),
	})
	return a.book.Remember(ctx, "report", sum)
}

// sum is the same for equal reports, without the times that pass.
func (r Report) sum() string {
	h := sha256.New()
	for _, l := range r.Lines {
		fmt.Fprintf(h, "%q %q %q %d %d %d %d\n", l.Kind, l.Code, l.Path,
			l.Counts[ledger.Pending], l.Counts[ledger.Processing], l.Counts[ledger.Failed], l.Oldest.UnixNano())
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// newGroups reports fingerprints that were never seen before.
func newGroups(groups []ledger.Group, unnamed int) notify.Message {
	m := notify.Message{Kind: notify.Alert, Key: "fingerprints", Severity: notify.Warning}
	for _, g := range groups {
		m.Lines = append(m.Lines, groupLine(g))
	}
	if len(groups) == 1 && unnamed == 0 {
		g := groups[0]
		m.Key = "fingerprint:" + g.Fingerprint
		m.Title = fmt.Sprintf("Dead letters with a new cause: %s %s", g.Kind, notify.Plain(g.Code, 20))
		m.Lines = append(m.Lines, "docket dlq list --fingerprint "+g.Fingerprint+" lists them.")
		return m
	}
	m.Title = fmt.Sprintf("Dead letters with %s new causes", thousands(int64(len(groups)+unnamed)))
	if unnamed > 0 {
		m.Lines = append(m.Lines, fmt.Sprintf("and %s more", thousands(int64(unnamed))))
	}
	m.Lines = append(m.Lines, "docket dlq groups lists them.")
	return m
}

func groupLine(g ledger.Group) string {
	parts := []string{string(g.Kind), notify.Plain(g.Code, 20)}
	for _, named := range []struct{ what, name string }{
		{"table", g.Table}, {"column", g.Column}, {"constraint", g.Constraint},
	} {
		if named.name != "" {
			parts = append(parts, named.what, notify.Plain(named.name, 63))
		}
	}
	if len(g.Paths) > 0 && g.Paths[0] != "" {
		parts = append(parts, "path", notify.Plain(g.Paths[0], 60))
	}
	return strings.Join(append(parts, "fingerprint", g.Fingerprint), " ")
}
