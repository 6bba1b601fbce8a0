package deskcli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/archive"
)

type jsonArchived struct {
	Table   string  `json:"table"` // decision_logs or dead_letters
	Day     string  `json:"day"`
	Archive string  `json:"archive"`
	Rows    int64   `json:"rows"`
	Bytes   int64   `json:"bytes"`
	Files   int     `json:"files"`
	Dropped bool    `json:"dropped"`
	Reused  bool    `json:"reused"`
	Late    bool    `json:"late"`
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

func archivedOf(d archive.Archived, err error) jsonArchived {
	j := jsonArchived{
		Table: decisionsTable, Day: d.Day.String(), Archive: d.Archive, Rows: d.Rows, Bytes: d.Bytes, Files: d.Files, Dropped: d.Dropped, Reused: d.Reused, Late: d.Late,
		Seconds: d.Duration.Seconds(),
	}
	if err != nil {
		j.Error = err.Error()
	}
	return j
}

type jsonRestored struct {
	Table     string   `json:"table"`
	Day       string   `json:"day"`
	Archives  []string `json:"archives"`
	Lines     int64    `json:"lines"`
	Stored    int64    `json:"stored"`
	Equal     int64    `json:"equal"`
	Again     int64    `json:"again"`
	Differs   int64    `json:"differs"`
	Conflicts []string `json:"conflicts"`
	Seconds   float64  `json:"seconds"`
}

func restoredOf(r archive.Restored) jsonRestored {
	return jsonRestored{
		Table: decisionsTable, Day: r.Day.String(), Archives: r.Archives, Lines: r.Lines, Stored: r.Stored, Equal: r.Equal, Again: r.Again, Differs: r.Differs,
		Conflicts: append([]string{}, r.Conflicts...), Seconds: r.Duration.Seconds(),
	}
}

// decisionsTable is the table of decisions in answers, beside [archive.LettersName].
const decisionsTable = "decision_logs"

type jsonHeld struct {
	Table string `json:"table"`
	Day   string `json:"day"`
	Place string `json:"place"`
	Rows  int64  `json:"rows_about"`
	Bytes int64  `json:"bytes"`
}

func heldOf(h archive.Held) jsonHeld {
	return jsonHeld{Table: decisionsTable, Day: h.Day.String(), Place: string(h.Place), Rows: h.Rows, Bytes: h.Bytes}
}

// wouldArchive is the dry run.
func (s *session) wouldArchive(a archiving, d due) error {
	if s.asJSON {
		all := make([]jsonHeld, 0, len(d.days)+len(d.letters))
		for _, h := range d.days {
			all = append(all, heldOf(h))
		}
		for _, h := range d.letters {
			all = append(all, jsonHeld{Table: archive.LettersName, Day: h.Day.String(), Place: "ledger", Rows: h.Letters, Bytes: h.Bytes})
		}
		s.print(listOf(all, "", func(h jsonHeld) jsonHeld { return h }))
		return nil
	}
	if d.nothing() {
		s.noneDue(a)
		return nil
	}
	var rows [][]cell
	for _, h := range d.days {
		about := "unknown"
		if h.Rows >= 0 {
			about = grouped(h.Rows)
		}
		rows = append(rows, cells(h.Day.String(), about, sized(h.Bytes), would(h)))
	}
	for _, h := range d.letters {
		about, size := "unknown", ""
		if h.Letters >= 0 {
			about, size = grouped(h.Letters), sized(h.Bytes)
		}
		rows = append(rows, cells(h.Day.String(), about, size, "archive dead letters; the desk removes them later"))
	}
	s.table([]column{{title: "day"}, {title: "rows (estimate)", right: true}, {title: "size in the table", right: true}, {title: "action"}}, rows, "")
	return nil
}

func would(h archive.Held) string {
	switch {
	case h.Place == archive.Shared:
		return "none: shares a partition with other days"
	case h.Place == archive.Leaving:
		return "finish the archive that was interrupted"
	case h.Place == archive.Strays:
		return "move out of the default partition, archive, drop"
	}
	return "archive, drop"
}

type jsonArchive struct {
	Name       string    `json:"name"`
	Table      string    `json:"table"`
	Day        string    `json:"day"`
	Rows       int64     `json:"rows"`
	Bytes      int64     `json:"bytes"`
	Files      int       `json:"files"`
	Hash       string    `json:"hash"`
	Superseded bool      `json:"superseded"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	Verified   *bool     `json:"verified,omitempty"`
	Error      string    `json:"error,omitempty"`
}

func archiveOf(m *archive.Manifest, superseded bool) jsonArchive {
	return jsonArchive{
		Name: m.Name(), Table: m.Table, Day: m.Day, Rows: m.Rows, Bytes: m.Bytes(), Files: len(m.Files), Hash: m.Hash, Superseded: superseded,
		CreatedAt: m.CreatedAt, CreatedBy: m.CreatedBy,
	}
}

func (s *session) archiveList() *cobra.Command {
	var where string
	c := &cobra.Command{
		Use: "list [flags]", Short: "List archives, and days that docket archive left unfinished", DisableFlagsInUseLine: true,
		Example: "  docket archive list --from s3://archive/docket", Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&where, "from", "", whereText)
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "listed, also if there are none", "a manifest is broken, or the command failed")
	c.RunE = s.run(func([]string) (work, error) {
		where, err := s.where("--from", where)
		return func(ctx context.Context) error { return s.listArchives(ctx, where) }, err
	})
	return c
}

func (s *session) listArchives(ctx context.Context, where string) error {
	shelf, let, err := s.shelf(where)
	if err != nil {
		return err
	}
	defer let()
	all, broken := s.archives(ctx, shelf, nil)
	if broken != nil && all == nil {
		return broken
	}
	superseded := archive.Superseded(all)
	if s.asJSON {
		s.print(listOf(all, "", func(m *archive.Manifest) jsonArchive { return archiveOf(m, superseded[m.Name()]) }))
	} else {
		var rows [][]cell
		for _, m := range all {
			note := ""
			if superseded[m.Name()] {
				note = "superseded"
			}
			rows = append(rows, cells(m.Day, contents(m), grouped(m.Rows), sized(m.Bytes()), fmt.Sprint(len(m.Files)), stamped(m.CreatedAt), plain(m.CreatedBy), m.Name(), note))
		}
		s.table([]column{{title: "day"}, {title: "of"}, {title: "rows", right: true}, {title: "bytes", right: true}, {title: "files", right: true}, {title: "made"}, {title: "by", rank: 2},
			{title: "archive", rank: 1}, {title: ""}}, rows, "")
	}
	s.leftOff(ctx)
	return broken
}

// archives are those of decisions and, after them, of dead letters, as [archive.Whole] has each.
func (s *session) archives(ctx context.Context, shelf archive.Shelf, day *archive.Day) ([]*archive.Manifest, error) {
	all, broken := archive.Whole(ctx, shelf, s.sys.Days.Name(), day)
	if wrong := (*archive.BrokenError)(nil); broken != nil && !errors.As(broken, &wrong) {
		return nil, broken
	}
	letters, err := archive.Whole(ctx, shelf, archive.LettersName, day)
	return append(all, letters...), errors.Join(broken, err)
}

func contents(m *archive.Manifest) string {
	if m.Table == archive.LettersName {
		return "dead letters"
	}
	return "decisions"
}

// leftOff tells of days that were taken out of the table and not dropped. The shelf can be looked at without the database.
func (s *session) leftOff(ctx context.Context) {
	held, err := s.sys.Days.Days(ctx, archive.DayOf(s.now()))
	if err != nil {
		s.tell("cannot ask the database for interrupted archives: %v\n", err)
		return
	}
	for _, h := range held {
		if h.Place == archive.Leaving {
			s.tell("%s was interrupted: it is out of the table but not dropped; run docket archive --day %s\n", h.Day, h.Day)
		}
	}
}

func (s *session) archiveVerify() *cobra.Command {
	var a archiving
	c := &cobra.Command{
		Use: "verify {--day DAY | --all} [flags]", Short: "Read archives and check them against their manifests", DisableFlagsInUseLine: true,
		Long: "Read archives and check them against their manifests: size and SHA-256 of each file, count and hash of the rows.\n" +
			"From a bucket this downloads them. Nothing is changed.",
		Example: "  docket archive verify --day 2026-08-01\n  docket archive verify --all --from /srv/docket-archive", Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&a.day, "day", "", "only this `DAY`: YYYY-MM-DD, in UTC")
	c.Flags().BoolVar(&a.all, "all", false, "all days")
	c.Flags().StringVar(&a.where, "from", "", whereText)
	usage(c, []string{"DOCKET_DATABASE_URL", "DOCKET_ARCHIVE_TO"}, "each archive is as its manifest says", "an archive is missing or broken, or the command failed")
	c.RunE = s.run(func([]string) (work, error) { return s.verifyArchives(a) })
	return c
}

func (s *session) verifyArchives(a archiving) (work, error) {
	if (a.day == "") != a.all {
		return nil, misuse("give --day or --all, one of them")
	}
	var day *archive.Day
	if a.day != "" {
		d, err := oneDay(a.day)
		if err != nil {
			return nil, err
		}
		day = &d
	}
	where, err := s.where("--from", a.where)
	return func(ctx context.Context) error { return s.verified(ctx, where, day) }, err
}

func (s *session) verified(ctx context.Context, where string, day *archive.Day) error {
	shelf, let, err := s.shelf(where)
	if err != nil {
		return err
	}
	defer let()
	all, broken := s.archives(ctx, shelf, day)
	if broken != nil {
		s.failed(broken)
	}
	if broken == nil && len(all) == 0 {
		return archive.ErrNone
	}
	bad := broken != nil
	var told []jsonArchive
	superseded := archive.Superseded(all)
	for _, m := range all {
		err := archive.CheckWithin(ctx, shelf, m, archive.MostLine(int64(s.settings.MaxRecordBytes)), nil)
		ok := err == nil
		j := archiveOf(m, superseded[m.Name()])
		if j.Verified = &ok; !ok {
			bad, j.Error = true, err.Error()
			s.failed(err)
		} else if !s.asJSON {
			s.say("%s: ok, %s, %s\n", m.Name(), counted(m.Rows, "row"), sized(m.Bytes()))
		}
		told = append(told, j)
	}
	if s.asJSON {
		s.print(listOf(told, "", func(j jsonArchive) jsonArchive { return j }))
	}
	if bad {
		return endError(1)
	}
	return nil
}
