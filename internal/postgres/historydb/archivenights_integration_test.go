//go:build integration

package historydb_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"docket/internal/desk/worker"
	"docket/internal/history/archive"
	"docket/internal/history/archive/nightly"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
)

// killed is the ledger of a desk that is killed: it gives no duty back.
type killed struct{ *ledgerdb.Ledger }

func (killed) DutyDone(context.Context, string, string) error { return nil }

// nightsOf is the archive of a desk on a table, with dead letters beside it.
func nightsOf(t *testing.T, a *archived) (*archive.Nights, *ledgerdb.Ledger) {
	t.Helper()
	pg, err := store.Open(db.Config{URL: a.URL}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	return &archive.Nights{
		Carrier: a.c, Letters: archive.LettersCarrier{Table: historydb.NewLetterArchives(pg.DB), Shelf: a.c.Shelf, By: "desk", Docket: "test", Now: time.Now},
	}, ledgerdb.New(pg.DB)
}

// archiving runs the duty of a desk until stop is called. wait waits for its end.
func archiving(holder string, days worker.Days, duties worker.ArchiveDuties) (stop, wait func()) {
	a := worker.NewArchiving(worker.ArchivingConfig{Holder: holder, After: 30, Metrics: worker.NewArchivingMetrics(prometheus.NewRegistry())}, days, duties, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = a.Run(ctx); close(done) }()
	return cancel, func() { <-done }
}

// noted is the ledger of a desk that passes on each note that it keeps.
type noted struct {
	*ledgerdb.Ledger
	notes chan string
}

func (n noted) Remember(ctx context.Context, name, text string) error {
	select {
	case n.notes <- text:
	case <-ctx.Done():
	}
	return n.Ledger.Remember(ctx, name, text)
}

// idle waits until a note says that nothing is due.
func (n noted) idle(t *testing.T) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		select {
		case text := <-n.notes:
			note, err := nightly.ParseNote(text, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if note.State == nightly.Failed {
				t.Fatalf("the archive failed: %+v", note)
			}
			if note.State == nightly.Idle && note.Due == 0 {
				return
			}
		case <-late:
			t.Fatal("the days are not archived")
		}
	}
}

// A desk that is killed at any step leaves nothing half: the next one archives both days, and a restore brings back
// each row.
func TestArchiveNights_KilledAtEachStep(t *testing.T) {
	t.Parallel()
	for _, at := range []archive.Step{archive.StepOpened, archive.StepReading, archive.StepWritten, archive.StepVerified, archive.StepDetached, archive.StepDropped} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			a := old(t)
			a.rows(1, 1500)
			a.settle()
			a.Exec(t, `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index)
				SELECT 'other' || n, '2026-03-02'::timestamptz + n * interval '1 second', '{}', 't', 0, n, 0 FROM generate_series(1, 50) AS n`)
			before := a.text()
			first, book := nightsOf(t, a)
			reached, gone := make(chan struct{}), make(chan struct{})
			kill := sync.OnceFunc(func() { close(reached) })
			first.Carrier.Told = func(s archive.Step) {
				if s == at {
					kill()
					<-gone // a killed process does nothing more
				}
			}
			stop, wait := archiving("a", first, killed{book})
			select {
			case <-reached:
			case <-time.After(time.Minute):
				t.Errorf("the step was not reached")
			}
			stop()
			close(gone)
			wait()
			a.Exec(t, `UPDATE dead_letter_duties SET until = clock_timestamp() WHERE duty = 'archive'`) // the lease ends

			second, book := nightsOf(t, a)
			next := noted{book, make(chan string)}
			stop, wait = archiving("b", second, next)
			next.idle(t)
			go func() {
				for range next.notes { // the desk may keep further notes until it ends
				}
			}()
			stop()
			wait()
			close(next.notes)
			var rows, out int
			a.Query(t, `SELECT count(*) FROM decision_logs`, &rows)
			a.Query(t, `SELECT count(*) FROM pg_class WHERE relname LIKE 'decision_logs_leaving%'`, &out)
			if rows != 0 || out != 0 {
				t.Fatalf("%d rows are in the table, and %d days are out of it", rows, out)
			}
			for _, text := range []string{"2026-03-04", "2026-03-02"} {
				day, _ := archive.ParseDay(text)
				if _, err := a.c.Restore(t.Context(), day); err != nil {
					t.Fatal(err)
				}
			}
			if a.text() != before {
				t.Error("the rows that came back are not those of before")
			}
		})
	}
}
