package pgmodel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"docket/internal/pgmodel"
	"docket/internal/pipeline"
	"docket/internal/postgres"
)

// What a batch costs, in statements. More of them on the way that every batch goes would be paid for each time.
func TestEachWayOfStoringHasSoManyStatements(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *pgmodel.Server, db *postgres.DB) {
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
		// read is a batch as it comes from the topic, and not from a copy of it.
		read := func(rows []pipeline.Row) []pipeline.Row {
			for i := range rows {
				rows[i].Appended = time.Now().Add(-time.Second)
			}
			return rows
		}
		moved := func(rows []pipeline.Row) []pipeline.Row {
			for i := range rows {
				rows[i].Offset += 1000
			}
			return rows
		}
		for _, step := range []struct {
			what string
			rows []pipeline.Row
			want string
		}{
			{"all new", batch(0, 100), "begin, copy, table, commit"},
			{"the first that is there", batch(0, 100), "begin, copy 23505, rollback, begin, insert, compare, confirm, commit"},
			{"all there", batch(0, 100), "begin, compare, confirm, commit"},
			{"some there", batch(50, 150), "begin, compare, copy, table, commit"},
			{"none there", batch(150, 250), "begin, compare, copy, table, commit"},
			{"all new again", batch(250, 350), "begin, copy, table, commit"},
			{"all there by their place", read(batch(0, 100)), "begin, copy 23505, rollback, begin, place, confirm, commit"},
			{"all there by their place again", read(batch(0, 100)), "begin, place, confirm, commit"},
			{"some there by their place", read(batch(300, 400)), "begin, place, copy, table, commit"},
			{"some there at another", append(read(batch(300, 350)), moved(read(batch(350, 410)))...), "begin, place, compare, copy, table, commit"},
			{"some there as copies", append(read(batch(300, 350)), batch(350, 410)...), "begin, place, compare, confirm, commit"},
			{"all new from the topic", read(batch(410, 420)), "begin, place, copy, table, commit"},
			{"all new from the topic again, and doubles", append(read(batch(420, 430)), moved(read(batch(420, 430)))...), "begin, copy, compare, table, commit"},
			{"doubles", append(batch(430, 440), batch(430, 440)...), "begin, copy, compare, table, commit"},
		} {
			said = nil
			store(t, db, step.rows...)
			if got := strings.Join(said, ", "); got != step.want {
				t.Errorf("%s: %s, want %s", step.what, got, step.want)
			}
		}
		s.RefuseCopy()
		store(t, db, batch(500, 510)...)
		said = nil
		store(t, db, batch(510, 520)...)
		if got := strings.Join(said, ", "); got != "begin, insert, commit" {
			t.Errorf("without COPY: %s", got)
		}
	})
}
