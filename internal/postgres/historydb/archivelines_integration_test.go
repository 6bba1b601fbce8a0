//go:build integration

package historydb_test

import (
	"path/filepath"
	"testing"

	"docket/internal/history/archive"
)

// An archive of the release before is of lines. It is restored, and a later one in Parquet supersedes it.
func TestArchive_LinesOfTheReleaseBefore(t *testing.T) {
	t.Parallel()
	a := old(t)
	a.settle()
	a.rows(1, 1500)
	a.Exec(t, `UPDATE decision_logs SET tags = ARRAY['a', NULL, 'b"c'], "odd "" name" = '\x00ff', f = 1e-300 / 3 WHERE req_id % 7 = 0`)
	before := a.text()
	a.c.Lines = true
	lines := a.archive(false)
	if files, err := filepath.Glob(filepath.Join(a.dir, "decision_logs-*.jsonl.gz")); err != nil || len(files) != 3 || !lines.Dropped {
		t.Fatalf("%+v, %v, %v", lines, files, err)
	}
	a.c.Lines = false
	if r := a.restore(); r.Stored != 1500 || a.text() != before {
		t.Fatalf("%+v", r)
	}
	if done := a.archive(false); !done.Dropped || done.Reused || done.Archive == lines.Archive {
		t.Fatalf("%+v", done)
	}
	all, err := archive.Whole(t.Context(), a.c.Shelf, "decision_logs", &a.day)
	if err != nil || len(all) != 2 || !archive.Superseded(all)[lines.Archive] || all[0].Hash != all[1].Hash || all[1].Format != archive.FormatParquet {
		t.Fatalf("%+v, %v", all, err)
	}
	if r := a.restore(); r.Stored != 1500 || len(r.Archives) != 1 || a.text() != before {
		t.Fatalf("%+v", r)
	}
}
