//go:build integration

package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/history/archive"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/schema"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

// The synchronous standby is cut off, all continue to write, the primary is lost and the standby promoted. All that was
// said to be stored is on the standby.
func TestStandby_Failover(t *testing.T) {
	t.Parallel()
	pair := testenv.OwnPostgresPair(t, testenv.PairOptions{})
	url := pair.Primary.URL("postgres")
	d := &pgtest.DB{URL: url, Name: "postgres"}
	d.Exec(t, `ALTER ROLE postgres SET client_min_messages = error`) // the warning of COMMIT comes all the same
	opened := func(timeout time.Duration) *store.Store {
		s, err := store.Open(db.Config{URL: url, StoreTimeout: timeout}, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	db := opened(time.Minute)
	if _, err := schema.New(db.DB).Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.Exec(t, `ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before`)
	day, _ := archive.ParseDay("2026-03-04")
	same(t, save(t, db, row("archived", day.Add(time.Hour), `{"n":1}`)), []pipeline.Outcome{stored})
	for counted := false; !counted; { // a day is archived and restored once its rows are counted
		d.Exec(t, `SELECT decision_counts_count('1 hour', '0')`)
		d.Query(t, `SELECT bool_and(stored_at < stored_before) FROM decision_logs, decision_counts_mark`, &counted)
	}
	columns, line := archivedLine(t, db, day)
	if err := pair.Synchronous(t.Context()); err != nil {
		t.Fatal(err)
	}

	var said []string // ids of which somebody was told that they are stored
	of := func(prefix string) [][]*kgo.Record {
		var batches [][]*kgo.Record
		for i := range int64(3) {
			value := event(fmt.Sprint(prefix, i), time.Now(), nil)
			batches = append(batches, []*kgo.Record{sourceRecord(i, value)})
			if strings.HasPrefix(prefix, "parked") {
				batches[i][0] = parkedRecord(i, 4, value)
			}
		}
		return batches
	}
	note := func(prefix string, c *carried) {
		t.Logf("%s: commit %d, homes %v, %d forwarded, %d holds", prefix, c.commit, c.homes, len(c.sent), len(c.holds))
		for i := range c.commit {
			said = append(said, fmt.Sprint(prefix, i))
		}
		for _, r := range c.sent { // it has its home there
			said = said[:len(said)-1]
			if r.Topic != "parking" {
				t.Errorf("%s: a record went to %s", prefix, r.Topic)
			}
		}
	}
	note("well", carry(t, db, false, 0, of("well")...))
	same(t, len(said), 3)
	letters := []ledger.Letter{letter(1, "a"), letter(2, "b")}
	ledgerOf := ledgerdb.New(db.DB)
	if _, err := ledgerOf.Enter(t.Context(), letters[:1], 3, ledger.Actor{Name: "ann"}); err != nil {
		t.Fatal(err)
	}

	pair.CutOff()
	db = opened(2 * time.Second)
	ledgerOf = ledgerdb.New(db.DB)
	note("alone", carry(t, db, false, 1, of("alone")...))
	note("parked", carry(t, db, true, 1, of("parked")...))
	for range 3 {
		if _, err := ledgerOf.Enter(t.Context(), letters[1:], 3, ledger.Actor{Name: "ann"}); err == nil {
			t.Error("a letter is in the ledger, and no standby has it")
		}
	}
	for range 2 { // the second finds what the first left
		if err := whileCanceled(t, url, func() error {
			return loadLine(t, db, day, columns, strings.ReplaceAll(line, "archived", "restored"))
		}); err == nil {
			t.Error("somebody ended the wait for the standby, and the line is restored")
		}
		if err := whileCanceled(t, url, func() error {
			_, err := db.Store(context.Background(), []pipeline.Row{row("canceled", noon, `{}`)}, false)
			return err
		}); err == nil {
			t.Error("somebody ended the wait for the standby, and the row has its home")
		}
	}
	pair.Failover(t)

	conn, err := pgx.Connect(t.Context(), pair.Primary.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	var there []string
	if err := conn.QueryRow(t.Context(), `SELECT array_agg(decision_id) FROM decision_logs WHERE decision_id = ANY($1)`, said).Scan(&there); err != nil {
		t.Fatal(err)
	}
	if len(there) != len(said) {
		t.Errorf("lost: %v have a home, and only %v are on the standby", said, there)
	}
}

// archivedLine is the line that an archive of a day has of its one row.
func archivedLine(t *testing.T, db *store.Store, day archive.Day) (columns []archive.Column, line string) {
	t.Helper()
	s, err := historydb.NewArchives(db.DB).Open(t.Context(), day)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	shape, err := s.Shape(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), shape, func(l []byte) error { line = string(l); return nil }); err != nil {
		t.Fatal(err)
	}
	return shape.Columns, line
}

// loadLine restores a line as a restore does.
func loadLine(t *testing.T, db *store.Store, day archive.Day, columns []archive.Column, line string) error {
	t.Helper()
	for {
		s, err := historydb.NewArchives(db.DB).Open(t.Context(), day)
		if errors.Is(err, archive.ErrBusy) { // the last one is still being ended
			continue
		}
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = s.Load(t.Context(), columns, [][]byte{[]byte(line)})
		return err
	}
}

// whileCanceled cancels whatever waits for the standby until do ended, and gives its error.
func whileCanceled(t *testing.T, url string, do func() error) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			return err
		default:
		}
		if _, err := conn.Exec(t.Context(), `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`); err != nil {
			t.Fatal(err)
		}
	}
}

// letter is the dead letter of the record at that offset.
func letter(offset int64, value string) ledger.Letter {
	o := envelope.Origin{Topic: "decision-logs", Offset: offset, Timestamp: noon}
	return ledger.Letter{
		ID: envelope.ID(o, []byte(value)), Origin: o, Value: []byte(value), FirstFailedAt: noon, FailedAt: noon,
		Cause: envelope.Cause{Kind: envelope.Data, Code: "23514"}, Found: ledger.Found{Topic: "decision-logs-dlq", Offset: offset, Stamp: noon},
	}
}
