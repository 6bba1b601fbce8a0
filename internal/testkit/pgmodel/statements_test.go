package pgmodel_test

import (
	"fmt"
	"strings"
	"testing"

	"docket/internal/consumer/pipeline"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgmodel"
)

// These are the statements of a batch. An additional one would cost time in every batch.
func TestStore_NumberOfStatements(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *store.Store) {
		var said []string
		s.Observe(func(e pgmodel.Event) {
			if e.Point == pgmodel.Startup || e.Point == pgmodel.Check || e.Point == pgmodel.Limits {
				return
			}
			what := string(e.Point)
			if e.Copied {
				what = "copy"
			}
			said = append(said, what+strings.TrimRight(" "+e.SQLSTATE, " "))
		})
		batch := func(from, to int) (rows []pipeline.Row) {
			for i := from; i < to; i++ {
				rows = append(rows, row(fmt.Sprint("id-", i), `{}`))
			}
			return rows
		}
		// spaced is the same in other bytes.
		spaced := func(rows []pipeline.Row) []pipeline.Row {
			for i := range rows {
				rows[i].Log.Raw = append([]byte(" "), rows[i].Log.Raw...)
			}
			return rows
		}
		for _, step := range []struct {
			what string
			rows []pipeline.Row
			want string
		}{
			{"all new", batch(0, 100), "begin, copy, table, triggers, commit"},
			{"the first that is there", batch(0, 100), "begin, copy 23505, rollback, begin, known, confirm, commit"},
			{"all there", batch(0, 100), "begin, known, confirm, commit"},
			{"all there in other bytes", spaced(batch(0, 100)), "begin, known, compare, confirm, commit"},
			{"some there", batch(50, 150), "begin, known, copy, table, triggers, commit"},
			{"some there, some of them in other bytes", append(batch(140, 145), spaced(batch(145, 155))...), "begin, known, compare, copy, table, triggers, commit"},
			{"none there", batch(155, 250), "begin, known, copy, table, triggers, commit"},
			{"all new again", batch(250, 350), "begin, copy, table, triggers, commit"},
			{"doubles", append(batch(430, 440), batch(430, 440)...), "begin, copy, known, table, triggers, commit"},
			{"doubles in other bytes", append(batch(440, 450), spaced(batch(440, 450))...), "begin, copy, known, compare, table, triggers, commit"},
		} {
			said = nil
			save(t, db, step.rows...)
			if got := strings.Join(said, ", "); got != step.want {
				t.Errorf("%s: %s, want %s", step.what, got, step.want)
			}
		}
		drop := s.Remove(func(pgmodel.Row) bool { return false })
		for i, want := range []string{
			"begin, copy, table, triggers 2201F, rollback, begin, copy, triggers, constraints, known, table, commit",
			"begin, copy, triggers, constraints, known, table, commit",
			"begin, copy, triggers, table, triggers, commit", // the trigger is gone
			"begin, copy, table, triggers, commit",
		} {
			if i == 2 {
				drop()
			}
			said = nil
			save(t, db, batch(600+10*i, 610+10*i)...)
			same(t, strings.Join(said, ", "), want)
		}
		s.RefuseCopy()
		save(t, db, batch(500, 510)...)
		said = nil
		save(t, db, batch(510, 520)...)
		if got := strings.Join(said, ", "); got != "begin, insert, triggers, commit" {
			t.Errorf("without COPY: %s", got)
		}
	})
}
