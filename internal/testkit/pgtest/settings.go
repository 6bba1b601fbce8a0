package pgtest

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// oddSettings are defaults of a database that change what the server sends, or how it reads a statement.
var oddSettings = []string{
	`DateStyle = 'SQL, DMY'`, `TimeZone = 'Asia/Kolkata'`, `IntervalStyle = 'sql_standard'`, `bytea_output = 'escape'`, `standard_conforming_strings = off`,
	`extra_float_digits = -5`, `xmlbinary = 'hex'`, `quote_all_identifiers = on`, `default_transaction_isolation = 'serializable'`, `default_transaction_deferrable = on`,
	`synchronous_commit = off`, `array_nulls = off`, `client_min_messages = error`, `plan_cache_mode = 'force_generic_plan'`, `row_security = off`,
}

// OddSettings gives the database other defaults than a new one has. Sessions that are open keep theirs.
func (db *DB) OddSettings(t testing.TB) {
	t.Helper()
	of := `ALTER DATABASE ` + pgx.Identifier{db.Name}.Sanitize() + ` SET `
	db.Exec(t, of+strings.Join(oddSettings, "; "+of))
}
