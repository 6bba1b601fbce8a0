//go:build integration

package historydb_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/postgres/db"
	"docket/internal/postgres/historydb"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
)

// archived is a table with an old day in it, and what carries that.
type archived struct {
	*pgtest.DB
	t   testing.TB
	day archive.Day
	c   archive.Carrier
	dir string
}

// everything is the whole table, as text, in order.
const everything = `SELECT coalesce(string_agg(t::text, E'\n' ORDER BY ts, decision_id), '') FROM decision_logs AS t`

func newArchived(t testing.TB, d *pgtest.DB) *archived {
	t.Helper()
	pg, err := store.Open(db.Config{URL: d.URL}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Close)
	a := &archived{DB: d, t: t, dir: filepath.Join(t.TempDir(), "shelf")}
	a.day, _ = archive.ParseDay("2026-03-04")
	a.c = archive.Carrier{Table: historydb.NewArchives(pg.DB).CountTo(), Shelf: archive.Dir(a.dir), By: "mara", Docket: "test", Now: time.Now, PartRows: 700}
	return a
}

// rows stores n decisions of the day, from the one numbered so.
func (a *archived) rows(from, n int) {
	a.t.Helper()
	a.Exec(a.t, fmt.Sprintf(`INSERT INTO decision_logs (decision_id, ts, path, allowed, requested_by, req_id, labels, bundles, raw, source_topic, source_partition, source_offset, source_index, raw_sha256)
		SELECT 'd' || n, '%s'::timestamptz + n * interval '7 seconds' + n %% 3 * interval '1 microsecond', CASE WHEN n %% 5 > 0 THEN 'authz/"allow"' || E'\\' END,
		       n %% 2 = 0, 'mara' || chr(160 + n %% 9000), 9007199254740993 + n, CASE n %% 3 WHEN 0 THEN '{"id":"x"}'::jsonb WHEN 1 THEN 'null'::jsonb END, NULL,
		       jsonb_build_object('decision_id', 'd' || n, 'n', n, 'text', E'\n\t"' || chr(8232)), 't', 0, n, 0, CASE WHEN n %% 4 > 0 THEN sha256(n::text::bytea) END
		  FROM generate_series(%d, %d) AS n`, a.day, from, from+n-1))
}

func (a *archived) settle() {
	a.t.Helper()
	s, err := a.c.Table.Open(a.t.Context(), a.day)
	if err != nil {
		a.t.Fatal(err)
	}
	defer s.Close()
	if err := s.Settle(a.t.Context()); err != nil {
		a.t.Fatal(err)
	}
}

func (a *archived) archive(keep bool) archive.Archived {
	a.t.Helper()
	done, err := a.c.Archive(a.t.Context(), a.day, keep)
	if err != nil {
		a.t.Fatal(err)
	}
	return done
}

func (a *archived) restore() archive.Restored {
	a.t.Helper()
	done, err := a.c.Restore(a.t.Context(), a.day)
	if err != nil {
		a.t.Fatal(err)
	}
	return done
}

func (a *archived) text() (text string) {
	a.t.Helper()
	a.Query(a.t, everything, &text)
	return text
}

// old is a table of partitions whose first day is long ago, without the table from before there were days.
func old(t *testing.T) *archived {
	t.Helper()
	db := pgtest.New(t)
	db.Exec(t, `ALTER TABLE decision_logs DETACH PARTITION decision_logs_before; DROP TABLE decision_logs_before;
		ALTER TABLE decision_logs ADD COLUMN tags text[], ADD COLUMN price numeric(12, 4) DEFAULT 'NaN', ADD COLUMN doc json, ADD COLUMN "odd "" name" bytea,
			ADD COLUMN f float8, ADD COLUMN span interval, ADD COLUMN day date GENERATED ALWAYS AS ((ts AT TIME ZONE 'UTC')::date) STORED`)
	return newArchived(t, db)
}

func TestArchive_DayComesBackAsItWas(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 2000)
	a.Exec(t, `UPDATE decision_logs SET tags = ARRAY['a', NULL, 'b"c'], doc = E'{"x" :\n 1}', "odd "" name" = '\x00ff', f = 1e-300 / 3, span = '1 mon -2 days', labels = '{"a":[1,1.0,1e400]}' WHERE req_id % 7 = 0`)
	before := a.text()
	done := a.archive(false)
	if !done.Dropped || done.Rows != 2000 || done.Files != 3 || done.Late || len(done.LeftOut) != 1 {
		t.Fatalf("%+v", done)
	}
	if a.text() != "" {
		t.Fatal("rows are left")
	}
	r := a.restore()
	if r.Stored != 2000 || r.Equal+r.Again+r.Differs != 0 {
		t.Fatalf("%+v", r)
	}
	if a.text() != before {
		t.Fatal("it is not what it was")
	}
	var part int
	a.Query(t, `SELECT count(*) FROM pg_inherits WHERE inhrelid = to_regclass('decision_logs_p20260304')`, &part)
	if part != 1 {
		t.Error("the day has no partition of its own")
	}
	if r := a.restore(); r.Stored != 0 || r.Equal != 2000 {
		t.Fatalf("again: %+v", r)
	}
	if again := a.archive(false); !again.Reused || !again.Dropped {
		t.Fatalf("the archive is there, and was written again: %+v", again)
	}
}

func TestArchive_LateRowsBeforeTheDrop(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1000)
	var before string
	a.c.Told = func(s archive.Step) {
		if s == archive.StepWritten && before == "" {
			a.rows(5000, 3) // after the snapshot
			before = a.text()
		}
	}
	if done := a.archive(false); !done.Late || !done.Dropped || done.Rows != 1003 {
		t.Fatalf("%+v", done)
	}
	a.rows(6000, 2) // after the drop: into the default partition
	more := a.text()
	if done := a.archive(false); !done.Dropped || done.Rows != 2 {
		t.Fatalf("%+v", done)
	}
	if a.text() != "" {
		t.Fatal("rows are left")
	}
	r := a.restore()
	if r.Stored != 1005 || len(r.Archives) != 2 { // the first of three is superseded
		t.Fatalf("%+v", r)
	}
	text := a.text()
	for line := range strings.SplitSeq(before+"\n"+more, "\n") {
		if !strings.Contains(text, line) {
			t.Fatalf("lost: %s", line)
		}
	}
}

// The hash of a payload comes back as it was, whatever the text of bytes is in the session.
func TestRestore_HashOfThePayload(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	const hashes = `SELECT string_agg(coalesce(encode(raw_sha256, 'hex'), 'none'), ' ' ORDER BY source_offset) FROM decision_logs`
	var before, after string
	a.Query(t, hashes, &before)
	a.archive(true)
	a.Exec(t, `DELETE FROM decision_logs WHERE decision_id = 'd5'`)
	a.Exec(t, `ALTER DATABASE "`+a.Name+`" SET bytea_output = 'escape'`)
	if r := a.restore(); r.Stored != 1 || r.Equal != 19 {
		t.Fatalf("%+v", r)
	}
	if a.Query(t, hashes, &after); after != before || !strings.Contains(after, "none") {
		t.Errorf("hashes %s\nwere %s", after, before)
	}
}

// TestRestore_MarkOfAnEdit: a row that an edit produced is one after a restore, too.
func TestRestore_MarkOfAnEdit(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.Exec(t, `UPDATE decision_logs SET edited_audit_id = 9007199254740993 WHERE decision_id = 'd5'`)
	a.archive(true)
	a.Exec(t, `DELETE FROM decision_logs WHERE decision_id = 'd5'`)
	if r := a.restore(); r.Stored != 1 || r.Equal != 19 {
		t.Fatalf("%+v", r)
	}
	var marked string
	if a.Query(t, `SELECT string_agg(decision_id || ' ' || edited_audit_id, ' ') FROM decision_logs WHERE edited_audit_id IS NOT NULL`, &marked); marked != "d5 9007199254740993" {
		t.Errorf("marked: %q", marked)
	}
}

func TestRestore_TellsConflicts(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.archive(true)
	a.Exec(t, `UPDATE decision_logs SET source_offset = 99 WHERE decision_id = 'd3'; UPDATE decision_logs SET raw = '{}' WHERE decision_id = 'd4'; DELETE FROM decision_logs WHERE decision_id = 'd5'`)
	r := a.restore()
	if r.Stored != 1 || r.Equal != 17 || r.Again != 1 || r.Differs != 1 || len(r.Conflicts) != 1 || r.Conflicts[0] != "d4" {
		t.Fatalf("%+v", r)
	}
	var raw string
	if a.Query(t, `SELECT raw::text FROM decision_logs WHERE decision_id = 'd4'`, &raw); raw != "{}" {
		t.Error("what was in the table was changed")
	}
}

func TestArchive_ShelfThatIsNotWhole(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1500)
	before := a.text()
	for name, harm := range map[string]func(path string){
		"truncated": func(path string) { check(t, os.Truncate(path, 900)) },
		"tampered": func(path string) {
			b, err := os.ReadFile(path)
			check(t, err)
			b[len(b)/2] ^= 4
			check(t, os.WriteFile(path, b, 0o600))
		},
		"missing": func(path string) { check(t, os.Remove(path)) },
	} {
		a.c.Told = func(s archive.Step) {
			if s == archive.StepWritten {
				files, _ := filepath.Glob(filepath.Join(a.dir, "decision_logs", "day=*", "*.0002.parquet"))
				harm(files[len(files)-1])
			}
		}
		_, err := a.c.Archive(t.Context(), a.day, false)
		if broken := (*archive.BrokenError)(nil); !errors.As(err, &broken) {
			t.Errorf("%s: %v", name, err)
		}
		if a.text() != before {
			t.Fatalf("%s: rows are gone", name)
		}
	}
}

// TestArchive_WritersWaitForTheDetachAlone: while the day is hashed and dropped others write into it by way of the table.
func TestArchive_WritersWaitForTheDetachAlone(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 100)
	conn, err := pgx.Connect(t.Context(), a.URL)
	check(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	s, err := a.c.Table.Open(t.Context(), a.day)
	check(t, err)
	defer s.Close()
	if _, err := a.c.Table.Open(t.Context(), a.day); !errors.Is(err, archive.ErrBusy) {
		t.Errorf("two at one day: %v", err)
	}
	_, err = s.Where(t.Context())
	check(t, err)
	tx, err := conn.Begin(t.Context())
	check(t, err)
	_, err = tx.Exec(t.Context(), `SET LOCAL lock_timeout = '500ms'; LOCK TABLE ONLY decision_logs IN ROW EXCLUSIVE MODE`) // as every writer begins
	check(t, err)
	detached := make(chan error, 1)
	go func() { detached <- s.Detach(t.Context(), false) }()
	a.Sessions(t, 1, "docket.part")
	_, err = tx.Exec(t.Context(), `INSERT INTO decision_logs (decision_id, ts, raw, source_topic, source_partition, source_offset, source_index) VALUES ('late', $1, '{}', 't', 0, 1, 0)`, a.day.Time)
	check(t, err)                    // the archive has no lock on the day yet
	check(t, tx.Commit(t.Context())) // the first writer ends first, and its row is in the day
	check(t, <-detached)
	a.rows(200, 1) // goes elsewhere
	shape, err := s.Shape(t.Context())
	check(t, err)
	total, err := s.Sum(t.Context(), shape)
	check(t, err)
	if total.Rows != 101 {
		t.Errorf("%d rows", total.Rows)
	}
	if dropped, err := s.Drop(t.Context(), shape, archive.Total{Rows: 101}, archive.Needs{}); dropped || err != nil {
		t.Errorf("dropped by count alone: %t, %v", dropped, err)
	}
	if dropped, err := s.Drop(t.Context(), shape, total, archive.Needs{}); !dropped || err != nil {
		t.Errorf("%t, %v", dropped, err)
	}
}

func TestArchive_RefusedDays(t *testing.T) {
	t.Parallel()
	a := newArchived(t, pgtest.New(t))
	a.rows(1, 3) // into decision_logs_before
	cannot := (*archive.CannotError)(nil)
	if _, err := a.c.Archive(t.Context(), a.day, false); !errors.As(err, &cannot) {
		t.Errorf("a day among others: %v", err)
	}
	for _, back := range []int{-1, 0, 1} {
		if _, err := a.c.Archive(t.Context(), archive.Day{Time: archive.DayOf(time.Now()).AddDate(0, 0, -back)}, false); !errors.As(err, &cannot) {
			t.Errorf("%d days ago: %v", back, err)
		}
	}
	if _, err := a.c.Restore(t.Context(), a.day); !errors.Is(err, archive.ErrNone) {
		t.Errorf("restored what there is not: %v", err)
	}
	if held, err := a.c.Table.Days(t.Context(), archive.DayOf(time.Now())); err != nil || len(held) > 1 {
		t.Errorf("%+v, %v", held, err)
	}
}

// TestArchive_OneOfLessSupersedesNone: the table was taken back to an earlier moment, and the archive has more than it.
func TestArchive_OneOfLessSupersedesNone(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1000)
	before := a.text()
	first := a.archive(true)
	a.Exec(t, `DELETE FROM decision_logs WHERE req_id % 10 = 0`)
	if done := a.archive(false); done.Reused || !done.Dropped || done.Archive == first.Archive {
		t.Fatalf("%+v", done)
	}
	if r := a.restore(); len(r.Archives) != 2 || r.Stored != 1000 || r.Differs+r.Again != 0 {
		t.Fatalf("%+v", r)
	}
	if a.text() != before {
		t.Fatal("it is not what it was")
	}
	a.Exec(t, `UPDATE decision_logs SET path = 'late' WHERE decision_id = 'd7'`)
	a.archive(false)
	if r := a.restore(); len(r.Archives) != 2 || r.Stored != 1000 || r.Again != 1 {
		t.Fatalf("the archive of less is contained, that of another row is not: %+v", r)
	}
	var path string
	if a.Query(t, `SELECT path FROM decision_logs WHERE decision_id = 'd7'`, &path); path != "late" {
		t.Errorf("of two the earlier one was stored: %s", path)
	}
}

// lagging is a shelf whose first archive arrives only after the one who wrote it was given up for dead.
type lagging struct {
	archive.Shelf
	parts map[string][]byte
}

func (l *lagging) Put(ctx context.Context, name string, r io.Reader) error {
	if l.parts == nil || strings.HasSuffix(name, ".started") {
		return l.Shelf.Put(ctx, name, r)
	}
	b, err := io.ReadAll(r)
	if err == nil {
		l.parts[name], err = b, errors.New("no answer")
	}
	return err
}

func TestArchive_RowOfAWriterGivenUp(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 300)
	shelf := &lagging{Shelf: a.c.Shelf, parts: map[string][]byte{}}
	a.c.Shelf = shelf
	if _, err := a.c.Archive(t.Context(), a.day, false); err == nil || len(shelf.parts) == 0 {
		t.Fatalf("%v, %d", err, len(shelf.parts))
	}
	late := shelf.parts
	shelf.parts = nil
	a.rows(1000, 5)
	before := a.text()
	if done := a.archive(false); !done.Dropped {
		t.Fatalf("%+v", done)
	}
	for name, b := range late {
		check(t, shelf.Put(t.Context(), name, bytes.NewReader(b)))
	}
	a.restore()
	if a.text() != before {
		t.Error("it is not what it was")
	}
}

// TestRestore_HasTheDayBeforeItLooks: an archive of it that is made meanwhile would be passed over.
func TestRestore_HasTheDayBeforeItLooks(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 20)
	a.archive(false)
	a.c.Told = func(s archive.Step) {
		if s == archive.StepVerified {
			if s, err := a.c.Table.Open(t.Context(), a.day); !errors.Is(err, archive.ErrBusy) {
				s.Close()
				t.Errorf("another may archive the day that is being restored: %v", err)
			}
		}
	}
	a.restore()
}

// TestArchive_CountsStay: counted rows stay counted, wherever they are.
func TestArchive_CountsStay(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1000)
	a.Exec(t, `UPDATE decision_logs SET stored_at = now() - interval '1 hour'`)
	pg, err := store.Open(db.Config{URL: a.URL}, zerolog.Nop())
	check(t, err)
	defer pg.Close()
	stats := func(count int64) string {
		t.Helper()
		if n, err := historydb.NewReader(pg.DB).Count(t.Context()); err != nil || n != count {
			t.Fatalf("%d were counted, %v", n, err)
		}
		all, err := historydb.NewReader(pg.DB).Stats(t.Context(), reader.StatsQuery{Since: a.day.Time, Until: a.day.Next().Time, Step: time.Hour, ByPath: true})
		check(t, err)
		if len(all) == 0 {
			t.Fatal("nothing is counted")
		}
		return fmt.Sprint(all)
	}
	before := stats(1000)
	a.archive(false)
	if stats(0) != before {
		t.Error("the archive took the counts with it")
	}
	a.restore()
	if stats(0) != before {
		t.Error("the restore counted again")
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestArchive_OnlyByTheOwner: a role that owns the table without being superuser is enough, and one that may only store is told why.
func TestArchive_OnlyByTheOwner(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 50)
	owner, writer := a.Name+"_owner", a.Name+"_writer"
	a.Exec(t, fmt.Sprintf(`CREATE ROLE %[1]s; CREATE ROLE %[2]s; GRANT CREATE, USAGE ON SCHEMA public TO %[1]s; GRANT USAGE ON SCHEMA public TO %[2]s;
		DO $$ DECLARE r record; BEGIN
			FOR r IN SELECT oid::regclass AS name FROM pg_class WHERE relname LIKE 'decision_logs%%' AND relkind IN ('r', 'p') LOOP EXECUTE format('ALTER TABLE %%s OWNER TO %[1]s', r.name); END LOOP;
		END $$; GRANT SELECT, INSERT ON decision_logs TO %[2]s`, owner, writer))
	t.Cleanup(func() {
		a.Exec(t, fmt.Sprintf(`DROP OWNED BY %[1]s, %[2]s CASCADE; DROP ROLE %[1]s, %[2]s`, owner, writer))
	})
	as := func(role string) (archive.Archived, error) {
		pg, err := store.Open(db.Config{URL: a.URL + "&role=" + role}, zerolog.Nop())
		check(t, err)
		defer pg.Close()
		c := a.c
		c.Table = historydb.NewArchives(pg.DB)
		return c.Archive(t.Context(), a.day, false)
	}
	if _, err := as(writer); !strings.Contains(db.Hint(err), "docket_migrate") {
		t.Errorf("%v: %s", err, db.Hint(err))
	}
	if done, err := as(owner); err != nil || !done.Dropped {
		t.Errorf("%+v, %v", done, err)
	}
}
