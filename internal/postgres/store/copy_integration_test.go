//go:build integration

package store_test

import (
	"context"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/testkit/pgtest"
)

// The binary form of a value does not say of which type it is: into another column it would go as something else.
func TestCopy_ColumnOfAnotherType(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"numeric", "double precision", "integer"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, `ALTER TABLE decision_logs ALTER COLUMN req_id TYPE `+kind)
			db := open(t, d.URL, 0)
			for _, id := range []string{"a", "b"} {
				same(t, save(t, db, full(id, noon, 1)), []pipeline.Outcome{stored})
			}
			var sum string
			d.Query(t, `SELECT sum(req_id)::int::text FROM decision_logs`, &sum)
			same(t, sum, "154")
			if err := db.Probe(context.Background(), noon); err != nil {
				t.Fatal(err)
			}
		})
	}
	// A reader that wants more bytes than ours have says 08P01, and not that the form is wrong.
	for _, wide := range []string{"source_partition TYPE bigint", "source_index TYPE numeric", "req_id TYPE numeric"} {
		t.Run(wide, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			d.Exec(t, `ALTER TABLE decision_logs ALTER COLUMN `+wide)
			db := open(t, d.URL, 0)
			r := full("a", noon, 1)
			r.Log.ReqID.V = 1 << 48
			same(t, save(t, db, r), []pipeline.Outcome{stored})
			same(t, save(t, db, r), []pipeline.Outcome{present})
			if err := open(t, d.URL, 0).Probe(context.Background(), noon); err != nil {
				t.Fatal(err)
			}
		})
	}
	t.Run("text for jsonb", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.Exec(t, `ALTER TABLE decision_logs ALTER COLUMN raw TYPE text`)
		db := open(t, d.URL, 0)
		same(t, save(t, db, full("a", noon, 1)), []pipeline.Outcome{stored})
		var first string
		d.Query(t, `SELECT left(raw, 1) FROM decision_logs`, &first)
		same(t, first, "{")
	})
}

// A row that is there under another identity than its own is not stored: it would never be found again.
func TestCopy_TableThatRoundsTimes(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	d.Exec(t, `ALTER TABLE decision_logs ALTER COLUMN ts TYPE timestamptz(3)`)
	db := open(t, d.URL, 0)
	code(t, db, "swallowed", row("a", noon.Add(time.Microsecond), `{}`))
	same(t, d.Count(t), 0)
	// It rounds every time, so the table is at fault and no record is.
	if err := db.Probe(context.Background(), noon.Add(time.Microsecond)); err == nil {
		t.Error("the probe passes")
	}
}

// COPY passes rules by, and does not know views.
func TestCopy_RulesAndViews(t *testing.T) {
	t.Parallel()
	t.Run("rule", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.Exec(t, `CREATE RULE swallow AS ON INSERT TO decision_logs DO INSTEAD NOTHING`)
		db := open(t, d.URL, 0)
		code(t, db, "0A000", row("a", noon, `{}`))
		same(t, d.Count(t), 0)
	})
	t.Run("view", func(t *testing.T) {
		t.Parallel()
		d := pgtest.New(t)
		d.Exec(t, `ALTER TABLE decision_logs RENAME TO was; CREATE VIEW decision_logs AS SELECT * FROM was;
			ALTER VIEW decision_logs ALTER COLUMN stored_at SET DEFAULT now()`)
		db := open(t, d.URL, 0)
		same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
		same(t, save(t, db, row("a", noon, `{}`), row("b", noon, `{}`)), []pipeline.Outcome{present, stored})
	})
}

// Only an index on exactly the identity keeps doubles out, in either order of its columns.
func TestCopy_IdentityIndexIsKnown(t *testing.T) {
	t.Parallel()
	for index, keeps := range map[string]bool{
		"(ts, decision_id)":                                  true,
		"(decision_id, ts) INCLUDE (path)":                   true,
		"(decision_id, ts) WHERE path IS NOT NULL":           false,
		"(decision_id, ts, path)":                            false,
		"(decision_id, stored_at) INCLUDE (ts)":              false,
		"(decision_id, ((ts AT TIME ZONE 'UTC')::date), ts)": false,
		"(decision_id, decision_id)":                         false,
		"(decision_id)":                                      false,
	} {
		t.Run(index, func(t *testing.T) {
			t.Parallel()
			d := pgtest.NewPlain(t)
			d.Exec(t, `ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey; CREATE UNIQUE INDEX other ON decision_logs `+index)
			db := open(t, d.URL, 0)
			if !keeps {
				code(t, db, "42P10", row("a", noon, `{}`))
				same(t, d.Count(t), 0)
				return
			}
			same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{stored})
			same(t, save(t, db, row("a", noon, `{}`)), []pipeline.Outcome{present})
		})
	}
}

// A unique index of somebody else's is an error, and its rows are not taken for ours.
func TestCopy_AnotherUniqueIndex(t *testing.T) {
	t.Parallel()
	d := pgtest.NewPlain(t)
	d.Exec(t, `CREATE UNIQUE INDEX other ON decision_logs (source_offset)`)
	db := open(t, d.URL, 0)
	save(t, db, row("a", noon, `{}`))
	code(t, db, "23505", row("b", noon, `{}`))
	same(t, d.Count(t), 1)
}

// An identity that is checked later lets COPY store doubles, and ON CONFLICT refuses it.
func TestCopy_DeferrableIdentity(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER TABLE decision_logs DROP CONSTRAINT decision_logs_pkey, ADD PRIMARY KEY (decision_id, ts) DEFERRABLE`)
	db := open(t, d.URL, 0)
	out, err := db.Store(t.Context(), []pipeline.Row{row("a", noon, `{}`)}, false)
	wantCode(t, out, err, "42P10")
	wantCode(t, nil, db.Probe(t.Context(), noon), "42P10") // the probe takes the same way as Store, and gives the same answer
	same(t, d.Count(t), 0)
}
