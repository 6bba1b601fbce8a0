package pgmodel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/record/decision"
	"docket/internal/testkit/pgmodel"
)

const (
	stored      = pipeline.Stored
	present     = pipeline.Present
	conflicting = pipeline.Conflicting
)

var noon = time.Date(2024, 5, 1, 12, 0, 0, 123456000, time.UTC)

func same(t testing.TB, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("-want +got:\n%s", diff)
	}
}

func row(id string, raw string) pipeline.Row {
	return pipeline.Row{Topic: "decision-logs", Partition: 3, Offset: 42, Index: 1,
		Log: &decision.Log{ID: id, Time: noon, Raw: []byte(raw)}}
}

// newServer is a server that fails the test over a statement that it does not know.
func newServer(t testing.TB) *pgmodel.Server {
	t.Helper()
	s := pgmodel.New(pgmodel.Config{Unknown: func(sql string) { t.Errorf("the model does not know %q", sql) }})
	t.Cleanup(s.Close)
	return s
}

func open(t testing.TB, s *pgmodel.Server) *store.Store {
	t.Helper()
	db, err := store.Open(db.Config{URL: "postgres://docket@db:5432/docket?sslmode=disable", Dialer: s.Dial}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func save(t testing.TB, db *store.Store, rows ...pipeline.Row) []pipeline.Outcome {
	t.Helper()
	out, err := db.Store(context.Background(), rows, false)
	if err != nil {
		t.Fatalf("store: %v", err)
	}
	return out
}

func TestStore_InVirtualTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		db := open(t, s)
		begin := time.Now()
		same(t, save(t, db, row("b", `{"v":1}`), row("a", `{"v":2}`), row("b", `{"v":3}`)), []pipeline.Outcome{stored, stored, conflicting})
		same(t, save(t, db, row("b", `{"v":1}`), row("a", `{"v":3}`)), []pipeline.Outcome{present, conflicting})
		if err := db.Probe(t.Context(), noon); err != nil {
			t.Fatal(err)
		}
		rows := s.Rows()
		same(t, []any{len(rows), rows[0].DecisionID, string(rows[1].Raw), rows[1].Topic, rows[1].Offset, rows[1].Commit, rows[1].At, rows[1].Time},
			[]any{2, "a", `{"v":1}`, "decision-logs", int64(42), int64(1), begin, noon})
		same(t, time.Since(begin), time.Duration(0))
	})
}
