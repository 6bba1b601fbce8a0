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
			{"all new", batch(0, 100), "begin, copy, table, commit"},
			{"the first that is there", batch(0, 100), "begin, copy 23505, rollback, begin, known, confirm, commit"},
			{"all there", batch(0, 100), "begin, known, confirm, commit"},
			{"all there in other bytes", spaced(batch(0, 100)), "begin, known, compare, confirm, commit"},
			{"some there", batch(50, 150), "begin, known, copy, table, commit"},
			{"some there, some of them in other bytes", append(batch(140, 145), spaced(batch(145, 155))...), "begin, known, compare, copy, table, commit"},
			{"none there", batch(155, 250), "begin, known, copy, table, commit"},
			{"all new again", batch(250, 350), "begin, copy, table, commit"},
			{"doubles", append(batch(430, 440), batch(430, 440)...), "begin, copy, known, table, commit"},
			{"doubles in other bytes", append(batch(440, 450), spaced(batch(440, 450))...), "begin, copy, known, compare, table, commit"},
		} {
			said = nil
			save(t, db, step.rows...)
			if got := strings.Join(said, ", "); got != step.want {
				t.Errorf("%s: %s, want %s", step.what, got, step.want)
			}
		}
		s.RefuseCopy()
		save(t, db, batch(500, 510)...)
		said = nil
		save(t, db, batch(510, 520)...)
		if got := strings.Join(said, ", "); got != "begin, insert, commit" {
			t.Errorf("without COPY: %s", got)
		}
	})
}
