package archive

import (
	"context"
	"slices"
	"testing"
)

func (s *stepping) Settle(context.Context) error { return nil }

// A storage can carry out the last request of a killed run after the next run removed its files. The manifest names files that
// are gone. It goes with the run after that, unless a dropped day relies on it, or has others' decisions.
func TestUnfinished_ManifestWithoutFiles(t *testing.T) {
	t.Parallel()
	day := dayNamed(t, "2026-03-04")
	m := Manifest{Format: FormatParquet, Table: "decision_logs", Day: day.String(), Generation: 1, Source: Source{ID: "abcdef"}, Attempt: "00000000", Hash: Total{}.Hash(), Files: []File{}}
	for name, of := range map[string]struct {
		left   *Left
		source string
		remove int // files
		but    int
		where  Location // empty: Leaving
		stays  bool
	}{
		"in the table":                  {remove: 2},
		"the day needs another":         {left: &Left{Day: day, Archives: []string{"another"}}, remove: 2},
		"a killed run noted the day":    {left: &Left{Day: day, Archives: []string{}}, remove: 2},
		"the day needs it":              {left: &Left{Day: day, Archives: []string{m.Name()}}, remove: 2, stays: true},
		"it was forgotten with the day": {left: &Left{Day: day, Archives: []string{}, Forgotten: &Forgotten{Archives: []string{m.Name()}}}, remove: 2, stays: true},
		"what it needs is not known":    {left: &Left{Day: day}, remove: 2, stays: true},
		"of another database":           {source: "fedcba", remove: 2, stays: true},
		"the first file is there":       {remove: 2, but: 1, stays: true},
		"the last file is there":        {remove: 1, stays: true},
		"kept in the table":             {remove: 2, where: Attached},
		"late rows alone":               {remove: 2, where: Strays, stays: true},
		"not in the table":              {remove: 2, where: Nowhere, stays: true},
		"beside days of its partition":  {remove: 2, where: Shared, stays: true},
		"the day left":                  {left: &Left{Day: day, Archives: []string{"another"}}, remove: 2, where: Nowhere},
	} {
		dir, of1 := t.TempDir(), m
		if of.source != "" {
			of1.Source.ID = of.source
		}
		files := unfinished(t, Dir(dir), &of1, false)
		for i, file := range files {
			of1.Files = append(of1.Files, File{Name: file})
			if i >= of.but && i < of.remove {
				if err := Dir(dir).Remove(t.Context(), file); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := seal(t.Context(), Dir(dir), &of1); err != nil {
			t.Fatal(err)
		}
		c, table := archiving(Dir(dir), false, of.left, fewLines(5))
		if of.where != "" {
			table.where = of.where
		}
		done, err := c.Archive(t.Context(), day, of.where != "")
		if slices.Contains(AllFiles(t, dir), of1.Name()+manifestSuffix) != of.stays {
			t.Errorf("%s: %v; there: %v", name, err, AllFiles(t, dir))
		}
		if !of.stays && of.where == "" && (err != nil || !slices.Equal(table.needs.Archives, []string{done.Archive})) {
			t.Errorf("%s: %v, needs %v", name, err, table.needs)
		}
	}
}
