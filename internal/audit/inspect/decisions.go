package inspect

import (
	"context"

	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
)

// stored are the decisions of the table and of archived days.
type stored struct {
	*historydb.Reader
	both cold.Store
}

// Decisions joins the table with archived days.
func Decisions(table *historydb.Reader, days *cold.Days) reader.Store {
	return stored{table, cold.Store{Table: table, Days: days}}
}

// Stats is that of [reader.Store].
func (d stored) Stats(ctx context.Context, q reader.StatsQuery) ([]reader.Stats, error) {
	return d.both.Stats(ctx, d.Reader, q)
}

// Search is that of [reader.Store]. The other questions are about the table alone.
func (d stored) Search(ctx context.Context, f reader.Filter, p reader.Page) (reader.Found, error) {
	return d.both.Search(ctx, f, p)
}
