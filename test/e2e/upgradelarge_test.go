//go:build integration

package e2e

import (
	"path/filepath"
	"testing"
	"time"

	"docket/internal/record/home"
	"docket/internal/testkit/testenv"
)

// TestUpgrade_LargeTable migrates the table of the previous release, with a month of rows, while a consumer of that release writes to it. Then
// both releases write side by side, and the new one goes away again. No write waits for long, and no row changes.
// DOCKET_TEST_ROWS is the number of rows.
func TestUpgrade_LargeTable(t *testing.T) {
	t.Parallel()
	rows := setting(t, "DOCKET_TEST_ROWS", 30_000)
	s := upgraded(t, testenv.OwnPostgres(t), "DOCKET_BATCH_MAX_RECORDS=200")
	newer, _ := s.newer()
	began := time.Now()
	for from := 0; from < rows; from += 500_000 {
		s.exec(`INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, service, labels, raw, source_topic, source_partition, source_offset, source_index, stored_at)
			SELECT md5(n::text), ts, 'shop/orders/' || n % 50, n % 3 = 0, '10.0.0.' || n % 200, 'shop', '{"app":"shop"}', jsonb_build_object('decision_id', md5(n::text), 'path', 'shop/orders/' || n % 50,
			       'result', n % 3 = 0, 'input', jsonb_build_object('user', 'user-' || n % 5000)), 'filler', 0, n, 0, ts
			  FROM generate_series($1::int, $2::int) AS n, LATERAL (SELECT date_trunc('day', now()) - 25 * interval '1 day' + n * interval '25 days' / $3::int AS ts) AS t`, from, min(from+500_000, rows)-1, rows)
	}
	t.Logf("%d rows filled in %v", rows, time.Since(began).Round(time.Second))
	hash := func() (text string) {
		t.Helper()
		err := s.scan(`SELECT count(*) || ' ' || sum(hashtextextended(decision_id || ts || raw::text || stored_at || source_offset, 0)::numeric)
			FROM decision_logs WHERE source_topic = 'filler'`, nil, &text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := hash()

	g := s.generate(200_000, 12)
	old := s.start(former+"consumer", newer)
	g.background(0, 4*unhurried)
	serving(t, home.Row, 200, old)
	began = time.Now()
	if out, err := run(t.Context(), s.dir, "env", append(append([]string{"-i"}, s.env...), filepath.Join(bin, "consumer"), "migrate")...); err != nil {
		t.Fatalf("consumer migrate: %v\n%s", err, out)
	}
	took := time.Since(began)
	serving(t, home.Row, old.metric(`docket_records_total{home="row"}`)+100, old)
	var longest float64
	err := s.scan(`SELECT coalesce(max(extract(epoch FROM stored_at - before)), 0)::float8 FROM (SELECT stored_at, lag(stored_at) OVER (ORDER BY stored_at) AS before
		FROM decision_logs WHERE source_topic <> 'filler' AND stored_at > $1) AS w`, []any{began}, &longest)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("migrated in %v; the longest time without a new row was %.1f s", took.Round(time.Second), longest)
	if n := old.metric(`docket_records_total{home="parked"}`); n > 0 {
		t.Logf("%v decisions were parked meanwhile", n)
	}
	if after := hash(); after != before {
		t.Errorf("the rows were %s, and are %s", before, after)
	}

	s.exec("DELETE FROM decision_logs WHERE source_topic = 'filler'") // the account knows nothing of them
	newest := s.consumer()
	s.shared(s.places.Group, 2)
	serving(t, home.Row, 100, newest, old)
	newest.stopped()
	s.shared(s.places.Group, 1)
	serving(t, home.Row, old.metric(`docket_records_total{home="row"}`)+100, old)
	replayer := s.replayer()
	g.enough.Store(true)
	g.wg.Wait()
	s.account(patience)
	s.verify(0, "--settled")
	replayer.stopped()
	old.stopped()
	if longest > 30 {
		t.Errorf("a migration kept writers waiting for %.1f s", longest)
	}
}
