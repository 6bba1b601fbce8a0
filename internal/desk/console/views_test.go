package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"docket/internal/desk/console"
	"docket/internal/desk/console/views"

	"docket/internal/desk/api"
)

func saving(name, query string, shared bool) url.Values {
	form := url.Values{"name": {name}, "query": {query}}
	if shared {
		form.Set("shared", "1")
	}
	return form
}

func TestViews_OwnAndShared(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	vera, olga := w.as(t, "viewer"), w.as(t, "operator")
	if a := vera.post(t, "/views", saving("mine", "verdict=denied&since=2h&after=x", false)); a.code != http.StatusSeeOther || a.header.Get("Location") != "/decisions?since=2h&verdict=denied" {
		t.Fatalf("%d to %s", a.code, a.header.Get("Location"))
	}
	if a := vera.post(t, "/views", saving("of all", "path=x", true)); a.code != http.StatusForbidden {
		t.Errorf("a viewer shares a view: %d", a.code)
	}
	if a := olga.post(t, "/views", saving("of all", "path=x", true)); a.code != http.StatusSeeOther {
		t.Fatalf("an operator shares a view: %d", a.code)
	}
	mine, all := `<a class="chip" href="/decisions?since=2h&amp;verdict=denied">mine</a>`, `<a class="chip" href="/decisions?path=x">of all</a>`
	if body := vera.get(t, "/decisions").body; !strings.Contains(body, mine) || !strings.Contains(body, all) || strings.Contains(body, `aria-label="Remove the view of all"`) || !strings.Contains(body, `aria-label="Remove the view mine"`) {
		t.Error("a viewer does not see both views, or may remove the one that is shared")
	}
	body := olga.get(t, "/decisions?path=x").body
	if strings.Contains(body, ">mine<") || !strings.Contains(body, `href="/decisions?path=x" aria-current="true">of all</a>`) {
		t.Error("an operator sees the view of another, or not the one of all")
	}
	found, _ := w.views.List(t.Context(), "vera")
	for _, v := range found {
		path := fmt.Sprintf("/views/%d/remove", v.ID)
		if a := vera.post(t, path, url.Values{"shared": {"1"}}); a.code != http.StatusForbidden {
			t.Errorf("a viewer removes a shared view: %d", a.code)
		}
		if a := w.as(t, "admin").post(t, path, nil); a.code != http.StatusNotFound {
			t.Errorf("an admin removes the view of another as their own: %d", a.code)
		}
	}
	if a := vera.post(t, fmt.Sprintf("/views/%d/remove", found[0].ID), url.Values{"query": {"path=y"}}); a.code != http.StatusSeeOther || a.header.Get("Location") != "/decisions?path=y" {
		t.Errorf("%d to %s", a.code, a.header.Get("Location"))
	}
	if body := vera.get(t, "/decisions").body; strings.Contains(body, mine) {
		t.Error("a view that was removed is there")
	}
	if log := w.log.String(); !strings.Contains(log, `"operator":"vera","view":"mine","shared":false,"message":"view saved"`) || !strings.Contains(log, "view removed") {
		t.Error("the log does not say who saved and removed views")
	}
}

func TestViews_WrongOnesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	for name, form := range map[string]url.Values{
		"no name": saving(" ", "path=x", false), "a long name": saving(strings.Repeat("n", 61), "path=x", false), "a name that turns": saving("a\u202eb", "path=x", false), "two lines": saving("a\nb", "path=x", false), "not UTF-8": saving("\xff", "path=x", false),
		"another filter": saving("a", "verdict=perhaps", false), "no query": saving("a", "%zz", false), "a long filter": saving("a", "path="+strings.Repeat("x", 9000), false),
	} {
		if a := b.post(t, "/views", form); a.code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", name, a.code)
		}
	}
	for i := range views.Most {
		if err := w.views.Save(t.Context(), views.View{Owner: "vera", Name: fmt.Sprint(i), Query: "path=x"}); err != nil {
			t.Fatal(err)
		}
	}
	if a := b.post(t, "/views", saving("more", "path=x", false)); a.code != http.StatusConflict || !strings.Contains(a.body, "Remove one first") {
		t.Errorf("one more than may be: %d", a.code)
	}
}

func TestViews_HostileText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, text := range hostile {
		q := url.Values{"path": {text}}.Encode()
		if err := w.views.Save(t.Context(), views.View{Name: text, Query: q, MadeBy: text}); err != nil {
			t.Fatal(err)
		}
		w.store.Add(hostileDecision(t, i, text))
	}
	_ = w.views.Save(t.Context(), views.View{Owner: "vera", Name: "of a later release", Query: "verdict=perhaps&%zz"})
	a := w.as(t, "viewer").get(t, "/decisions")
	harmless(t, "views", a.body)
	if a.code != 200 || strings.Contains(a.body, "of a later release") {
		t.Errorf("%d, or a view that cannot be read", a.code)
	}
}

func TestViews_AwayOrNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.as(t, "viewer")
	w.views.Fail(errors.New("relation desk_views does not exist"))
	if a := b.get(t, "/decisions"); a.code != 200 || !strings.Contains(a.body, "Saved views could not be read.") {
		t.Errorf("views that are away: %d", a.code)
	}
	if a := b.post(t, "/views", saving("a", "path=x", false)); a.code != http.StatusInternalServerError {
		t.Errorf("a view that cannot be saved: %d", a.code)
	}
	w = newWorld(t, func(c *console.Config, _ *api.Config, _ *api.Ports) { c.Views = nil })
	b = w.as(t, "viewer")
	if a := b.get(t, "/decisions?path=x"); a.code != 200 || strings.Contains(a.body, "Saved views") {
		t.Errorf("a desk without views: %d", a.code)
	}
	if a := b.post(t, "/views", saving("a", "path=x", false)); a.code != http.StatusNotFound {
		t.Errorf("a desk without views saves one: %d", a.code)
	}
}
