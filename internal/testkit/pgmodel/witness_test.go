package pgmodel_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

// heard is on which sessions what was said, in order, each once.
type heard struct{ dialled, kept, taken []uint32 }

func listen(s *pgmodel.Server) *heard {
	h := &heard{}
	s.Observe(func(e pgmodel.Event) {
		note := func(list *[]uint32) {
			if !slices.Contains(*list, e.Session) {
				*list = append(*list, e.Session)
			}
		}
		switch {
		case e.Point == pgmodel.Startup:
			note(&h.dialled)
		case e.Point == pgmodel.Commit && e.Applied && len(e.Rows) > 0:
			note(&h.kept)
		case e.Point == pgmodel.Insert && len(e.Rows) > 0 && e.Rows[0].Offset == store.ProbeOffset:
			note(&h.taken)
		}
	})
	return h
}

func again(t *testing.T, db *store.Store) {
	t.Helper()
	refused, err := db.Refusals(context.Background(), []pipeline.Row{row("odd", `{}`)}, noon)
	if err != nil || refused[0] == nil {
		t.Fatalf("refused %v: %v", refused, err)
	}
}

func odd(s *pgmodel.Server) {
	s.Constrain(pgmodel.Constraint{Name: "odd", Columns: []string{"decision_id"}, Refuses: func(r pgmodel.Row) bool { return r.DecisionID == "odd" }})
}

func TestWitness_DialsSeldom(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		odd(s)
		h := listen(s)
		for i := range 50 { // 25 s
			save(t, db, row(string(rune('a'+i)), `{}`))
			again(t, db)
			time.Sleep(500 * time.Millisecond)
		}
		for _, session := range h.taken {
			if slices.Contains(h.kept, session) {
				t.Errorf("session %d both stored and was asked on", session)
			}
		}
		if n := len(h.taken); n != 3 { // for 10 s each
			t.Errorf("asked on %d sessions", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := s.Sessions(); n != 1 {
			t.Errorf("%d sessions are left, of which one stores", n)
		}
	})
}

func TestWitness_IsTheConnectionOfTheProbe(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		odd(s)
		h := listen(s)
		for n := 1; n <= 6; n++ {
			if err := db.Probe(context.Background(), noon); err != nil {
				t.Fatal(err)
			}
			if len(h.dialled) != n {
				t.Errorf("%d probes dialled %d times", n, len(h.dialled))
			}
		}
		again(t, db)
		if len(h.dialled) != 6 {
			t.Error("it was dialled for asking")
		}
		synctest.Wait()
		if n := s.Sessions(); n > 4 {
			t.Errorf("%d sessions are kept", n)
		}
		db.Close()
		synctest.Wait()
		if n := s.Sessions(); n != 0 {
			t.Errorf("%d sessions outlive the end", n)
		}
	})
}

func TestWitness_LostBlamesNobody(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		odd(s)
		again(t, db)
		h := listen(s)
		s.Kill()
		synctest.Wait()
		again(t, db)
		if len(h.dialled) != 1 {
			t.Errorf("dialled %d times", len(h.dialled))
		}
	})
}

func TestWitness_NotUsedAfterAnError(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		odd(s)
		again(t, db)
		heal := s.Inject(pgmodel.Fault{Point: pgmodel.Ask, Count: -1, SQLSTATE: "40001"})
		h := listen(s)
		_, err := db.Refusals(context.Background(), []pipeline.Row{row("odd", `{}`)}, noon)
		wantCode(t, err, "40001")
		if len(h.dialled) != 0 {
			t.Error("an answer is not to be asked for again")
		}
		heal()
		again(t, db)
		if len(h.dialled) != 1 {
			t.Errorf("dialled %d times", len(h.dialled))
		}
	})
}

// TestWitness_AnswersOfALostOneAreDropped has the constraint go while the connection is lost, before the probe was through.
func TestWitness_AnswersOfALostOneAreDropped(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		var gone atomic.Bool
		s.Constrain(pgmodel.Constraint{Name: "odd", Columns: []string{"decision_id"}, Refuses: func(r pgmodel.Row) bool {
			return r.DecisionID == "odd" && !gone.Load()
		}})
		again(t, db)
		s.Observe(func(e pgmodel.Event) {
			if e.Cut {
				gone.Store(true)
			}
		})
		s.Inject(pgmodel.Fault{Point: pgmodel.Constraints, Cut: true})
		refused, err := db.Refusals(context.Background(), []pipeline.Row{row("odd", `{}`)}, noon)
		if err != nil || refused[0] != nil || !gone.Load() {
			t.Fatalf("refused %v: %v", refused, err)
		}
	})
}

// TestProbe_ComparesWithoutCopy has a table that takes good rows, and cannot be looked into: a row that is there
// already would be refused for it, alone and while the probe passes.
func TestProbe_ComparesWithoutCopy(t *testing.T) {
	t.Parallel()
	for _, point := range []pgmodel.Point{pgmodel.Known, pgmodel.Compare} {
		within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
			s.RefuseCopy()
			save(t, db, row("a", `{}`)) // from here on by INSERT
			heal := s.Inject(pgmodel.Fault{Point: point, Count: -1, SQLSTATE: "42501"})
			wantCode(t, db.Probe(context.Background(), noon), "42501")
			heal()
			if err := db.Probe(context.Background(), noon); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestWitness_EndsWithAFailover has the pool meet a node that takes no writes any more.
func TestWitness_EndsWithAFailover(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		odd(s)
		save(t, db, row("warm", `{}`))
		again(t, db)
		s.Inject(pgmodel.Fault{Point: pgmodel.Insert, SQLSTATE: "25006"})
		_, err := db.Store(context.Background(), []pipeline.Row{row("a", `{}`)}, false)
		wantCode(t, err, "25006")
		synctest.Wait()
		if n := s.Sessions(); n != 0 {
			t.Errorf("%d sessions are left of those to the old node", n)
		}
		h := listen(s)
		again(t, db)
		if len(h.dialled) != 1 {
			t.Errorf("dialled %d times to ask", len(h.dialled))
		}
	})
}
