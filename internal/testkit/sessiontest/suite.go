// Package sessiontest is the suite that every store of sessions passes.
package sessiontest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/desk/console/session"
)

// Noon is the time of the suite.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Suite holds a store to the rules of [session.Store].
func Suite(t *testing.T, store session.Store) {
	begin := func(t *testing.T, name string, at time.Time) session.Session {
		t.Helper()
		s := session.Begin(session.NewSecret(), name, "viewer", session.Token, []byte{1, 0, 255}, at)
		if err := store.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	has := func(t *testing.T, s session.Session, at time.Time, want bool) {
		t.Helper()
		_, err := store.Find(t.Context(), s.ID, at)
		if want && err != nil || !want && !errors.Is(err, session.ErrNone) {
			t.Errorf("at %v: %v, want it there: %v", at, err, want)
		}
	}
	t.Run("comes back as it was", func(t *testing.T) {
		s := begin(t, "vera", Noon)
		if got, err := store.Find(t.Context(), s.ID, Noon); err != nil || cmp.Diff(s, got) != "" {
			t.Fatal(err, cmp.Diff(s, got))
		}
		has(t, session.Session{ID: session.NewSecret().ID()}, Noon, false)
	})
	t.Run("ends when idle", func(t *testing.T) {
		s := begin(t, "idle", Noon)
		has(t, s, Noon.Add(session.Idle-time.Second), true)
		has(t, s, Noon.Add(session.Idle), false)
		if err := store.Touch(t.Context(), s.ID, Noon.Add(20*time.Minute)); err != nil {
			t.Fatal(err)
		}
		has(t, s, Noon.Add(session.Idle), true)
		has(t, s, Noon.Add(20*time.Minute+session.Idle), false)
	})
	t.Run("a late touch revives none", func(t *testing.T) {
		s := begin(t, "late", Noon)
		if err := store.Touch(t.Context(), s.ID, Noon.Add(session.Idle)); err != nil {
			t.Fatal(err)
		}
		has(t, s, Noon.Add(session.Idle), false)
	})
	t.Run("an early touch takes nothing", func(t *testing.T) {
		s := begin(t, "early", Noon)
		if err := store.Touch(t.Context(), s.ID, Noon.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		has(t, s, Noon, true)
	})
	t.Run("ends after 12 hours", func(t *testing.T) {
		s := begin(t, "busy", Noon)
		for at := Noon; at.Before(s.EndsAt); at = at.Add(10 * time.Minute) {
			if err := store.Touch(t.Context(), s.ID, at); err != nil {
				t.Fatal(err)
			}
		}
		has(t, s, s.EndsAt.Add(-time.Microsecond), true)
		has(t, s, s.EndsAt, false)
	})
	t.Run("ends by hand", func(t *testing.T) {
		s, other := begin(t, "otto", Noon), begin(t, "otto", Noon)
		if err := errors.Join(store.End(t.Context(), s.ID), store.End(t.Context(), s.ID)); err != nil {
			t.Fatal(err)
		}
		has(t, s, Noon, false)
		has(t, other, Noon, true)
	})
	t.Run("all of one name end", func(t *testing.T) {
		one, two, other := begin(t, "olga", Noon), begin(t, "olga", Noon), begin(t, "olga2", Noon)
		if n, err := store.EndAll(t.Context(), "olga"); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		has(t, one, Noon, false)
		has(t, two, Noon, false)
		has(t, other, Noon, true)
	})
	t.Run("old ones are removed", func(t *testing.T) {
		begin(t, "adam", Noon)
		begin(t, "later", Noon.Add(time.Hour))
		if n, err := store.EndAll(t.Context(), "adam"); err != nil || n != 0 {
			t.Fatal(n, err)
		}
	})
	from := func(t *testing.T, name string, o session.Origin) session.Session {
		t.Helper()
		s := session.Begin(session.NewSecret(), name, "viewer", session.OpenID, []byte{2}, Noon)
		s.Origin = o
		if err := store.Create(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("of a provider comes back without its origin", func(t *testing.T) {
		s := from(t, "oidc:vera", session.Origin{Subject: "s-0", Session: "p-0", Login: []byte("l-0")})
		s.Origin = session.Origin{}
		if got, err := store.Find(t.Context(), s.ID, Noon); err != nil || cmp.Diff(s, got) != "" {
			t.Fatal(err, cmp.Diff(s, got))
		}
	})
	t.Run("a login is used once", func(t *testing.T) {
		first := from(t, "oidc:olga", session.Origin{Subject: "s-1", Login: []byte("l-1")})
		second := session.Begin(session.NewSecret(), "oidc:olga", "viewer", session.OpenID, []byte{2}, Noon)
		second.Origin = session.Origin{Subject: "s-1", Login: []byte("l-1")}
		if err := store.Create(t.Context(), second); !errors.Is(err, session.ErrUsed) {
			t.Errorf("a second session of a login: %v", err)
		}
		has(t, first, Noon, true)
		has(t, second, Noon, false)
		from(t, "oidc:olga", session.Origin{Subject: "s-1", Login: []byte("l-2")})
	})
	t.Run("the provider ends its own", func(t *testing.T) {
		one := from(t, "oidc:a", session.Origin{Subject: "s-2", Session: "p-2", Login: []byte("l-3")})
		two := from(t, "oidc:a", session.Origin{Subject: "s-2", Session: "p-3", Login: []byte("l-4")})
		other := from(t, "oidc:b", session.Origin{Subject: "s-3", Login: []byte("l-5")})
		unnamed := from(t, "oidc:a", session.Origin{Subject: "s-2", Login: []byte("l-6")}) // its ID token named no session
		token := begin(t, "vera", Noon)
		if n, err := store.EndFrom(t.Context(), session.Origin{Subject: "s-2", Session: "p-2"}, Noon, Noon); err != nil || n != 2 {
			t.Fatal(n, err)
		}
		has(t, one, Noon, false)
		has(t, unnamed, Noon, false)
		has(t, two, Noon, true)
		if n, err := store.EndFrom(t.Context(), session.Origin{Subject: "s-2"}, Noon, Noon); err != nil || n != 1 {
			t.Fatal(n, err)
		}
		has(t, two, Noon, false)
		for _, none := range []session.Origin{{}, {Subject: "none"}, {Session: "none"}} {
			if n, err := store.EndFrom(t.Context(), none, Noon, Noon); err != nil || n != 0 {
				t.Errorf("%v ends %d sessions, %v", none, n, err)
			}
		}
		has(t, other, Noon, true)
		has(t, token, Noon, true)
	})
	t.Run("a logout is remembered", func(t *testing.T) {
		end := func(o session.Origin, issued time.Time) {
			t.Helper()
			if _, err := store.EndFrom(t.Context(), o, issued, Noon); err != nil {
				t.Fatal(err)
			}
		}
		ended := func(o session.Origin, issued, at time.Time, want bool) {
			t.Helper()
			if got, err := store.Ended(t.Context(), o, issued, at); err != nil || got != want {
				t.Errorf("%+v of %v at %v: %v, %v", o, issued, at, got, err)
			}
		}
		login := session.Origin{Subject: "s-8", Session: "p-8"}
		ended(login, Noon, Noon, false)
		end(session.Origin{Subject: "s-8", Session: "p-8"}, Noon)
		ended(login, Noon, Noon, true)
		ended(login, Noon.Add(time.Minute), Noon.Add(session.Remembered-time.Second), true)
		ended(login, Noon, Noon.Add(session.Remembered), false)
		ended(session.Origin{Subject: "s-8", Session: "p-9"}, Noon, Noon, false)
		ended(session.Origin{Subject: "s-8"}, Noon, Noon, false)
		ended(session.Origin{Subject: "s-9", Session: "p-8"}, Noon, Noon, false)
		end(session.Origin{Session: "p-7"}, Noon)
		ended(session.Origin{Subject: "s-7", Session: "p-7"}, Noon, Noon, true)
		end(session.Origin{Subject: "s-6"}, Noon)
		end(session.Origin{Subject: "s-6", Session: "p-1"}, Noon) // it forgets no logout
		ended(session.Origin{Subject: "s-6", Session: "p-6"}, Noon, Noon, true)
		ended(session.Origin{Subject: "s-6"}, Noon, Noon, true)
		ended(session.Origin{Subject: "s-6", Session: "p-6"}, Noon.Add(time.Second), Noon, false)
		begin(t, "later", Noon.Add(session.Remembered)) // removes what is over
		ended(login, Noon, Noon, false)
	})
	t.Run("a logout removes old ones", func(t *testing.T) {
		begin(t, "nina", Noon)
		if _, err := store.EndFrom(t.Context(), session.Origin{Subject: "s-10"}, Noon, Noon.Add(session.Idle)); err != nil {
			t.Fatal(err)
		}
		if n, err := store.EndAll(t.Context(), "nina"); err != nil || n != 0 {
			t.Errorf("%d sessions that were over were kept, %v", n, err)
		}
	})
}
