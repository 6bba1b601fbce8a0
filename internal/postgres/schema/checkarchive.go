package schema

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/archive/nightly"
)

const (
	noteReadableSQL = `SELECT coalesce(has_table_privilege(to_regclass('dead_letter_notes')::oid, 'SELECT'), false)`
	noteSQL         = `SELECT text, at, clock_timestamp() FROM dead_letter_notes WHERE name = $1`
)

// checkArchive looks how far the archive is that a desk runs by itself. It returns nil where none does, and where the
// role may not read the note.
func checkArchive(ctx context.Context, conn *pgx.Conn) (*Check, error) {
	var readable bool
	if err := conn.QueryRow(ctx, noteReadableSQL).Scan(&readable); err != nil || !readable {
		return nil, err
	}
	var text string
	var wrote, now time.Time
	switch err := conn.QueryRow(ctx, noteSQL, nightly.NoteName).Scan(&text, &wrote, &now); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // there is nothing to say
	case err != nil:
		return nil, err
	}
	note, err := nightly.ParseNote(text, wrote)
	if err != nil || note == nil {
		return &Check{Name: archiveName, Level: Warn, Detail: "the note of the desk cannot be read", Hint: "a later release may have written it: use the same release everywhere"}, nil //nolint:nilerr // the check tells it
	}
	c := archiveCheck(note, now)
	return &c, nil
}

const archiveName = "archive"

// archiveCheck judges a note.
func archiveCheck(n *nightly.Note, now time.Time) Check {
	c := Check{Name: archiveName, Level: Warn, Hint: "`docket archive list` says which days and why"}
	failed := 0
	for _, r := range n.Open() {
		if !r.Waits {
			failed++
		}
	}
	silent := now.Sub(n.Wrote)
	switch {
	case silent > nightly.Silent:
		c.Detail = fmt.Sprintf("no desk has archived or looked for %s", silent.Truncate(time.Minute))
		c.Hint = "check that docket desk runs with DOCKET_ARCHIVE_AFTER; if you removed the setting, archive with docket archive --older-than"
	case failed > 0:
		c.Detail = fmt.Sprintf("%d of the last archives failed", failed)
	case n.State == nightly.Failed:
		c.Detail = "the desk cannot archive: " + n.Why
	case n.Behind(now) > nightly.Late:
		c.Detail = fmt.Sprintf("%d days wait for the archive, the oldest is %s", n.Due, n.Oldest)
	default:
		return Check{Name: archiveName, Detail: fmt.Sprintf("the desk archives days after %d days; %d wait", n.After, n.Due)}
	}
	return c
}
