package cold_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"docket/internal/history/archive"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/record/subject"
	"docket/internal/testkit/archivetest"
	"docket/internal/testkit/readertest"
)

// whos are values in the input, as Postgres writes them, and as a question may.
var whos = []string{
	`"ann"`, `"anna"`, `"a/*"`, `"a/b"`, `""`, `"1"`, `1`, `1.0`, `true`, `"true"`, `null`, `["ann"]`, `{"0": "ann"}`, `"` + strings.Repeat("long", 30) + `1"`, `"` + strings.Repeat("long", 30) + `2"`,
	`"é\"\\"`, `"�"`, `"\ud800"`, `"\u0061nn"`, `10e-1`, `not JSON`,
}

// A search for a value of the input has what a look at each decision has. The subjects of the files are that value, or
// another one.
func TestSearch_SubjectAsOneByOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		var all []reader.Decision
		for i := range rapid.IntRange(1, 40).Draw(rt, "decisions") {
			d := made(i, i/4)
			if who := rapid.SampledFrom(whos).Draw(rt, "who"); json.Valid([]byte(who)) && who != `"\ud800"` {
				d.Raw = bytes.Replace(d.Raw, []byte(`"input":{`), []byte(`"input":{"a/b":[`+who+`],"who":`+who+`,`), 1)
			}
			all = append(all, d)
		}
		text := rapid.SampledFrom([]string{"input:/who", "input:/a~1b/0", "requested_by:host", "label:app", "decision_id"}).Draw(rt, "subject")
		by, err := subject.Parse(text)
		if err != nil {
			rt.Fatal(err)
		}
		// Each file has few rows, so most rule out most values.
		rows := int64(rapid.IntRange(1, 10).Draw(rt, "rows of a file"))
		if _, err := archivetest.WriteWith(t.Context(), archive.Dir(dir), rows, func(c *archive.Carrier) { c.Subject = by }, all...); err != nil {
			rt.Fatal(err)
		}
		f := reader.Filter{}
		for range rapid.IntRange(1, 2).Draw(rt, "matches") {
			f.Matches = append(f.Matches, reader.Match{
				In:      rapid.SampledFrom([]string{"input", "raw"}).Draw(rt, "in"),
				Pointer: rapid.SampledFrom([]string{"/who", "/a~1b/0", "/a~1b", "/input/who", "/input/a~1b/0"}).Draw(rt, "pointer"),
				Value:   []byte(rapid.SampledFrom(whos).Draw(rt, "value")),
			})
			if rapid.IntRange(0, 9).Draw(rt, "any value") == 0 {
				f.Matches[len(f.Matches)-1].Value = nil
			}
		}
		var want []string
		for _, d := range all {
			if f.Fits(d) {
				want = append(want, d.ID)
			}
		}
		oldest := rapid.Bool().Draw(rt, "oldest")
		store := cold.Store{Table: &readertest.Store{}, Days: days(archive.Dir(dir))}
		var got []string
		for p := (reader.Page{Limit: 7, Oldest: oldest}); ; {
			found, err := store.Search(t.Context(), f, p)
			if err != nil || len(found.NotLooked) > 0 {
				rt.Fatal(found.NotLooked, err)
			}
			for _, d := range found.Decisions {
				got = append(got, d.ID)
			}
			if p.After = found.Next; p.After == "" {
				break
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			rt.Fatalf("%+v by %s: %q, want %q", f.Matches, text, got, want)
		}
	})
}
