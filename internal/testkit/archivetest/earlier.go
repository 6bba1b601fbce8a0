package archivetest

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"docket/internal/history/archive"
)

//go:embed testdata/earlier
var earlier embed.FS

const earlierDir = "testdata/earlier"

// EarlierDay is the day of the archives of [Earlier].
var EarlierDay = archive.Day{Time: time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC)}

// EarlierRows is how many decisions each of them has.
const EarlierRows = 12

// EarlierArchive is an archive that the program of an earlier commit wrote.
type EarlierArchive struct {
	Commit  string
	Format  int
	Sums    bool // the manifest has sums of blocks
	More    bool // the table had raw_sha256, raw_bytes and unfaithful
	Letters int  // dead letters that were closed on the day
}

// Earlier returns an archive of each form that was ever written, the oldest first. Testdata says how they were made.
func Earlier() []EarlierArchive {
	return []EarlierArchive{
		{Commit: "6a590c11", Format: archive.FormatLines},
		{Commit: "da2c82f0", Format: archive.FormatLines, More: true, Letters: 2},
		{Commit: "cb5edda0", Format: archive.FormatParquet, More: true},
		{Commit: "ebfda38f", Format: archive.FormatParquet, More: true, Letters: 2},
		{Commit: "e6768a36", Format: archive.FormatParquet, More: true, Sums: true},
	}
}

// Copy writes the archive to a directory that does not exist yet.
func (e EarlierArchive) Copy(dir string) error {
	from, err := fs.Sub(earlier, earlierDir+"/"+e.Commit)
	if err != nil {
		return err
	}
	return os.CopyFS(filepath.Clean(dir), from)
}

// Statements returns the statements that stored the decisions before they were archived.
func (e EarlierArchive) Statements() (statements []string, err error) {
	names := []string{"sample.sql"}
	if e.More {
		names = append(names, "more.sql")
	}
	for _, name := range names {
		b, err := earlier.ReadFile(earlierDir + "/" + name)
		if err != nil {
			return nil, err
		}
		statements = append(statements, string(b))
	}
	return statements, nil
}

// EarlierID is the id of one of the decisions, from 1 to [EarlierRows].
func EarlierID(n int) string { return fmt.Sprintf("decision-%d", n) }
