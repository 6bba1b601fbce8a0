package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
)

// How the archive makes room for the consumers.
const (
	// lagSpared is the lag at which the archive need not wait: the consumers are busy with a few batches.
	lagSpared = 10_000
	lagEvery  = archiveRenew
)

// pausedError says why the archive stops at a step, and what makes it continue.
type pausedError struct{ why string }

func (e *pausedError) Error() string { return e.why }

var (
	errHoursOver = &pausedError{"it is not within the quiet hours"}
	errDutyLost  = &pausedError{"another desk has the duty"}
)

// night is one look for days, with the work that follows. A goroutine keeps the duty and watches the consumers
// meanwhile.
type night struct {
	*Archiving
	stop context.CancelFunc
	done chan struct{}
	bad  int // tries that failed in this pass

	mu      sync.Mutex
	lost    bool
	growing bool
	lag     int64
	seen    bool // lag is known
}

// attend begins a look. end ends it.
func (a *Archiving) attend(ctx context.Context) *night {
	ctx, stop := context.WithCancel(ctx)
	n := &night{Archiving: a, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(n.done)
		for {
			n.look(ctx)
			if idle(ctx, lagEvery) { // the duty was taken just now
				return
			}
			n.renew(ctx)
		}
	}()
	return n
}

func (n *night) end() {
	n.stop()
	<-n.done
}

// renew keeps the duty. A database that does not answer is not a loss of it: the work asks the same database.
func (n *night) renew(ctx context.Context) {
	mine, err := n.duties.Duty(ctx, archiveDuty, n.cfg.Holder, 0, archiveLease)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = n.lost || err == nil && !mine
}

// look compares the lag of the consumers with that of the last look. A lag that is unknown does not grow.
func (n *night) look(ctx context.Context) {
	if n.cfg.Lag == nil {
		return
	}
	limited, cancel := context.WithTimeout(ctx, lagEvery/2) // Kafka may be slow, and the duty needs to be renewed
	defer cancel()
	lag, err := n.cfg.Lag(limited)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.growing = err == nil && n.seen && lag > n.lag && lag > lagSpared
	n.lag, n.seen = lag, err == nil
}

func (n *night) state() (lost, growing bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost, n.growing
}

// goOn returns why the archive has to stop now. It waits while the lag of the consumers grows.
func (n *night) goOn(ctx context.Context) error {
	paused := false
	for {
		lost, growing := n.state()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case lost:
			return errDutyLost
		case !n.cfg.Hours.Open(time.Now()):
			return errHoursOver
		case !growing && paused:
			return n.say(ctx, nightly.Working, "", "")
		case !growing:
			return nil
		}
		if !paused {
			if err := n.say(ctx, nightly.Waiting, "the consumers fall behind", "it continues once their lag grows no more"); err != nil {
				return err
			}
		}
		paused = true
		if idle(ctx, lagEvery) {
			return ctx.Err()
		}
	}
}

// work archives what is due. Outside of the quiet hours it finishes only the days that are out of the table, as they
// should not stay between table and archive.
func (n *night) work(ctx context.Context) error {
	now := time.Now()
	due, err := n.due(ctx, now)
	if err != nil {
		n.failed++
		n.cfg.Metrics.looked(n.note, true)
		return errors.Join(err, n.plan(ctx, nightly.Failed, err.Error(), hintOf(err)))
	}
	n.counted(due)
	err = n.pass(ctx, due)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the desk stops: that is no failure
	}
	if again, listed := n.due(ctx, now); listed == nil {
		due = again
		n.counted(due)
	}
	return n.conclude(ctx, err, len(due))
}

// counted notes which days are due.
func (n *night) counted(due []archive.Held) {
	n.note.Due, n.note.Oldest = len(due), ""
	days := map[string]bool{}
	for _, h := range due {
		days[h.Day.String()] = true
		if day := h.Day.String(); n.note.Oldest == "" || day < n.note.Oldest {
			n.note.Oldest = day
		}
	}
	n.note.Forget(func(r nightly.Result) bool { return r.Table == archive.LettersName || days[r.Day] })
	n.cfg.Metrics.looked(n.note, n.unaged)
}

// pass tries each day once, then the dead letters, then the storage classes.
func (n *night) pass(ctx context.Context, due []archive.Held) error {
	for _, h := range due {
		if h.Location != archive.Leaving {
			if err := n.goOn(ctx); err != nil {
				return err
			}
		}
		if err := n.say(ctx, nightly.Working, "", ""); err != nil {
			return err
		}
		if err := n.day(ctx, h.Day); err != nil {
			return err
		}
	}
	if err := n.goOn(ctx); err != nil {
		return err
	}
	if err := n.letters(ctx); err != nil {
		return err
	}
	return n.age(ctx)
}

// day archives a day. It returns an error only if the archive has to stop.
func (n *night) day(ctx context.Context, day archive.Day) error {
	done, err := n.days.Archive(ctx, day, func(archive.Step) error { return n.goOn(ctx) })
	if err == nil && done.Archive == "" {
		return nil // it is not in the table any more
	}
	r := nightly.Result{Table: "decision_logs", Day: day.String(), Archive: done.Archive, Rows: done.Rows, Bytes: done.Bytes, Dropped: done.Dropped}
	return n.ended(ctx, r, err)
}

// letters archives the dead letters that were closed before yesterday.
func (n *night) letters(ctx context.Context) error {
	days, err := n.days.LetterDays(ctx, archive.Day{Time: archive.DayOf(time.Now()).AddDate(0, 0, -1)})
	n.note.Forget(func(r nightly.Result) bool { return r.Table != archive.LettersName })
	if err != nil {
		return n.ended(ctx, nightly.Result{Table: archive.LettersName}, fmt.Errorf("look for dead letters to archive: %w", err))
	}
	for _, day := range days {
		if err := n.goOn(ctx); err != nil {
			return err
		}
		done, err := n.days.ArchiveLetters(ctx, day)
		r := nightly.Result{Table: archive.LettersName, Day: day.String(), Rows: done.Letters, Bytes: done.Bytes}
		if len(done.Archives) > 0 {
			r.Archive = done.Archives[len(done.Archives)-1]
		}
		if err := n.ended(ctx, r, err); err != nil {
			return err
		}
	}
	return nil
}

// age looks at the storage classes, once a night.
func (n *night) age(ctx context.Context) error {
	now := time.Now()
	if now.Before(n.note.AgedAt.Add(ageEvery)) {
		n.unaged = false // this desk or another one did it
		return nil
	}
	files, err := n.days.Age(ctx, func() error { return n.goOn(ctx) })
	if stop := (*pausedError)(nil); errors.As(err, &stop) || ctx.Err() != nil {
		return err
	}
	n.unaged = err != nil
	if err != nil {
		n.note.Aged = files
		n.tellAging(err)
		return fmt.Errorf("change storage classes: %w", err)
	}
	n.note.Aged, n.note.AgedAt = files, now.UTC().Truncate(time.Second)
	if files > 0 {
		n.log.Info().Int("files", files).Msg("storage classes changed")
	}
	return nil
}

// tellAging logs each file whose class was not changed. The next look tries them again.
func (n *night) tellAging(err error) {
	var aging *archive.AgingError
	if !errors.As(err, &aging) {
		return
	}
	for _, f := range aging.Files {
		n.log.Error().Err(f.Err).Str("file", f.File).Str("hint", hintOf(f.Err)).Msg("storage class not changed")
	}
	if more := aging.All - len(aging.Files); more > 0 {
		n.log.Error().Int("files", more).Msg("further storage classes not changed")
	}
}

// ended notes the result of a day. It returns the errors that end the pass.
func (n *night) ended(ctx context.Context, r nightly.Result, err error) error {
	stop := (*pausedError)(nil)
	if ctx.Err() != nil || errors.As(err, &stop) {
		return err
	}
	r.At = time.Now().UTC().Truncate(time.Second)
	if err != nil {
		r.Why, r.Hint, r.Waits = err.Error(), hintOf(err), archive.Waits(err)
	}
	n.note.Add(r)
	n.cfg.Metrics.ended(r)
	n.cfg.Metrics.looked(n.note, n.unaged)
	switch {
	case err == nil:
		n.log.Info().Str("table", r.Table).Str("day", r.Day).Str("archive", r.Archive).Int64("rows", r.Rows).Int64("bytes", r.Bytes).Msg("day archived")
	case r.Waits:
		n.log.Info().Err(err).Str("table", r.Table).Str("day", r.Day).Str("hint", r.Hint).Msg("day not archived yet")
	default:
		n.bad++
		n.log.Error().Err(err).Str("table", r.Table).Str("day", r.Day).Str("hint", r.Hint).Msg("day not archived")
	}
	return n.keep(ctx)
}

// conclude notes how a pass ended, and when the next one begins.
func (n *night) conclude(ctx context.Context, err error, due int) error {
	failing := 0
	for _, r := range n.note.Open() {
		if !r.Waits {
			failing++
		}
	}
	stop := (*pausedError)(nil)
	paused := errors.As(err, &stop)
	switch {
	case n.bad > 0 || err != nil && !paused:
		n.failed++
	case !paused:
		n.failed = 0
	}
	switch {
	case paused && stop == errDutyLost:
		return nil // the other desk has the note
	case paused && due == 0 && failing == 0 && !n.unaged:
		return n.plan(ctx, nightly.Idle, "", "")
	case paused && stop == errHoursOver:
		return n.plan(ctx, nightly.Waiting, stop.why, "they begin at "+n.cfg.Hours.Next(time.Now()).UTC().Format("2006-01-02 15:04Z"))
	case paused:
		return n.plan(ctx, nightly.Waiting, stop.why, "")
	case err != nil:
		n.cfg.Metrics.looked(n.note, true)
		return errors.Join(err, n.plan(ctx, nightly.Failed, err.Error(), hintOf(err)))
	case failing > 0:
		return n.plan(ctx, nightly.Failed, fmt.Sprintf("%d not archived at the last try", failing), "")
	case due > 0:
		return n.plan(ctx, nightly.Waiting, "the days that are left are not ready", "")
	}
	return n.plan(ctx, nightly.Idle, "", "")
}

// hintOf returns the advice of an error, or nothing.
func hintOf(err error) string {
	var advised interface{ Hint() string }
	if errors.As(err, &advised) {
		return advised.Hint()
	}
	return ""
}
