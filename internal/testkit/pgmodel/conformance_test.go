package pgmodel_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/postgres/db"
	"docket/internal/testkit/pgmodel"
	"docket/internal/testkit/storetest"
)

// The model keeps every promise that a real server keeps; internal/postgres runs the same cases against one.
func TestModel_KeepsThePromisesOfAServer(t *testing.T) {
	t.Parallel()
	for _, c := range storetest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := pgmodel.New(pgmodel.Config{Unknown: func(sql string) {
					if !storetest.Nonsense(sql) {
						t.Errorf("the model does not know %q", sql)
					}
				}})
				t.Cleanup(s.Close)
				c.Run(t, model{s})
			})
		})
	}
}

type model struct{ *pgmodel.Server }

func (m model) Config() db.Config {
	return db.Config{URL: "postgres://docket@db:5432/docket?sslmode=disable", Dialer: m.Dial}
}

func (m model) Refuse(_ testing.TB, id string, f storetest.Fault) func() {
	fault := pgmodel.Fault{Point: pgmodel.Insert, Count: -1, SQLSTATE: f.Code, Constraint: f.Constraint, Column: f.Column, Table: f.Table}
	if id != "" {
		fault.Row = func(r pgmodel.Row) bool { return r.DecisionID == id }
	}
	return m.Inject(fault)
}

func (m model) Check(_ testing.TB, name string, ids ...string) {
	m.Constrain(pgmodel.Constraint{Name: name, Columns: []string{"decision_id"}, Refuses: func(r pgmodel.Row) bool {
		return slices.Contains(ids, r.DecisionID)
	}})
}

func (m model) RefuseLate(_ testing.TB, code string) {
	m.Inject(pgmodel.Fault{Point: pgmodel.Constraints, Count: -1, SQLSTATE: code})
	// A commit without a row has nothing to check: the probe's last commit passes, as on a server.
	m.Inject(pgmodel.Fault{Point: pgmodel.Commit, Count: -1, SQLSTATE: code, Row: func(pgmodel.Row) bool { return true }})
}

func (m model) Slow(_ testing.TB, d time.Duration) func() {
	return m.Inject(pgmodel.Fault{Point: pgmodel.Insert, Count: -1, Delay: d})
}

func (m model) SlowCommit(_ testing.TB, d time.Duration) {
	m.Inject(pgmodel.Fault{Point: pgmodel.Commit, Count: -1, Delay: d})
}

func (m model) Break(_ testing.TB, code string) {
	if code == "42P10" {
		m.DropIdentity()
		return
	}
	m.Inject(pgmodel.Fault{Point: pgmodel.Insert, Count: -1, SQLSTATE: code})
}

func (m model) NoCopy(testing.TB) db.Config {
	m.RefuseCopy()
	return m.Config()
}

func (m model) Lock(testing.TB) func()     { return m.Server.Lock() }
func (m model) ReadOnly(testing.TB) func() { return m.Server.ReadOnly() }
func (m model) Kill(testing.TB)            { m.Server.Kill() }
func (m model) Busy(testing.TB)            { synctest.Wait() }
func (m model) Count(testing.TB) int       { return len(m.Rows()) }

func (m model) Cut(_ testing.TB, at storetest.Cut) {
	m.Inject(pgmodel.Fault{Cut: true, Point: map[storetest.Cut]pgmodel.Point{
		storetest.BeforeInsert: pgmodel.Insert, storetest.AfterInsert: pgmodel.InsertAnswered, storetest.InCopy: pgmodel.Copying,
		storetest.BeforeCommit: pgmodel.Commit, storetest.AfterCommit: pgmodel.CommitApplied,
	}[at]})
}

func (m model) Mask(testing.TB) {
	m.Alter(func(r *pgmodel.Row) bool {
		r.Raw = []byte(`"masked"`)
		return true
	})
}

func (m model) Erase(testing.TB) {
	m.each(func(r *pgmodel.Row) { r.Raw = []byte(`"erased"`) })
}

func (m model) Forget(testing.TB) { m.each(func(r *pgmodel.Row) { r.Sum = nil }) }

// each changes every row that is stored.
func (m model) each(change func(*pgmodel.Row)) {
	for _, r := range m.Rows() {
		change(&r)
		m.Put(r)
	}
}

func (m model) Raw(_ testing.TB, id string, at time.Time) string {
	for _, r := range m.Rows() {
		if r.DecisionID == id && r.Time.Equal(at.Add(-time.Duration(at.Nanosecond()%1000))) {
			return string(r.Raw)
		}
	}
	return ""
}
