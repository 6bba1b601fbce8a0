package worker

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/history/archive"
)

// A database that does not answer says nothing of another desk. So no alert about a failure or a backlog begins again.
func TestArchivingMetrics_DutyUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay), newAlertLedger()
		d.wrong[aDay(oldDay)] = errors.New("odd")
		a := runArchiving(t, d, b, "a", "", nil)
		defer a.stop()
		pass(time.Minute)
		behind := a.metric("docket_archive_behind_seconds", "")
		check := func(when string) {
			t.Helper()
			if failed, due, now := a.metric("docket_archive_failed", ""), a.metric("docket_archive_due_days", ""), a.metric("docket_archive_behind_seconds", ""); failed != 1 || due != 1 || now < behind {
				t.Errorf("%s: %v failed, %v due, %v s behind; it was %v s", when, failed, due, now, behind)
			}
		}
		check("at first")
		b.set(func() { b.err = errors.New("away") })
		pass(time.Hour)
		check("while the database is away")
		b.set(func() { b.err = nil })
		pass(time.Minute)
		check("afterwards")
		b.set(func() { b.duties[archiveDuty] = alertDuty{holder: "b", until: time.Now().Add(time.Hour)} })
		pass(time.Minute)
		if failed := a.metric("docket_archive_failed", ""); failed != 0 {
			t.Errorf("%v failed at a desk without the duty", failed)
		}
	})
}

// A storage class that could not be changed stays a failure until the next try, which may be a night later.
func TestArchivingMetrics_ClassesAfterTheHours(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, b := newDayTable(oldDay), newAlertLedger()
		d.aging = &archive.ShelfError{Err: errors.New("no such class"), Do: "name another"}
		a := runArchiving(t, d, b, "a", "01:00-02:00", nil)
		defer a.stop()
		for hours := range 12 {
			pass(time.Hour)
			if failed := a.metric("docket_archive_failed", ""); hours >= 2 && failed != 1 {
				t.Errorf("after %d hours %v failed", hours+1, failed)
			}
		}
		d.set(func() { d.aging = nil })
		pass(24 * time.Hour)
		if failed := a.metric("docket_archive_failed", ""); failed != 0 || len(d.gone()) != 1 {
			t.Errorf("after the next night %v failed, dropped %q", failed, d.gone())
		}
	})
}
