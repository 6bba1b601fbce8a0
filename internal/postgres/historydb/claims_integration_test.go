//go:build integration

package historydb_test

import (
	"testing"
	"time"

	"docket/internal/history/claims"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/claimtest"
	"docket/internal/testkit/pgtest"
)

func TestClaims_Suite(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	claimtest.Suite(t, func(t testing.TB) claims.Port { return historydb.NewClaims(open(t, d.URL, time.Minute).DB) })
}

// TestClaims_VersionsRiseOverACrash: a crash empties the table, and the versions rise all the same.
func TestClaims_VersionsRiseOverACrash(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	c, last := historydb.NewClaims(open(t, d.URL, time.Minute).DB), int64(0)
	for range 5 {
		version, err := c.Begin(t.Context(), "k", claims.High, claimtest.Long)
		if err != nil || version <= last {
			t.Fatalf("version %d after %d, %v", version, last, err)
		}
		last = version
		d.Exec(t, "TRUNCATE decision_reads")
	}
}

// TestClaims_VersionsRiseOverAClockSetBack: the row has a version from the future.
func TestClaims_VersionsRiseOverAClockSetBack(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	c := historydb.NewClaims(open(t, d.URL, time.Minute).DB)
	d.Exec(t, "INSERT INTO decision_reads VALUES ('k', 9000000000000000, true, clock_timestamp())")
	if version, err := c.Begin(t.Context(), "k", claims.Low, claimtest.Long); err != nil || version != 9000000000000001 {
		t.Fatalf("version %d, %v", version, err)
	}
}

// TestClaims_OldRowsGo: rows of yesterday are removed, and later ones stay for their versions.
func TestClaims_OldRowsGo(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	c := historydb.NewClaims(open(t, d.URL, time.Minute).DB)
	d.Exec(t, "INSERT INTO decision_reads VALUES ('old', 1, true, clock_timestamp() - interval '25 hours'), ('over', 1, true, clock_timestamp() - interval '23 hours')")
	version, err := c.Begin(t.Context(), "mine", claims.High, claimtest.Long)
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := c.End(t.Context(), "mine", version); err != nil || !ended {
		t.Fatal(ended, err)
	}
	var keys string
	d.Query(t, "SELECT string_agg(key, ',' ORDER BY key) FROM decision_reads", &keys)
	same(t, keys, "mine,over")
}
