//go:build integration

package e2e

import (
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// kept is a decision as the table has it.
type kept struct {
	Name, ID, Path, Service, OPA, Caller, Revision string
	Allowed                                        *bool
	Result, Failed, Password                       bool
	Token                                          string
	Erased, Masked                                 []string
}

// stored are all rows, by the name of the question.
func (s *system) stored() map[string][]kept {
	s.t.Helper()
	const every = `SELECT raw->'input'->>'ask' AS name, decision_id AS id, path, service, opa_version AS opa, labels->>'name' AS caller,
		bundles->'shop'->>'revision' AS revision, allowed, raw ? 'result' AS result, jsonb_typeof(raw->'error') = 'object' IS TRUE AS failed,
		raw->'input' ? 'password' AS password, coalesce(raw->'input'->>'token', '') AS token,
		ARRAY(SELECT jsonb_array_elements_text(raw->'erased')) AS erased, ARRAY(SELECT jsonb_array_elements_text(raw->'masked')) AS masked
		FROM decision_logs`
	rows, err := s.connect().Query(s.t.Context(), every)
	if err != nil {
		s.t.Fatal(err)
	}
	found := map[string][]kept{}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[kept])
	if err != nil {
		s.t.Fatal(err)
	}
	for _, k := range all {
		found[k.Name] = append(found[k.Name], k)
	}
	return found
}

// uploaded waits until the OPA has nothing left: its dropped decisions are exactly those without a 2xx. A call with uploads
// of many decisions cannot check that, as its OPA counts uploads.
func (c *caller) uploaded() error {
	if c.limited && !c.exact {
		return nil
	}
	state, err := c.opa.State(c.t.Context())
	if err != nil {
		return err
	}
	taken, answers, fault := c.witness.state()
	if fault != nil {
		return fault
	}
	if missing, dropped := len(c.put)-len(taken), c.dropped(state); missing != dropped {
		return fmt.Errorf("%s: of %d decisions %d were not taken, and OPA dropped %d; uploads %v", c.name, len(c.put), missing, dropped, answers)
	}
	if !c.limited && c.dropped(state) != 0 {
		c.t.Errorf("%s: OPA dropped %d, %v", c.name, c.dropped(state), state.Counters)
	}
	return nil
}

// judge holds the rows against what was asked and what the OPA was told.
func (c *caller) judge(stored map[string][]kept) {
	t := c.t
	taken, answers, fault := c.witness.state()
	if fault != nil {
		t.Fatal(fault)
	}
	late := 0
	for name, a := range c.put {
		rows := stored[name]
		switch {
		case len(rows) == 1:
			c.compare(a, rows[0])
		case len(rows) > 1:
			t.Errorf("%s is in the table %d times", name, len(rows))
		case taken[name] > 0:
			t.Errorf("%s is not in the table, and OPA was told that it was taken", name)
		case !c.limited:
			t.Errorf("%s was not taken and is not in the table", name)
		}
		if len(rows) == 1 && taken[name] == 0 {
			late++
		}
	}
	if c.limited && len(c.put) == len(taken) {
		t.Errorf("%s: the buffer was large enough, which shows nothing", c.name)
	}
	t.Logf("%s: asked %d, taken %d, in the table without OPA having been told so %d, uploads by status %v", c.name, len(c.put), len(taken), late, answers)
}

func (c *caller) compare(a asked, got kept) {
	complain := func(format string, args ...any) {
		c.t.Helper()
		c.t.Errorf("%s: "+format, append([]any{got.Name}, args...)...)
	}
	if a.id != "" && got.ID != a.id {
		complain("decision_id %q, and OPA gave %q", got.ID, a.id)
	}
	if got.Path != a.path || got.OPA != c.version || got.Caller != c.name || got.Revision != a.revision {
		complain("path %q, OPA %q, label %q, revision %q", got.Path, got.OPA, got.Caller, got.Revision)
	}
	if (got.Allowed == nil) != (a.allowed == nil) || got.Allowed != nil && *got.Allowed != *a.allowed {
		complain("allowed is %v at %s", got.Allowed, a.path)
	}
	if got.Result != a.result || got.Failed != a.failed {
		complain("result %v, error %v", got.Result, got.Failed)
	}
	var erased, masked []string
	token := ""
	if a.secrets {
		erased, masked, token = []string{"/input/password"}, []string{"/input/token"}, "**REDACTED**"
	}
	if got.Password || got.Token != token || !slices.Equal(got.Erased, erased) || !slices.Equal(got.Masked, masked) {
		complain("password there: %v, token %q, erased %v, masked %v", got.Password, got.Token, got.Erased, got.Masked)
	}
}
