package historydb

import (
	"github.com/jackc/pgx/v5"

	"docket/internal/history/reader"
)

// steady reads decisions with one request, between two looks at the table's days.
type steady struct {
	before, after layout
	found         []reader.Decision
}

// read takes the answers to layoutSQL, to a statement, and to layoutSQL again.
func (s *steady) read(answers pgx.BatchResults, of wanted) (err error) {
	if s.before, err = layoutOf(answers.Query()); err != nil {
		return err
	}
	rows, err := answers.Query()
	if err != nil {
		return err
	}
	if s.found, err = of.collect(rows); err != nil {
		return err
	}
	s.after, err = layoutOf(answers.Query())
	return err
}

// whole reports whether the statement saw all rows: no day was being archived, none was taken out meanwhile, and no policy hides rows.
func (s *steady) whole() bool {
	return len(s.before.days) == 0 && !s.before.hidden && s.before.same(s.after)
}
