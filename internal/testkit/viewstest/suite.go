// Package viewstest is the suite that every store of views passes.
package viewstest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"docket/internal/desk/console/views"
)

// Noon is the time of the suite.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC)

// Suite holds an empty store to the rules of [views.Store].
func Suite(t *testing.T, store views.Store) {
	view := func(owner, name, query string) views.View {
		return views.View{Owner: owner, Name: name, Query: query, MadeBy: "mara", MadeAt: Noon}
	}
	save := func(t *testing.T, v views.View) {
		t.Helper()
		if err := store.Save(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	names := func(t *testing.T, owner string) (all []string) {
		t.Helper()
		found, err := store.List(t.Context(), owner)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range found {
			all = append(all, v.Owner+"/"+v.Name+"?"+v.Query)
		}
		return all
	}
	t.Run("own and shared", func(t *testing.T) {
		save(t, view("mara", "b", "path=x"))
		save(t, view("mara", "a", "path=y"))
		save(t, view("", "all", "verdict=denied"))
		save(t, view("olga", "a", "path=z"))
		if diff := cmp.Diff([]string{"mara/a?path=y", "mara/b?path=x", "/all?verdict=denied"}, names(t, "mara")); diff != "" {
			t.Error(diff)
		}
		found, _ := store.List(t.Context(), "mara")
		want := view("mara", "a", "path=y")
		if want.ID = found[0].ID; !cmp.Equal(found[0], want) || want.ID == 0 {
			t.Error(cmp.Diff(want, found[0]))
		}
	})
	t.Run("a name again replaces it", func(t *testing.T) {
		save(t, view("mara", "a", "path=new"))
		if diff := cmp.Diff([]string{"mara/a?path=new", "mara/b?path=x", "/all?verdict=denied"}, names(t, "mara")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("nobody removes the view of another", func(t *testing.T) {
		found, _ := store.List(t.Context(), "mara")
		for _, v := range found {
			if err := store.Remove(t.Context(), v.ID, "olga"); !errors.Is(err, views.ErrNone) {
				t.Errorf("%s: %v", v.Name, err)
			}
		}
		if err := store.Remove(t.Context(), found[0].ID, "mara"); err != nil {
			t.Error(err)
		}
		if err := store.Remove(t.Context(), found[2].ID, ""); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"mara/b?path=x"}, names(t, "mara")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an owner has so many", func(t *testing.T) {
		for i := range views.Most {
			save(t, view("full", fmt.Sprint(i), "path=x"))
		}
		if err := store.Save(t.Context(), view("full", "more", "path=x")); !errors.Is(err, views.ErrFull) {
			t.Errorf("one more: %v", err)
		}
		save(t, view("full", "7", "path=new"))
		save(t, view("other", "a", "path=x"))
		if n := len(names(t, "full")); n != views.Most {
			t.Errorf("%d views", n)
		}
	})
}
