//go:build integration

package historydb_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestBegins_WhateverTheOrderOfIDs looks for ids that begin alike in every order that a server may have. In some they are apart, as with aa
// in Danish and with digits in Czech. They are found, or the answer asks for the whole id.
func TestBegins_WhateverTheOrderOfIDs(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, order := range []struct {
		name, collation string
		whole           bool // ids may have to be whole
	}{
		{"C", `"C"`, false}, {"English", `"en-x-icu"`, false}, {"Danish", `"da-x-icu"`, true}, {"Czech", `"cs-x-icu"`, false}, {"numbers", "numbers", true},
	} {
		t.Run(order.name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			db := pgtest.NewPlain(t)
			var icu bool
			if db.Query(t, `SELECT EXISTS (SELECT FROM pg_collation WHERE collname = 'da-x-icu')`, &icu); !icu && order.name != "C" {
				t.Log("this server has no ICU")
				return
			}
			if order.name == "numbers" {
				db.Exec(t, `CREATE COLLATION numbers (provider = icu, locale = 'en-u-kn-true')`)
			}
			db.Exec(t, `ALTER TABLE decision_logs ALTER decision_id TYPE text COLLATE `+order.collation)
			ids := map[string]bool{}
			for range 3000 {
				ids[word(random, 6+random.IntN(6))] = true
			}
			all := slices.Sorted(maps.Keys(ids))
			db.Exec(t, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
				SELECT id, '2026-11-21T00:00:00Z'::timestamptz + n * interval '1 hour', '{}', 't', 0, 0, 0
				  FROM unnest('{`+strings.Join(all, ",")+`}'::text[]) AS id, generate_series(0, length(id) % 3) AS n; ANALYZE decision_logs`)
			r := historydb.NewReader(open(t, db.URL, time.Minute).DB).Patient()
			asked := 0
			for range 100 {
				prefix := all[random.IntN(len(all))]
				prefix = prefix[:1+random.IntN(len(prefix))]
				var want []string
				for _, id := range all {
					if strings.HasPrefix(id, prefix) {
						want = append(want, id)
					}
				}
				found, err := r.Begins(t.Context(), prefix, 1000)
				if errors.Is(err, reader.ErrWhole) && (order.whole || strings.Trim(prefix, "-z9") == "" && order.name != "C") {
					continue // nothing is known to be behind them
				}
				if err != nil {
					t.Fatalf("%q: %v", prefix, err)
				}
				asked++
				var got []string
				for _, d := range found {
					if got = append(got, d.ID); d.Time.Hour() != 0 || d.Raw != nil {
						t.Errorf("%s at %v is not its oldest, or has its payload", d.ID, d.Time)
					}
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("%q finds %q, want %q", prefix, got, want)
				}
				if some, err := r.Begins(t.Context(), prefix, 2); err != nil || len(some) != min(2, len(want)) {
					t.Errorf("%q: %d of at most two, %v", prefix, len(some), err)
				}
			}
			if asked < 20 {
				t.Errorf("%d were answered", asked)
			}
		})
	}
}

// word is of few letters, so that many begin alike, and of such as are out of order somewhere.
func word(random *rand.Rand, n int) string {
	const letters = "aaA019-z"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[random.IntN(len(letters))]
	}
	return string(b)
}

// TestNamed_OnTheTable: over the days of the table, ids are found by their beginning through the primary key of each partition.
func TestNamed_OnTheTable(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool := open(t, db.URL, time.Minute)
	rows := logged(t)
	if _, err := pool.Store(t.Context(), rows, false); err != nil {
		t.Fatal(err)
	}
	r := historydb.NewReader(pool.DB).Patient()
	last := rows[len(rows)-1].Log.ID
	all, err := reader.Named(t.Context(), r, last[:8])
	if err != nil || len(all) != 1 || all[0].ID != last || all[0].Raw == nil {
		t.Errorf("%s: %v, %v", last[:8], all, err)
	}
	var several *reader.AmbiguousError
	if _, err := reader.Named(t.Context(), r, "shape-"); !errors.As(err, &several) || len(several.Some) != 5 || !several.More || several.Some[0].Path == nil {
		t.Errorf("shape-: %v", err)
	}
	for _, id := range []string{"shape", "no such", "shape-07x", "%", "sh_pe-", `a\`} {
		if all, err := reader.Named(t.Context(), r, id); err != nil || len(all) != 0 {
			t.Errorf("%s: %v, %v", id, all, err)
		}
	}
	// A whole id goes before one that is longer.
	if all, err := reader.Named(t.Context(), r, "longer"); err != nil || len(all) != 1 || all[0].ID != "longer" {
		t.Errorf("longer: %v, %v", all, err)
	}
}

// TestBegins_OutOfTime has no time for the look: the answer asks for the whole id.
func TestBegins_OutOfTime(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	r := historydb.NewReader(open(t, db.URL, time.Second).DB)
	defer db.Lock(t)()
	if _, err := r.Begins(t.Context(), "abcdef", 2); !errors.Is(err, reader.ErrWhole) || !strings.Contains(err.Error(), "no time was left") {
		t.Errorf("%v", err)
	}
}
