//go:build integration

package desk

import (
	"errors"
	neturl "net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"docket/internal/audit/inspect"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/history/archive"
	"docket/internal/postgres/store"
	"docket/internal/service/app"
	"docket/internal/service/config"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/readertest"
)

// TestArchives_OfRealDays: a desk says which days that left the table lack an archive, and notes who gave one up.
func TestArchives_OfRealDays(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	dir := t.TempDir()
	s, _, err := config.LoadWith(config.Desk, []string{"DOCKET_DATABASE_URL=" + db.URL, "DOCKET_ARCHIVE_TO=" + dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(url string) *store.Store {
		one, _, err := config.LoadWith(config.Desk, []string{"DOCKET_DATABASE_URL=" + url}, nil)
		if err != nil {
			t.Fatal(err)
		}
		pool, err := app.OpenDatabase(one, config.Desk, zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		return pool
	}
	pool := open(db.URL)
	m, err := archivetest.Write(t.Context(), archive.Dir(dir), 10, readertest.Decision(1, time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)))
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(t, `INSERT INTO decision_counts_left (day, left_at) VALUES ('2026-03-04', now()), ('2026-03-05', now())`)
	days := inspect.ArchivedDays(s, pool, shelfOf(s))
	t.Cleanup(days.Close)
	gone, err := archive.ParseDay("2026-03-05")
	if err != nil {
		t.Fatal(err)
	}
	a := &archives{days: days, asked: pool, owner: pool}
	absent := func(want int) {
		t.Helper()
		v, err := a.inventory(t.Context())
		if err != nil || len(v.Archives) != 1 || v.Archives[0].Name != m.Name() || len(v.Absent) != want || want == 1 && v.Absent[0].Day != gone || v.LeftUnknown != "" || v.LeftOffUnknown != "" || v.Nightly.Unknown != "" || v.Where != dir {
			t.Fatalf("%v, %+v", err, v)
		}
	}
	absent(1)
	by := ledger.Actor{Name: "mara", Why: "over"}
	if earlier, where, err := a.forget(t.Context(), gone, by, true); err != nil || earlier != nil || where != dir {
		t.Errorf("dry: %v, %s, %v", earlier, where, err)
	}
	absent(1)
	url := db.Role(t, "SELECT")
	poor := &archives{days: days, asked: pool, owner: open(url)}
	if _, _, err := poor.forget(t.Context(), gone, by, false); !errors.Is(err, archive.ErrLeftUnread) {
		t.Errorf("a login that may not read what left: %v", err)
	}
	login, err := neturl.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	db.Exec(t, `GRANT SELECT ON decision_counts_left TO `+pgx.Identifier{login.User.Username()}.Sanitize())
	if _, _, err := poor.forget(t.Context(), gone, by, false); errclass.Classify(err).Code != "42501" {
		t.Errorf("a login that may only read: %v", err)
	}
	var cannot *archive.CannotError
	if _, _, err := a.forget(t.Context(), archive.DayOf(time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)), by, false); !errors.As(err, &cannot) {
		t.Errorf("a day with an archive: %v", err)
	}
	if earlier, _, err := a.forget(t.Context(), gone, by, false); err != nil || earlier != nil {
		t.Errorf("%v, %v", earlier, err)
	}
	absent(0)
	if earlier, _, err := a.forget(t.Context(), gone, ledger.Actor{Name: "oleg", Why: "x"}, false); err != nil || earlier == nil || earlier.By != "mara" || earlier.Reason != "over" {
		t.Errorf("%v, %v", earlier, err)
	}
}
