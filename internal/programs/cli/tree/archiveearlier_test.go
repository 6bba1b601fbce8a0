package tree

import (
	"path/filepath"
	"strings"
	"testing"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// Commands read archives that programs of earlier commits wrote.
func TestArchive_OfEarlierPrograms(t *testing.T) {
	t.Parallel()
	for _, e := range archivetest.Earlier() {
		t.Run(e.Commit, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "shelf")
			if err := e.Copy(dir); err != nil {
				t.Fatal(err)
			}
			w := &world{store: decisions(1), days: young{}, shelf: archive.Dir(dir), environ: []string{"DOCKET_ARCHIVE_TO=" + dir}}
			w.both = func(table *readertest.Store, days *cold.Days) reader.Store {
				return joined{table, cold.Store{Table: table, Days: days}}
			}
			archives := 1
			if e.Letters > 0 {
				archives = 2
			}
			if r := w.call("archive", "list"); r.code != 0 || strings.Count(r.out, "2026-08-01-001-") != archives {
				t.Errorf("list: exit %d\n%s%s", r.code, r.out, r.err)
			}
			if r := w.call("archive", "verify", "--all"); r.code != 0 || strings.Count(r.out, ": ok, ") != archives {
				t.Errorf("verify: exit %d\n%s%s", r.code, r.out, r.err)
			}
			for _, command := range []string{"logs", "why"} {
				if r := w.call(command, archivetest.EarlierID(3)); r.code != 0 || !strings.Contains(r.out, "archived day 2026-08-01") || strings.Contains(r.out+r.err, "PARTIAL") {
					t.Errorf("%s: exit %d\n%s%s", command, r.code, r.out, r.err)
				}
			}
			if r := w.call("logs", "--since", "2026-08-01", "--until", "2026-08-02", "--denied", "-o", "id"); r.code != 0 || strings.Count(r.out, "\n") != 6 {
				t.Errorf("logs: exit %d\n%s%s", r.code, r.out, r.err)
			}
		})
	}
}
