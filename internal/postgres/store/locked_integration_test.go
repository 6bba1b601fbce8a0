//go:build integration

package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/testkit/pgtest"
)

// Somebody makes an index on an old day: late decisions of it wait and spend no attempt, all others are stored.
func TestLocked_OneDay(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	db := open(t, d.URL, 3*time.Second)
	conn, err := pgx.Connect(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `BEGIN; LOCK TABLE decision_logs_before IN SHARE MODE`); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	c := carry(t, db, false, 1, []*kgo.Record{
		sourceRecord(1, event("a", now, nil)), sourceRecord(2, event("late", noon, nil)), sourceRecord(3, event("b", now, nil))})
	same(t, c.homes, []string{"1 row", "2 parked 55P03", "3 row"})
	c = carry(t, db, true, 1, []*kgo.Record{
		parkedRecord(11, 0, event("c", now, nil)), parkedRecord(12, 4, event("late", noon, nil)), parkedRecord(13, 0, event("e", now, nil))})
	same(t, c.homes, []string{"11 row", "12 parked 55P03", "13 row"})
	same(t, c.attempts(), []string{"4"})
}
