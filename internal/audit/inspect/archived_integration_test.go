//go:build integration

package inspect

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/audit/verify"
	"docket/internal/postgres/db"
	"docket/internal/postgres/store"
	"docket/internal/testkit/pgtest"
	"docket/internal/testkit/testenv"
)

func init() {
	pgtest.StartServer = func(t testing.TB) string { return testenv.Postgres(t).Database(t) }
}

func TestMain(m *testing.M) { testenv.Main(m) }

// TestArchivedRows_ForgottenWithoutAPlace: without DOCKET_ARCHIVE_TO the note of a forgotten day is read, and other days count as lost.
func TestArchivedRows_ForgottenWithoutAPlace(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	d.Exec(t, `INSERT INTO decision_counts_left (day, left_at, archives, forgotten_at, forgotten_by, forgotten_reason)
		VALUES ('2026-03-04Z', '2026-06-01Z', '{}', '2026-07-01Z', 'mara', 'over'), ('2026-03-05Z', '2026-06-01Z', '{}', NULL, NULL, NULL)`)
	st, err := store.Open(db.Config{URL: d.URL}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	s := &System{db: st}
	of := func(n int) *verify.Decision {
		return &verify.Decision{Place: verify.Place{Topic: "logs", Offset: int64(n)}, ID: fmt.Sprint(n), Time: at.AddDate(0, 0, n)}
	}
	var ev verify.Evidence
	var told []string
	err = s.archivedRows(t.Context(), []*verify.Decision{of(0), of(1)}, &ev, nil, func(text string) { told = append(told, text) })
	if err != nil || !slices.Equal(ev.Forgotten, []verify.Place{of(0).Place}) || len(told) < 1 ||
		told[0] != "archives: 2026-03-04 was forgotten on purpose by mara at 2026-07-01T00:00:00Z: over" {
		t.Errorf("%v, %q, %v", ev.Forgotten, told, err)
	}
	if len(told) > 2 || len(told) == 2 && !strings.Contains(told[1], "DOCKET_ARCHIVE_TO is not set") {
		t.Errorf("%q", told)
	}
}
