package archive

import (
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/archive/inventory"
)

// decisionsTable is the table of decisions in answers, beside [archive.LettersName].
const decisionsTable = "decision_logs"

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

type jsonHeld struct {
	Table    string `json:"table"`
	Day      string `json:"day"`
	Location string `json:"place"`
	Rows     int64  `json:"rows_about"`
	Bytes    int64  `json:"bytes"`
}

func heldOf(h archive.Held) jsonHeld {
	return jsonHeld{Table: decisionsTable, Day: h.Day.String(), Location: string(h.Location), Rows: h.Rows, Bytes: h.Bytes}
}

type jsonArchive struct {
	Name       string    `json:"name"`
	Table      string    `json:"table"`
	Day        string    `json:"day"`
	Format     string    `json:"format"` // parquet or jsonl
	Rows       int64     `json:"rows"`
	Bytes      int64     `json:"bytes"`
	Files      int       `json:"files"`
	Hash       string    `json:"hash"`
	Superseded bool      `json:"superseded"`
	CreatedAt  time.Time `json:"created_at"`
	CreatedBy  string    `json:"created_by"`
	Verified   *bool     `json:"verified,omitempty"`
	Error      string    `json:"error,omitempty"`
	// MissingFiles are files that the manifest names and the place does not have.
	MissingFiles []string `json:"missing_files,omitempty"`
}

func archiveOf(a inventory.Archive) jsonArchive {
	return jsonArchive{
		Name: a.Name, Table: a.Table, Day: a.Day, Format: formatOf(a.Format), Rows: a.Rows, Bytes: a.Bytes, Files: a.Files, Hash: a.Hash, Superseded: a.Superseded,
		CreatedAt: a.CreatedAt, CreatedBy: a.CreatedBy,
	}
}

// listedOf is an archive in a list, with the files that are missing.
func listedOf(a inventory.Archive) jsonArchive {
	j := archiveOf(a)
	j.MissingFiles = a.Missing
	return j
}

func formatOf(format int) string {
	if format == archive.FormatParquet {
		return formatParquet
	}
	return formatLines
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
	Missing   []string `json:"missing,omitempty"` // archives that the day needs
}

func restoredOf(r archive.Restored) jsonRestored {
	return jsonRestored{
		Table: decisionsTable, Day: r.Day.String(), Archives: r.Archives, Lines: r.Lines, Stored: r.Stored, Equal: r.Equal, Again: r.Again, Differs: r.Differs,
		Conflicts: append([]string{}, r.Conflicts...), Seconds: r.Duration.Seconds(), Missing: r.Missing,
	}
}
