package archive

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// relied is a day of a database that may need archives.
type relied struct {
	*stepping
	needed bool
}

func (r relied) Open(context.Context, Day) (OpenDay, error) { return r, nil }

func (r relied) Archived(context.Context) (bool, error) { return r.needed, nil }

// A directory that is not mounted is not made again: its archives would be elsewhere than those before.
func TestArchive_DirectoryThatIsNotMounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ needed, there, refused bool }{
		"nothing was archived":       {},
		"archives are needed":        {needed: true, refused: true},
		"the directory is there":     {needed: true, there: true},
		"the first, made beforehand": {there: true},
	} {
		dir := filepath.Join(t.TempDir(), "archive")
		if c.there {
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		table := relied{&stepping{where: Leaving, lines: fewLines(5)}, c.needed}
		day, run := dayNamed(t, "2026-03-04"), Carrier{Table: table, Shelf: Dir(dir), By: "desk", Docket: "test", Now: time.Now}
		done, err := run.Archive(t.Context(), day, false)
		refused, is := errors.AsType[*CannotError](err)
		if is != c.refused || is && !strings.Contains(refused.Hint(), "mount it") || done.Dropped == c.refused || table.dropped == c.refused {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		if _, err := os.Stat(dir); (err == nil) == c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}
