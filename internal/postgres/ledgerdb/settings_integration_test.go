//go:build integration

package ledgerdb_test

import (
	"sync"
	"testing"
	"time"

	"docket/internal/desk/console/session"
	"docket/internal/desk/console/views"
	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/testkit/pgtest"
)

// A database whose sessions show dates and bytes in other forms has the same ledger.
func TestLedger_OddSettings(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.OddSettings(t)
	d.Ledger = ledgerdb.New(open(t, d.URL, 0).DB)
	one, two := letter(1, "{\"a\":\"\\u00e4\"}"), letter(2, "\x00\\\xff'")
	d.Entered(one, two)
	for _, l := range []ledger.Letter{one, two} {
		shown, err := d.Show(t.Context(), l.ID)
		if err != nil || string(shown.Value) != string(l.Value) || !shown.FirstFailedAt.Equal(l.FirstFailedAt) {
			t.Fatalf("%q, first failed at %v: %v", shown.Value, shown.FirstFailedAt, err)
		}
	}
	list, err := d.List(t.Context(), ledger.Filter{}, ledger.Page{Limit: 10})
	if err != nil || len(list.Entries) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	s := d.Put(two.ID, 7)
	same(t, string(s.Value), string(two.Value))
	if n := d.Entered(home(s, 7)); n.DeadAgain != 1 {
		t.Errorf("the retry came back: %+v", n)
	}
	same(t, d.trail(two.ID), "entered >PENDING, retried PENDING>PROCESSING, died PROCESSING>PENDING")
	d.Sums()
}

// TestLedger_SerializableByDefault has several desks in a database whose transactions are serializable by default. None fails because
// others work.
func TestLedger_SerializableByDefault(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	d.OddSettings(t)
	const desks, letters = 6, 12
	var wait sync.WaitGroup
	for desk := range desks {
		l := ledgerdb.New(open(t, d.URL, 0).DB)
		wait.Go(func() {
			for n := range letters {
				one := letter(int64(desk*letters+n), `{}`)
				if _, err := l.Enter(t.Context(), []ledger.Letter{one}, atMost, ledger.Actor{Name: "desk"}); err != nil {
					t.Errorf("enter: %v", err)
				}
				if _, err := l.Retry(t.Context(), []string{one.ID}, time.Hour, ledger.Actor{Name: "ann", Why: "because"}); err != nil {
					t.Errorf("retry: %v", err)
				}
			}
		})
	}
	wait.Wait()
	d.Sums()
}

// TestStatements_SerializableByDefault: a statement about a view or a session that waits for a row works with it once another has changed
// it.
func TestStatements_SerializableByDefault(t *testing.T) {
	t.Parallel()
	d := pgtest.New(t)
	d.Exec(t, `ALTER DATABASE `+d.Name+` SET default_transaction_isolation = 'serializable'`)
	pg := open(t, d.URL, 0).DB
	v, s := ledgerdb.NewViews(pg), ledgerdb.NewSessions(pg)
	view := views.View{Owner: "vera", Name: "mine", Query: "q", MadeBy: "vera", MadeAt: noon}
	check(t, v.Save(t.Context(), view))
	own := session.Begin(session.NewSecret(), "vera", "viewer", session.Token, []byte{1}, noon)
	check(t, s.Create(t.Context(), own))
	d.Exec(t, `INSERT INTO desk_sessions (id, name, role, made_by, credential, created_at, used_at, ends_at)
		SELECT 'old', name, role, made_by, credential, created_at, used_at, '2020-01-01Z' FROM desk_sessions; UPDATE desk_sessions SET subject = 's'`)
	const changed, used = `UPDATE desk_views SET query = 'other'`, `UPDATE desk_sessions SET role = 'admin'`
	for _, one := range []struct {
		name, change string
		act          func() error
	}{
		{"save a view", changed, func() error { return v.Save(t.Context(), view) }},
		{"remove a view", changed, func() error {
			all, err := v.List(t.Context(), "vera")
			if err != nil {
				return err
			}
			return v.Remove(t.Context(), all[0].ID, "vera")
		}},
		{"log in", used, func() error {
			return s.Create(t.Context(), session.Begin(session.NewSecret(), "otto", "viewer", session.Token, []byte{1}, noon))
		}},
		{"use a session", used, func() error { return s.Touch(t.Context(), own.ID, noon.Add(time.Minute)) }},
		{"log out at the provider", used, func() error {
			_, err := s.EndFrom(t.Context(), session.Origin{Subject: "s"}, noon, noon.Add(time.Minute))
			return err
		}},
		{"log out everywhere", used, func() error { _, err := s.EndAll(t.Context(), "otto"); return err }},
	} {
		if err := d.BehindChange(t, one.change, one.act); err != nil {
			t.Errorf("%s: %v", one.name, err)
		}
	}
}
