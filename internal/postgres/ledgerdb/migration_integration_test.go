//go:build integration

package ledgerdb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/migrations"
)

func TestMigration_TablesGoAndComeBack(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	ways := func(file string) (up, down string) {
		t.Helper()
		b, err := migrations.FS.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		up, down, ok := strings.Cut(string(b), "-- +goose Down")
		if !ok {
			t.Fatal("no way down")
		}
		return up, down
	}
	up, down := ways("00003_dead_letters.sql")
	_, unaudited := ways("00011_audit.sql")
	_, unheld := ways("00013_floods.sql")
	_, uncased := ways("00021_cases.sql")
	_, unpersoned := ways("00025_persons.sql")
	_, unnoted := ways("00033_letter_archives.sql")
	d.Exec(t, unnoted)
	d.Exec(t, unpersoned)
	d.Exec(t, uncased)
	alone, together := ways("00014_four_eyes.sql")
	for _, step := range []string{together, alone, alone, together} { // a step can be run again
		d.Exec(t, step)
	}
	_, unbounded := ways("00015_growth.sql")
	const left = `SELECT (SELECT count(*) FROM pg_class WHERE relname LIKE 'dead_letter%') + (SELECT count(*) FROM pg_proc WHERE proname LIKE 'dead_letter%')
		+ (SELECT count(*) FROM pg_type WHERE typname LIKE 'dead_letter%')`
	d.Entered(letter(1, one))
	d.Exec(t, migrations.NoEdits) // the later step goes first
	d.Exec(t, unaudited)
	if n := d.Entered(letter(1, one), letter(2, two)); n.New != 1 || n.Known != 1 {
		t.Fatalf("%+v", n)
	}
	d.Exec(t, unbounded)
	if n := d.Entered(letter(3, one)); n.New != 1 {
		t.Fatalf("%+v", n)
	}
	d.Exec(t, unheld)
	d.Exec(t, down)
	var n int
	if d.Query(t, left, &n); n != 0 {
		t.Fatalf("%d things are left behind", n)
	}
	d.Exec(t, up)
	d.Ledger = ledgerdb.New(open(t, d.URL, 0).DB)
	if n := d.Entered(letter(1, one)); n.New != 1 {
		t.Fatalf("%+v", n)
	}
}

// With its grants a desk's role can do all its work, and write no line of the audit by itself.
func TestMigration_NoRightOnTheAudit(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	url := d.Role(t, "")
	role := strings.SplitN(strings.TrimPrefix(url, "postgres://"), ":", 2)[0]
	d.Exec(t, `GRANT SELECT, INSERT, UPDATE, DELETE ON dead_letters, dead_letter_groups, dead_letter_outbox, dead_letter_jobs, dead_letter_duties, dead_letter_notes, dead_letter_counts, dead_letter_days, dead_letter_job_ends TO `+role+`;
		GRANT SELECT ON dead_letter_audit, dead_letter_moves TO `+role+`;
		GRANT EXECUTE ON FUNCTION dead_letters_remove(timestamptz, int, text, text), dead_letters_compact() TO `+role)
	whole := d.Ledger
	d.Ledger = ledgerdb.New(open(t, url, 0).DB)
	l, m := letter(1, one), letter(2, two)
	d.Entered(l, m)
	s := d.Put(l.ID, 500)
	if n := d.Entered(home(s, 500)); n.DeadAgain != 1 {
		t.Fatalf("%+v", n)
	}
	if err := d.Edit(t.Context(), l.ID, "", []byte(three), "diff", soon, ann); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Resolve(t.Context(), []string{m.ID}, ann); err != nil {
		t.Fatal(err)
	}
	d.Shelved()
	if n, err := d.Remove(t.Context(), time.Now().Add(time.Hour), 9, ledger.Actor{Name: "desk"}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if err := d.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, d.lapse(), 1)
	d.Ledger = whole
	d.sound()
	for _, sql := range []string{
		`INSERT INTO dead_letter_audit (dead_letter_id, act, actor, why, attempts) VALUES ('x', 'closed', 'ann', '', 0)`,
		`UPDATE dead_letter_audit SET actor = 'bob'`,
		`ALTER TABLE dead_letters DISABLE TRIGGER ALL`,
		`INSERT INTO dead_letter_moves VALUES ('RESOLVED', 'PENDING', 'x')`,
	} {
		var refused *pgconn.PgError
		if err := exec(url, sql); !errors.As(err, &refused) || refused.Code != "42501" {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// The step that corrects a function can be run again, taken back and done once more, and leaves the settings of the function.
func TestMigration_RangesEnd(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	b, err := migrations.FS.ReadFile("00034_ranges_end.sql")
	check(t, err)
	up, down, _ := strings.Cut(string(b), "-- +goose Down")
	const now = `SELECT pg_get_functiondef('dead_letters_admit'::regproc)`
	was := d.Text(now)
	for _, step := range []string{up, down, down, up, up} {
		d.Exec(t, step)
	}
	same(t, d.Text(now), was)
	d.Exec(t, down)
	if got := d.Text(now); got == was || !strings.Contains(got, "search_path") || !strings.Contains(got, "SECURITY DEFINER") {
		t.Fatal(got)
	}
}
