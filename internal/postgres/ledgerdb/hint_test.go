package ledgerdb_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/errclass"
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

func TestHint_NamesTheLedgersTriggers(t *testing.T) {
	t.Parallel()
	err := &ledgerdb.Error{Err: errclass.As(errors.New("swallowed"), errclass.CodeConfig)}
	if got := db.Hint(err); !strings.Contains(got, "dead_letter_audit") {
		t.Errorf("%q", got)
	}
}
