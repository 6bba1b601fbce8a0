//go:build integration

package historydb_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

func TestFollow_LateCommitOnce(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	db := open(t, pg.URL, 20*time.Second)
	save(t, db, row("there", noon, `{"n":1}`))
	follow := historydb.NewReader(db.DB)
	var tail reader.Tail
	next := func(limit int) (ids []string) {
		t.Helper()
		decisions, on, err := follow.Follow(t.Context(), reader.Filter{}, tail, limit, true)
		if err != nil {
			t.Fatal(err)
		}
		tail = on
		for _, d := range decisions {
			ids = append(ids, d.ID)
		}
		return ids
	}
	if got := next(10); got != nil {
		t.Errorf("at the start: %v", got)
	}
	late, err := pgxConnect(t, pg.URL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = late.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := late.Exec(t.Context(), `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('late', now(), '{}', 't', 1, 1, 0)`); err != nil {
		t.Fatal(err)
	}
	save(t, db, row("a", noon, `{"n":1}`), row("b", noon, `{"n":1}`))
	save(t, db, row("c", noon.Add(-time.Hour), `{"n":1}`))
	same(t, next(2), []string{"a", "b"})
	same(t, next(10), []string{"c"})
	for range 3 {
		same(t, next(10), []string(nil))
	}
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(t, db, row("d", noon, `{"n":1}`))
	same(t, next(10), []string{"late", "d"})
	for range 3 {
		same(t, next(10), []string(nil))
	}
}

// TestFollow_PageEndsWithinAMoment: the rows of a transaction have one stored_at, and more of them than
// are asked for at once.
func TestFollow_PageEndsWithinAMoment(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	db := open(t, pg.URL, 20*time.Second)
	var rows []pipeline.Row
	var want []string
	for i := range 9 {
		want = append(want, fmt.Sprint("d-", i))
		rows = append(rows, row(want[i], noon, `{"n":1}`))
	}
	save(t, db, rows...)
	pg.Exec(t, `UPDATE decision_logs SET stored_at = date_trunc('hour', now()) - interval '2 hours'`) // no transaction is waited for so long
	tail, err := historydb.NewReader(db.DB).ParseTail("1s" + strconv.FormatInt(time.Now().Add(-5*time.Hour).UnixMicro(), 36))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 8 {
		decisions, on, err := historydb.NewReader(db.DB).Follow(t.Context(), reader.Filter{}, tail, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		tail = on
		for _, d := range decisions {
			got = append(got, d.ID)
		}
	}
	same(t, got, want)
}
