//go:build integration

package postgres_test

import (
	"context"
	"errors"
	"testing"

	"docket/internal/pgtest"
	"docket/internal/postgres"
)

var errKilled = errors.New("killed")

// killedAt ends a migration of the large way after a step.
func killedAt(t *testing.T, db *postgres.DB, at string) {
	t.Helper()
	err := postgres.Partition(context.Background(), db, 0, false, func(step string) error {
		if step == at {
			return errKilled
		}
		return nil
	})
	if !errors.Is(err, errKilled) {
		t.Fatalf("got %v", err)
	}
}

// wantObstacle runs the migration, which must refuse.
func wantObstacle(t *testing.T, db *postgres.DB, small int) {
	t.Helper()
	err := postgres.Partition(context.Background(), db, small, false, onward)
	var met *postgres.ObstacleError
	if !errors.As(err, &met) {
		t.Fatalf("got %v", err)
	}
}

// What a refused migration had prepared before it was killed does not outlast the refusal: the cut would come nearer
// until the table takes nothing.
func TestAnObstacleBetweenTwoRunsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"cut", "strays", "validated"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			db := open(t, d.URL, 0)
			store(t, db, row("far", day(400), `{}`))
			killedAt(t, db, at)
			d.Exec(t, `CREATE VIEW odd AS SELECT path FROM decision_logs`)
			wantObstacle(t, db, 0)
			same(t, d.Count(t), 1)
			store(t, db, row("a", day(300), `{}`))
		})
	}
}
