package cold_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// Archives that programs of earlier commits wrote are listed, verified, looked into by id and searched.
func TestEarlierArchives(t *testing.T) {
	t.Parallel()
	for _, e := range archivetest.Earlier() {
		t.Run(e.Commit, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "shelf")
			check(t, e.Copy(dir))
			shelf := archive.Dir(dir)
			all, err := archive.Whole(t.Context(), shelf, archivetest.Table, nil)
			if err != nil || len(all) != 1 {
				t.Fatalf("%d archives, %v", len(all), err)
			}
			m := all[0]
			if m.Day != archivetest.EarlierDay.String() || m.Rows != archivetest.EarlierRows || m.Format != e.Format || len(m.Files) != 1 || len(m.Files[0].Sums) > 0 != e.Sums {
				t.Errorf("%+v", m)
			}
			check(t, archive.ProveWithin(t.Context(), shelf, m, 1<<20))
			d := days(shelf, func(c *cold.Config) { c.Format = cold.Formats() })
			defer d.Close()
			for n := 1; n <= archivetest.EarlierRows; n++ {
				earlierID(t, d, e, n)
			}
			if found := d.Find(t.Context(), []string{"decision-13"}); len(found.Decisions)+len(found.Gaps) > 0 || found.Days != 1 {
				t.Errorf("an id that is not there: %+v", found)
			}
			for name, c := range map[string]struct {
				f    reader.Filter
				want []int
			}{
				"all":       {reader.Filter{}, []int{12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1}},
				"denied":    {reader.Filter{Verdicts: []reader.Verdict{"denied"}}, []int{11, 9, 7, 5, 3, 1}},
				"undefined": {reader.Filter{Verdicts: []reader.Verdict{"undefined"}}, []int{12, 8, 4}},
				"a path":    {reader.Filter{Paths: []string{`authz/"allow"1`}}, []int{11, 9, 7, 3, 1}},
				"a service": {reader.Filter{Services: []string{"shop"}, Since: archivetest.EarlierDay.Add(10 * time.Hour)}, []int{11, 10, 8, 7}},
				"a subject": {reader.Filter{Matches: []reader.Match{{In: "input", Pointer: "/user", Value: json.RawMessage(`"user-3"`)}}}, []int{11, 7, 3}},
			} {
				found := search(t, cold.Store{Table: &readertest.Store{}, Days: d}, c.f, reader.Page{Limit: 20})
				if got, want := idsOf(found.Decisions), earlierIDs(c.want); !slices.Equal(got, want) || len(found.NotLooked) > 0 {
					t.Errorf("%s: %v, want %v; %v", name, got, want, found.NotLooked)
				}
			}
		})
	}
}

// earlierID looks for a decision and compares it with what was stored.
func earlierID(t *testing.T, days *cold.Days, e archivetest.EarlierArchive, n int) {
	t.Helper()
	found := days.Find(t.Context(), []string{archivetest.EarlierID(n)})
	if len(found.Decisions) != 1 || len(found.Gaps) > 0 {
		t.Errorf("%d: %d decisions, %v", n, len(found.Decisions), found.Gaps)
		return
	}
	d := found.Decisions[0]
	var raw struct {
		ID        string `json:"decision_id"`
		Path      string
		Number    json.Number
		Timestamp string
		Input     struct{ User, Text string }
	}
	check(t, json.Unmarshal(d.Raw, &raw))
	at := archivetest.EarlierDay.Add(time.Duration(n) * (100*time.Minute + time.Microsecond))
	if !d.Time.Equal(at) || d.Offset != int64(100+n) || d.Archived == nil || d.Archived.Day != archivetest.EarlierDay.String() || (len(d.Unfaithful) == 2) != (e.More && n == 3) {
		t.Errorf("%d: %+v", n, d)
	}
	if raw.ID != archivetest.EarlierID(n) || raw.Number != "12345678901234567890.50" || raw.Input.Text != "\n\t\"\u2028\u00e9" || raw.Path == "" || raw.Timestamp == "" {
		t.Errorf("%d: the payload is %s", n, d.Raw)
	}
}

func earlierIDs(of []int) (ids []string) {
	for _, n := range of {
		ids = append(ids, archivetest.EarlierID(n))
	}
	return ids
}

func idsOf(all []reader.Decision) (ids []string) {
	for _, d := range all {
		ids = append(ids, d.ID)
	}
	return ids
}
