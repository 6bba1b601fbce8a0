//go:build integration

package historydb_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"docket/internal/history/reader"
	"docket/internal/postgres/historydb"
	"docket/internal/testkit/pgtest"
)

// TestHidden_AnswersSayIt: rows that a policy keeps from a role are in none of its answers, and each answer says so. A role that sees all
// rows is told nothing.
func TestHidden_AnswersSayIt(t *testing.T) {
	t.Parallel()
	const all, few = `CREATE POLICY everything ON decision_logs USING (true)`, `CREATE POLICY few ON decision_logs USING (decision_id = 'alpha')`
	for name, c := range map[string]struct {
		policies string
		hides    bool
	}{
		"no policy":                  {"", true},
		"some rows":                  {few, true},
		"all rows":                   {all, false},
		"all rows and some":          {all + `; ` + few, false},
		"all rows of this role":      {`CREATE POLICY everything ON decision_logs FOR SELECT TO ROLE USING (true)`, false},
		"all rows of another role":   {`CREATE POLICY everything ON decision_logs TO pg_monitor USING (true); ` + few, true},
		"all rows to change":         {`CREATE POLICY everything ON decision_logs FOR UPDATE USING (true)`, true},
		"all rows, with a limit":     {all + `; CREATE POLICY less ON decision_logs AS RESTRICTIVE USING (decision_id = 'alpha')`, true},
		"a limit of another role":    {all + `; CREATE POLICY less ON decision_logs AS RESTRICTIVE TO pg_monitor USING (false)`, false},
		"a limit of what is written": {all + `; CREATE POLICY less ON decision_logs AS RESTRICTIVE WITH CHECK (false)`, false},
		"policies that do not bind":  {few + `; ALTER TABLE decision_logs DISABLE ROW LEVEL SECURITY`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := pgtest.New(t)
			save(t, open(t, d.URL, 0), row("alpha", noon, `{}`), row("beta", noon, `{}`))
			as := d.Role(t, "SELECT, INSERT")
			role, err := url.Parse(as)
			check(t, err)
			d.Exec(t, `ALTER TABLE decision_logs ENABLE ROW LEVEL SECURITY; `+strings.ReplaceAll(c.policies, "ROLE", role.User.Username()))
			r := historydb.NewReader(open(t, as, 0).DB)
			ctx := t.Context()
			for question, ask := range map[string]func() (int, error){
				"by id": func() (int, error) {
					all, err := r.ByID(ctx, "beta")
					return len(all), err
				},
				"by the first characters": func() (int, error) {
					all, err := r.Begins(ctx, "bet", 5)
					return len(all), err
				},
				"by identities": func() (int, error) {
					all, err := r.Having(ctx, []reader.Spot{{Time: noon, ID: "beta"}})
					return len(all), err
				},
				"a search": func() (int, error) {
					found, err := r.Search(ctx, reader.Filter{Since: noon.Add(-time.Hour)}, reader.Page{Limit: 10})
					check(t, err)
					var parts reader.Parts
					for _, g := range found.NotLooked {
						parts.Miss(g.Name, errors.New(g.Why))
					}
					return len(found.Decisions) - 1, parts.Err() // without alpha
				},
				"counts": func() (int, error) {
					lines, err := r.Stats(ctx, reader.StatsQuery{Since: noon.Truncate(time.Hour), Until: noon.Truncate(time.Hour).Add(time.Hour), Step: time.Hour})
					n := -1
					for _, l := range lines {
						for _, more := range l.Counts {
							n += int(more)
						}
					}
					return n, err
				},
				"new decisions": func() (int, error) {
					_, tail, err := r.Follow(ctx, reader.Filter{}, reader.Tail{}, 1, false)
					if tail.Mark == nil {
						t.Error("there is nothing to follow from")
					}
					return 1, err
				},
			} {
				n, err := ask()
				if partial := reader.AsPartial(err); (partial != nil) != c.hides || err != nil && partial == nil {
					t.Errorf("%s: %v", question, err)
				} else if c.hides && !strings.Contains(partial.Error(), "the rows of decision_logs: row-level security binds this role") {
					t.Errorf("%s: %v", question, partial)
				}
				if !c.hides && n != 1 {
					t.Errorf("%s: %d decisions", question, n)
				}
			}
		})
	}
}
