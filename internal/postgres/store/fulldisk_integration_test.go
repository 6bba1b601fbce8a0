//go:build integration

package store_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/errclass"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// limitedSQL moves the table, its partitions and their indexes to the small disk.
const limitedSQL = `
	DO $$ DECLARE part regclass; kind text; BEGIN
		FOR part, kind IN SELECT relid, 'TABLE' FROM pg_partition_tree('decision_logs') UNION ALL SELECT indexrelid, 'INDEX'
		       FROM pg_partition_tree('decision_logs') JOIN pg_index ON indrelid = relid LOOP
			EXECUTE format('ALTER %s %s SET TABLESPACE limited', kind, part);
		END LOOP;
	END $$`

// realStore has another name than its method Store, so that it can be embedded.
type realStore = store.Store

// emptied is a store whose disk gets room again after so many probes failed.
type emptied struct {
	*realStore
	codes []string // of the probes that failed
	after int
	empty func()
}

func (e *emptied) Probe(ctx context.Context, at time.Time) error {
	err := e.realStore.Probe(ctx, at)
	if err != nil {
		if e.codes = append(e.codes, errclass.Classify(err).Code); len(e.codes) == e.after {
			e.empty()
		}
	}
	return err
}

var _ pipeline.Store = (*emptied)(nil)

// TestFullTablespace has the disk of the table full, and that of the server not: the partition holds and nothing is parked or
// dead-lettered. Once there is room everything has its row.
func TestFullTablespace(t *testing.T) {
	t.Parallel()
	server := testenv.OwnPostgresWith(t, testenv.PostgresOptions{Memory: true, Small: map[string]string{"/limited": "24m"}})
	run := func(command string) {
		t.Helper()
		if err := server.Handle().Run(t.Context(), "sh", "-c", command); err != nil {
			t.Fatalf("%s: %v", command, err)
		}
	}
	run("chown postgres:postgres /limited")
	d := &pgtest.DB{URL: server.Database(t)}
	db := open(t, d.URL, time.Minute)
	if _, err := schema.New(db.DB).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, `CREATE TABLESPACE limited LOCATION '/limited'`)
	d.Exec(t, limitedSQL)
	bulky := func(from, n int64) (records []*kgo.Record) {
		for i := range n {
			pad := make([]byte, 1500) // more than a page holds a few of, and not to be compressed
			_, _ = rand.Read(pad)
			records = append(records, sourceRecord(from+i, event(fmt.Sprint("id-", from+i), midday, map[string]any{"pad": hex.EncodeToString(pad)})))
		}
		return records
	}
	carry(t, db, false, 1, bulky(1, 3))
	run("dd if=/dev/zero of=/limited/filler bs=8k 2>/dev/null; true")

	const n = 300
	store := &emptied{realStore: db, after: 3, empty: func() { run("rm /limited/filler") }}
	c := carry(t, store, false, 0, bulky(11, n))
	same(t, store.codes, []string{"53100", "53100", "53100"})
	if len(c.holds) == 0 || c.holds[0].Code != "53100" {
		t.Errorf("held %+v", c.holds)
	}
	for i, home := range c.homes {
		same(t, home, fmt.Sprintf("%d row", 11+i))
	}
	same(t, []int64{int64(len(c.homes)), c.commit, int64(len(c.sent))}, []int64{n, 11 + n, 0})
}
