//go:build integration

package ledgerdb_test

import (
	"errors"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// TestSecondPerson_ByTwoLogins: a person who proposes by the one way of a desk does not approve by the other.
func TestSecondPerson_ByTwoLogins(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	l := o.entered(1)
	desk := o.person(t, "docket_desk_api")
	names := []struct {
		one, other string
		same       bool
	}{
		{"oidc:alice", "alice", true}, {"alice", " OIDC:Alice", true}, {"oidc:alice@acme.example", "alice", true}, {"alice@acme.example", "oidc:alice", true}, {"oidc:alice@acme.example", "alice@acme.example", true},
		{"oidc:alice", "oidc:bob", false}, {"oidc:alice@acme.example", "oidc:alice@other.example", false}, {"oidc:alice@acme.example", "alice@other.example", false}, {"alice", "alice@acme.example", false}, {"oidc:alice", "alicia", false},
	}
	for _, c := range names {
		for _, pair := range [][2]string{{c.one, c.other}, {c.other, c.one}} {
			var got bool
			check(t, pgxConnect(t, o.URL).QueryRow(t.Context(), `SELECT dead_letters_same_person($1, $2)`, pair[0], pair[1]).Scan(&got))
			if got != c.same || ledger.SamePerson(pair[0], pair[1]) != c.same {
				t.Errorf("%v are one person: %v in the database, %v in Go", pair, got, ledger.SamePerson(pair[0], pair[1]))
			}
		}
	}
	r, err := desk.AddRule(t.Context(), ledger.Rule{Fingerprint: fingerprint, Act: ledger.Closed, Most: 10, Failures: 1, EndsAt: time.Now().Add(time.Hour)}, vouched("oidc:alice"))
	check(t, err)
	j, err := desk.CreateJob(t.Context(), ledger.Job{Act: ledger.Closed, Filter: ledger.Filter{Fingerprint: fingerprint}, Operator: "alice", Vouched: true, Reason: "done"})
	check(t, err)
	p := desk.proposed(t, draft(l), vouched("oidc:alice@acme.example"))
	for _, name := range []string{"alice", "oidc:alice"} {
		_, ofRule := desk.ApproveRule(t.Context(), r.ID, vouched(name))
		_, ofJob := desk.ApproveJob(t.Context(), j.ID, vouched(name))
		for _, err := range []error{ofRule, ofJob} {
			var refused *ledger.ProposalError
			if !errors.As(err, &refused) || refused.Because != ledger.BecauseName {
				t.Errorf("%s approves: %v", name, err)
			}
		}
	}
	o.refuses(t, desk, p.ID, vouched("alice"), ledger.BecauseName)
	if _, err := desk.ApproveRule(t.Context(), r.ID, vouched("oidc:bob")); err != nil {
		t.Error(err)
	}
	if _, err := desk.ApproveJob(t.Context(), j.ID, vouched("oidc:bob")); err != nil {
		t.Error(err)
	}
	if _, err := desk.Approve(t.Context(), p.ID, "-1\n+2", soon, vouched("bob")); err != nil {
		t.Error(err)
	}
}
