//go:build integration

package historydb_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"docket/internal/history/archive"
)

// A host whose clock is ahead takes no day out that is too recent for the database: answers about it look into no archive.
func TestArchive_ClockAhead(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.day = archive.DayOf(time.Now().AddDate(0, 0, -1))
	a.settle()
	a.rows(1, 10)
	before := a.text()
	a.c.Now = func() time.Time { return time.Now().AddDate(0, 0, 3) }
	done, err := a.c.Archive(t.Context(), a.day, false)
	if refused := (*archive.CannotError)(nil); !errors.As(err, &refused) || !strings.Contains(err.Error(), "the clock of the database says") || done.Dropped {
		t.Errorf("%+v, %v", done, err)
	}
	if after := a.text(); after != before || before == "" {
		t.Errorf("the table has %d bytes of rows, and had %d", len(after), len(before))
	}
}
