//go:build integration

package ledgerdb_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// TestAudits_BothWays: pages in windows have each line once, by person, act and time.
func TestAudits_BothWays(t *testing.T) {
	t.Parallel()
	l := newLedger(t)
	ctx := t.Context()
	if found, err := l.Audits(ctx, ledger.AuditQuery{Limit: 5}); err != nil || len(found.Lines) != 0 || found.Next != 0 {
		t.Fatal("an empty audit", found, err)
	}
	for _, sql := range []string{
		`INSERT INTO dead_letter_audit (at, dead_letter_id, act, actor, why, attempts, diff) SELECT now() - make_interval(mins => 9000 - n), md5(n::text), CASE n % 3 WHEN 0 THEN 'closed' ELSE 'entered' END, CASE n % 900 WHEN 0 THEN 'mara' ELSE 'desk' END, 'w', 0, CASE n % 900 WHEN 0 THEN 'd' END FROM generate_series(1, 9000) AS n`,
	} {
		l.DB.Exec(t, sql)
	}
	for name, q := range map[string]ledger.AuditQuery{
		"a person": {By: "mara"}, "acts": {Acts: []ledger.Act{ledger.Closed}, Limit: 400}, "a day": {Since: time.Now().Add(-24 * time.Hour), Until: time.Now().Add(-12 * time.Hour), Limit: 100}, "none": {By: "nobody"}, "before": {By: "desk", Until: time.Now().Add(-8000 * time.Minute), Limit: 300},
	} {
		q.Limit = max(q.Limit, 3)
		var down, up []int64
		var pages []ledger.Audits
		for one := q; ; {
			found, err := l.Audits(ctx, one)
			check(t, err)
			for _, a := range found.Lines {
				down = append(down, a.ID)
				if !q.Fits(&a) || a.Original != nil || a.Diff != "" || a.Withheld != (a.By == "mara") {
					t.Errorf("%s: %+v", name, a)
				}
			}
			if pages = append(pages, found); found.Next == 0 {
				break
			}
			one.Before = found.Next
		}
		var want []int64
		sql := `SELECT coalesce(array_agg(audit_id ORDER BY audit_id DESC), '{}') FROM dead_letter_audit WHERE ($1 = '' OR actor = $1) AND (cardinality($2::text[]) = 0 OR act = ANY($2)) AND ($3::timestamptz IS NULL OR at >= $3) AND ($4::timestamptz IS NULL OR at < $4)`
		acts := []string{}
		for _, a := range q.Acts {
			acts = append(acts, string(a))
		}
		check(t, pgxConnect(t, l.DB.URL).QueryRow(ctx, sql, q.By, acts, orNil(q.Since), orNil(q.Until)).Scan(&want))
		if !slices.Equal(down, want) {
			t.Fatalf("%s: %d lines down, want %d", name, len(down), len(want))
		}
		if len(pages) < 2 {
			continue
		}
		last := pages[len(pages)-1].Lines
		if len(last) == 0 {
			continue
		}
		for one, n := q, 0; n < 100; n++ {
			if one.After = last[0].ID; n > 0 {
				one.After = up[0]
			}
			found, err := l.Audits(ctx, one)
			check(t, err)
			var ids []int64
			for _, a := range found.Lines {
				ids = append(ids, a.ID)
			}
			if up = append(ids, up...); found.Next == 0 {
				break
			}
		}
		if !slices.Equal(up, down[:len(down)-len(last)]) {
			t.Errorf("%s: %d lines up, want %d", name, len(up), len(down)-len(last))
		}
	}
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// TestAudits_OfGroupsAndRules: people and rules are found by their exact names, in both audits, and pages have each line once.
func TestAudits_OfGroupsAndRules(t *testing.T) {
	t.Parallel()
	d, all := threeLetters(t)
	r := d.ruled(ledger.Rule{Act: ledger.Closed, Topic: original, Most: 2})
	d.turn(r)
	d.turn(r) // it stops itself
	check(t, d.AssignGroup(t.Context(), fingerprint, "oleg", by("mara")))
	found, err := d.Audits(t.Context(), ledger.AuditQuery{By: r.Actor().Name, Acts: ledger.PeopleActs(), Limit: 10})
	check(t, err)
	var ids []string
	for _, a := range found.Lines {
		ids = append(ids, a.LetterID)
	}
	slices.Sort(ids)
	same(t, ids, []string{min(all[0].ID, all[1].ID), max(all[0].ID, all[1].ID)})
	for _, c := range []struct {
		q    ledger.AuditQuery
		want []ledger.Act
	}{
		{ledger.AuditQuery{}, []ledger.Act{ledger.Assigned, "rule_stopped", "rule_added"}}, {ledger.AuditQuery{By: r.Actor().Name}, []ledger.Act{"rule_stopped"}}, {ledger.AuditQuery{By: "ann"}, []ledger.Act{"rule_added"}},
		{ledger.AuditQuery{Fingerprint: fingerprint, Acts: []ledger.Act{ledger.Assigned}}, []ledger.Act{ledger.Assigned}}, {ledger.AuditQuery{Fingerprint: strings.Repeat("0", 16)}, nil},
		{ledger.AuditQuery{Until: time.Now().Add(-time.Hour)}, nil}, {ledger.AuditQuery{Since: time.Now().Add(-time.Hour)}, []ledger.Act{ledger.Assigned, "rule_stopped", "rule_added"}},
	} {
		var down []ledger.Act
		for c.q.Groups, c.q.Limit = true, 1; ; {
			found, err := d.Audits(t.Context(), c.q)
			check(t, err)
			for i := range found.Lines {
				a := &found.Lines[i]
				if down = append(down, a.Act); !c.q.Fits(a) || a.Fingerprint != fingerprint || a.Login == "" || (a.Rule == r.ID) == (a.Act == ledger.Assigned) {
					t.Errorf("%+v", a)
				}
			}
			if c.q.Before = found.Next; found.Next == 0 {
				break
			}
		}
		same(t, down, c.want)
	}
	found, err = d.Audits(t.Context(), ledger.AuditQuery{Groups: true, After: 1, Limit: 1})
	check(t, err)
	same(t, []any{len(found.Lines), found.Next}, []any{1, found.Lines[0].ID})
}
