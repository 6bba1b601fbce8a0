package ledgerdb_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
)

// TestHint_NamesGrantsAndTables, and not those of decision_logs, which would not help.
func TestHint_NamesGrantsAndTables(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{"42501": "docs/desk-grants.sql", "42P01": "docket migrate", "28P01": "user and password"} {
		refused := &pgconn.PgError{Code: code}
		of := fmt.Errorf("list dead letters: %w", &ledgerdb.Error{Err: refused})
		if got := db.Hint(of); !strings.Contains(got, want) {
			t.Errorf("%s: %q", code, got)
		}
		if got := db.Hint(refused); code != "28P01" && strings.Contains(got, want) {
			t.Errorf("%s of decision_logs: %q", code, got)
		}
	}
}
