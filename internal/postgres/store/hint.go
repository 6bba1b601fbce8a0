package store

import (
	"errors"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"docket/internal/postgres/db"
)

// located wraps the error of a COPY with the row at which the server stopped, where it tells that. The rows that were sent
// are at the positions at.
func located(err error, at []int) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	s := db.ServerErrorOf(pg)
	if line := copyLine(pg.Where); line >= 1 && line <= len(at) {
		s.At(at[line-1])
	}
	return s
}

// copyLine is the number of the line of COPY in an error's context, 0 where there is none. The word before the number
// depends on the server's language. COPY is the outermost that speaks there, so its words come last; nothing else of
// the text is looked at.
func copyLine(where string) int {
	const mark = "COPY decision_logs, "
	line := 0
	for text := range strings.Lines(where) {
		text, ok := strings.CutPrefix(text, mark)
		if !ok {
			continue
		}
		from := strings.IndexAny(text, "0123456789")
		if from < 0 {
			continue
		}
		digits := text[from:]
		if to := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); to >= 0 {
			digits = digits[:to]
		}
		line, _ = strconv.Atoi(digits) // too many digits are no line
	}
	return line
}
