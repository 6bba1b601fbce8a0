//go:build integration

package ledgerdb_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

func TestJob_OnlyItsOwnerMovesIt(t *testing.T) {
	t.Parallel()
	m := newModelled(t, 40, 9)
	ctx, f, ann := t.Context(), ledger.Filter{Path: "a/b"}, ledger.Actor{Name: "ann"}
	for _, wrong := range []ledger.Job{{Act: ledger.Retried, Reason: "so"}, {Act: ledger.Retried, Operator: "ann"}, {Act: ledger.Died, Operator: "ann", Reason: "so"},
		{Act: ledger.Retried, Operator: "ann", Reason: "so", Rate: -1}, {Act: ledger.Retried, Operator: "ann", Reason: "so", Filter: ledger.Filter{States: []ledger.State{ledger.Resolved}}}} {
		var invalid *ledger.InvalidError
		if _, err := m.CreateJob(ctx, wrong); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	if _, err := m.TakeJob(ctx, "d1", time.Minute); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	made, err := m.CreateJob(ctx, ledger.Job{Act: ledger.Retried, Filter: f, Rate: 2.5, Limit: 7, Operator: "ann", Reason: "mended"})
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Job{ID: made.ID, Act: ledger.Retried, Filter: f, Rate: 2.5, Limit: 7, State: ledger.JobWaiting, Operator: "ann", Reason: "mended", CreatedAt: made.CreatedAt}
	open := f
	open.States = []ledger.State{ledger.Pending, ledger.Failed}
	want.Matched = int64(len(m.chosen(open)))
	same(t, made, want)
	again, err := m.Job(ctx, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, want)

	step := func(j ledger.Job, err error) ledger.Job {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	if j := step(m.TakeJob(ctx, "d1", time.Hour)); j.State != ledger.JobRunning || j.Owner != "d1" || j.StartedAt.IsZero() {
		t.Fatalf("%+v", j)
	}
	if _, err := m.TakeJob(ctx, "d2", time.Hour); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatalf("taken from who has it: %v", err)
	}
	if _, err := m.KeepJob(ctx, made.ID, "d2", "", time.Hour); !errors.Is(err, ledger.ErrLost) {
		t.Fatal(err)
	}
	step(m.KeepJob(ctx, made.ID, "d1", "at it", -time.Second)) // the lease has ended
	if j := step(m.TakeJob(ctx, "d2", time.Hour)); j.Owner != "d2" || j.Note != "at it" {
		t.Fatalf("%+v", j)
	}
	if err := m.EndJob(ctx, made.ID, "d1", ledger.JobDone, ""); !errors.Is(err, ledger.ErrLost) {
		t.Fatal(err)
	}
	if j := step(m.StopJob(ctx, made.ID, "not today", ann)); j.State != ledger.JobStopped || j.StoppedBy != "ann" || j.Note != "not today" || j.EndedAt.IsZero() {
		t.Fatalf("%+v", j)
	}
	if _, err := m.KeepJob(ctx, made.ID, "d2", "", time.Hour); !errors.Is(err, ledger.ErrLost) {
		t.Fatal(err)
	}
	if j := step(m.ResumeJob(ctx, made.ID, ledger.Actor{Name: "bob", Why: "it is out"})); j.State != ledger.JobWaiting || j.StoppedBy != "" || !j.EndedAt.IsZero() ||
		j.Reason != "mended; resumed by bob: it is out" {
		t.Fatalf("%+v", j)
	}
	step(m.TakeJob(ctx, "d3", time.Hour))
	m.db.Exec(t, `INSERT INTO dead_letter_outbox (dead_letter_id, topic, value_hash, actor, job_id, code)
		SELECT 'x' || i, 't', '', 'ann', $1, 'c' || i FROM generate_series(1, 5) i`, made.ID)
	m.db.Exec(t, `UPDATE dead_letter_outbox SET ended_at = now() - substr(code, 2)::int * interval '1 s',
		outcome = (ARRAY['stored', 'stored', 'dead', 'refused', 'withdrawn'])[substr(code, 2)::int] WHERE job_id = $1`, made.ID)
	if err := m.EndJob(ctx, made.ID, "d3", ledger.JobDone, "all of it"); err != nil {
		t.Fatal(err)
	}
	j := step(m.StopJob(ctx, made.ID, "late", ann))
	if j.State != ledger.JobDone || j.Stored != 2 || j.Dead != 1 || j.Refused != 2 || j.Note != "all of it" || j.StoppedBy != "" {
		t.Fatalf("%+v", j)
	}
	ends, err := m.FirstEnds(ctx, made.ID, 2)
	if err != nil || len(ends) != 2 || ends[0].Code != "c5" || ends[1].Outcome != ledger.SendingRefused {
		t.Fatalf("%+v, %v", ends, err)
	}
	if _, err := m.Job(ctx, made.ID+1); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	second := step(m.CreateJob(ctx, ledger.Job{Act: ledger.Closed, Operator: "ann", Reason: "so"}))
	if listed, err := m.ListJobs(ctx, 0, 1); err != nil || len(listed) != 1 || listed[0].ID != second.ID {
		t.Fatalf("%+v, %v", listed, err)
	}
}

func TestJob_OneOfManyTakesIt(t *testing.T) {
	t.Parallel()
	m := newModelled(t, 1, 9)
	if _, err := m.CreateJob(t.Context(), ledger.Job{Act: ledger.Retried, Operator: "ann", Reason: "so"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	taken := make(chan string, 8)
	for _, holder := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		wg.Go(func() {
			switch _, err := m.TakeJob(t.Context(), holder, time.Hour); {
			case err == nil:
				taken <- holder
			case !errors.Is(err, ledger.ErrNotFound):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(taken) != 1 {
		t.Fatalf("%d have it", len(taken))
	}
}

func TestShow_ByFirstCharacters(t *testing.T) {
	t.Parallel()
	m := newModelled(t, 30, 11)
	e := m.letters[0]
	got, err := m.Show(t.Context(), e.ID[:6])
	if err != nil || got.ID != e.ID || string(got.Value) != "v" || string(got.Key) != "k" || got.Cause != e.Cause {
		t.Fatalf("%+v, %v", got, err)
	}
	twin := e.ID[:63] + map[bool]string{true: "0", false: "1"}[e.ID[63] != '0']
	m.db.Exec(t, `INSERT INTO dead_letters (dead_letter_id, group_id, origin_topic, origin_partition, origin_offset, found_topic, found_partition, found_offset, found_at,
			message, first_failed_at, last_failed_at, changed_by, changed_act, why) SELECT $1, 1, 't', 0, 0, 't', 0, 0, now(), '', now(), now(), 'desk', 'entered', 'read'`, twin)
	for id, want := range map[string]error{e.ID[:63]: ledger.ErrAmbiguous, e.ID[:5]: ledger.ErrNotFound, "zzzzzz": ledger.ErrNotFound, "": ledger.ErrNotFound, e.ID + "0": ledger.ErrNotFound} {
		if _, err := m.Show(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if got, err := m.Show(t.Context(), twin); err != nil || got.Value != nil || got.Key != nil || got.Headers != nil {
		t.Errorf("%+v, %v", got, err)
	}
	m.db.Exec(t, `UPDATE dead_letters SET state = 'RESOLVED', changed_at = clock_timestamp(), changed_by = 'ann', changed_act = 'closed', why = 'twice' WHERE dead_letter_id = $1`, twin)
	m.db.Exec(t, `CREATE OR REPLACE FUNCTION dead_letters_keep() RETURNS interval LANGUAGE sql STABLE AS $$ SELECT interval '0' $$`)
	m.db.Exec(t, `DELETE FROM dead_letters WHERE dead_letter_id = $1`, twin)
	audit, sendings, err := m.History(t.Context(), twin)
	if err != nil || len(audit) != 3 || len(sendings) != 0 || audit[1].By != "ann" || audit[1].Why != "twice" || audit[2].Act != ledger.Removed {
		t.Fatalf("%+v, %+v, %v", audit, sendings, err)
	}
	if _, _, err := m.History(t.Context(), "none"); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
}
