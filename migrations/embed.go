// Package migrations holds the numbered steps that bring a database's schema up to date, in the format of goose.
// It stays free of the logic that runs them.
package migrations

import "embed"

// FS has the migrations at its root.
//
//go:embed *.sql
var FS embed.FS
