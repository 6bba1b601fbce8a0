package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
)

// ArchivingConfig says when days are archived.
type ArchivingConfig struct {
	Holder  string // of the duty: this desk
	After   int    // age in days
	Hours   nightly.Hours
	Lag     func(ctx context.Context) (records int64, err error) // that wait for the consumers; nil: they are not asked
	Metrics *ArchivingMetrics
}

// Days archives the days of the table, and the dead letters beside them.
type Days interface {
	// Days returns the days of the table before a time, each once, those first that are out of the table.
	Days(ctx context.Context, before archive.Day) ([]archive.Held, error)
	// Archive archives a day and drops it. goOn is asked at each step at which it may stop.
	Archive(ctx context.Context, day archive.Day, goOn func(archive.Step) error) (archive.Archived, error)
	// LetterDays returns the days before a time with closed dead letters that no archive has.
	LetterDays(ctx context.Context, before archive.Day) ([]archive.Day, error)
	// ArchiveLetters archives the dead letters that were closed on a day.
	ArchiveLetters(ctx context.Context, day archive.Day) (archive.LettersArchived, error)
	// Age gives the files of the archive the storage class of their age, and returns how many it changed. goOn is asked
	// before each.
	Age(ctx context.Context, goOn func() error) (files int, err error)
}

// ArchiveDuties is the part of the ledger that the archiving needs.
type ArchiveDuties interface {
	Duties
	Remembered(ctx context.Context, name string) (text string, at time.Time, err error)
	Remember(ctx context.Context, name, text string) error
}

// Archiving archives the days that are old enough, in the quiet hours. One desk at a time does it. A desk that is killed
// leaves nothing half, because the archive of a day may be killed at any point: the next desk continues.
type Archiving struct {
	cfg    ArchivingConfig
	days   Days
	duties ArchiveDuties
	log    zerolog.Logger

	until  time.Time     // of the lease, by this desk's clock; zero: another desk has the duty
	next   time.Time     // the next look for days
	note   *nightly.Note // nil: not read yet
	text   string        // of the note as it was kept last
	kept   time.Time
	failed int  // rounds with a failure in a row
	unaged bool // the last try to change storage classes failed
}

// The duty of the archive, and its pauses.
const (
	archiveDuty  = "archive"
	archiveLease = time.Minute
	archiveRenew = archiveLease / 3
	archiveAway  = 5 * time.Second  // between two looks for the duty
	archiveEvery = 10 * time.Minute // between two looks for days
	archiveAgain = 2 * time.Hour    // the longest pause after failures
	archiveKept  = 10 * time.Minute // a note is kept again after it, so that readers see that a desk works
	ageEvery     = 20 * time.Hour   // between two looks at storage classes
)

// NewArchiving makes the archiving.
func NewArchiving(cfg ArchivingConfig, days Days, duties ArchiveDuties, log zerolog.Logger) *Archiving {
	return &Archiving{cfg: cfg, days: days, duties: duties, log: log}
}

// Run works until ctx ends, and returns nil then.
func (a *Archiving) Run(ctx context.Context) error {
	defer a.leave(ctx)
	t := trouble{log: a.log, work: "archiving days"}
	for {
		pause, err := a.round(ctx)
		if err != nil {
			t.failed(ctx, err)
			pause = t.pause(archiveAway)
		} else {
			t.succeeded()
		}
		if idle(ctx, pause) {
			return nil
		}
	}
}

// round takes or renews the duty, works if it is time, and returns the pause until the next round.
func (a *Archiving) round(ctx context.Context) (time.Duration, error) {
	mine, err := a.mine(ctx)
	if err != nil || !mine {
		return archiveAway, err
	}
	if a.note == nil {
		if err := a.recall(ctx); err != nil {
			return 0, err
		}
	}
	if !time.Now().Before(a.next) {
		n := a.attend(ctx)
		err := n.work(ctx)
		n.end()
		if err != nil {
			a.until = time.Time{} // the lease may be over
			return 0, err
		}
	}
	return min(archiveRenew, max(0, time.Until(a.next))), nil
}

// mine takes or renews the duty.
func (a *Archiving) mine(ctx context.Context) (bool, error) {
	now := time.Now()
	mine, err := a.duties.Duty(ctx, archiveDuty, a.cfg.Holder, 0, archiveLease)
	if !mine || err != nil {
		a.until, a.note, a.next = time.Time{}, nil, time.Time{}
		if err == nil { // an error says nothing of another desk
			a.unaged = false
			a.cfg.Metrics.idle()
		}
		return false, err
	}
	a.until = now.Add(archiveLease)
	return true, nil
}

// leave gives the duty back, so that another desk need not wait for the end of the lease.
func (a *Archiving) leave(ctx context.Context) {
	if a.until.IsZero() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := a.duties.DutyDone(ctx, archiveDuty, a.cfg.Holder); err != nil && !errors.Is(err, ledger.ErrLost) {
		a.log.Debug().Err(err).Msg("duty not given back")
	}
}

// recall reads the note of the desk before. A note that cannot be read is written again.
func (a *Archiving) recall(ctx context.Context) error {
	text, at, err := a.duties.Remembered(ctx, nightly.NoteName)
	if err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return err
	}
	note, err := nightly.ParseNote(text, at)
	if err != nil || note == nil {
		note = &nightly.Note{}
	}
	note.After, note.Hours, note.Holder = a.cfg.After, a.cfg.Hours.String(), a.cfg.Holder
	a.note, a.text, a.failed = note, "", 0
	return nil
}

// keep writes the note if it says something else than before, or was written long ago.
func (a *Archiving) keep(ctx context.Context) error {
	text, err := a.note.Text()
	if err != nil {
		return err
	}
	now := time.Now()
	if text == a.text && now.Sub(a.kept) < archiveKept {
		return nil
	}
	if err := a.duties.Remember(ctx, nightly.NoteName, text); err != nil {
		return err
	}
	a.text, a.kept = text, now
	return nil
}

// say notes what the archive does now.
func (a *Archiving) say(ctx context.Context, s nightly.State, why, hint string) error {
	a.note.State, a.note.Why, a.note.Hint, a.note.Next = s, why, hint, time.Time{}
	return a.keep(ctx)
}

// plan sets the next look, and notes it.
func (a *Archiving) plan(ctx context.Context, s nightly.State, why, hint string) error {
	now := time.Now()
	a.next = now.Add(archiveEvery)
	if a.failed > 0 {
		a.next = now.Add(doubling(archiveEvery, archiveAgain, a.failed-1))
	}
	if open := a.cfg.Hours.Next(now); s != nightly.Failed && open.After(now) && open.Before(a.next) {
		a.next = open
	}
	a.note.State, a.note.Why, a.note.Hint, a.note.Next = s, why, hint, a.next.UTC().Truncate(time.Second)
	return a.keep(ctx)
}

// dueOn returns the first day that is too young.
func (a *Archiving) dueOn(now time.Time) archive.Day {
	return archive.Day{Time: archive.DayOf(now).AddDate(0, 0, -a.cfg.After)}
}

// due lists the days that are old enough, those first that are out of the table. Days that share a partition with
// others are left out: they cannot be archived.
func (a *Archiving) due(ctx context.Context, now time.Time) ([]archive.Held, error) {
	first := a.dueOn(now)
	if youngest := (archive.Day{Time: archive.DayOf(now).AddDate(0, 0, -1)}); first.After(youngest.Time) {
		first = youngest
	}
	held, err := a.days.Days(ctx, first)
	if err != nil {
		return nil, fmt.Errorf("look for days to archive: %w", err)
	}
	var out, due []archive.Held
	for _, h := range held {
		switch h.Location {
		case archive.Shared:
		case archive.Leaving:
			out = append(out, h)
		default:
			due = append(due, h)
		}
	}
	return append(out, due...), nil
}
