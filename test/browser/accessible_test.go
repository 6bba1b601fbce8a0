//go:build integration

package browser

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
)

// axe is the text of axe-core.
var axe = sync.OnceValues(func() (string, error) {
	file, err := os.Open("testdata/axe.min.js.gz")
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	z, err := gzip.NewReader(file)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(z)
	return string(text), err
})

// TestAxe_IsTheOneThatIsNamed: a file beside it says which release it is.
func TestAxe_IsTheOneThatIsNamed(t *testing.T) {
	t.Parallel()
	text, err := axe()
	if err != nil {
		t.Fatal(err)
	}
	note, err := os.ReadFile("testdata/axe.txt")
	if sum := sha256.Sum256([]byte(text)); err != nil || !strings.Contains(string(note), "sha256 of axe.min.js: "+hex.EncodeToString(sum[:])) {
		t.Error("testdata/axe.txt names another file", err)
	}
}

// finding is what axe-core has against a page.
type finding struct {
	ID, Help string
	Nodes    []struct{ HTML, FailureSummary string }
}

// findings asks axe-core about the page as it is shown.
func (p *tab) findings() []finding {
	p.t.Helper()
	text, err := axe()
	if err != nil {
		p.t.Fatal(err)
	}
	if eval[bool](p, `typeof axe === "undefined"`) {
		if _, err := try[any](p, text+"; null"); err != nil {
			p.t.Fatalf("load axe-core: %v", err)
		}
	}
	raw := eval[string](p, `axe.run(document, {preload: false, resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => ({ID: v.id, Help: v.help, Nodes: v.nodes.slice(0, 3).map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))}))))`)
	var all []finding
	if err := json.Unmarshal([]byte(raw), &all); err != nil {
		p.t.Fatal(err)
	}
	return all
}

// tabs has a tab for each role, all shown alike.
type tabs map[string]*tab

func logIn(t *testing.T, w *world, b *chrome, l look) tabs {
	t.Helper()
	all := tabs{"nobody": open(t, b, w.url, l)}
	for _, role := range []string{"viewer", "operator", "admin"} {
		scripts := l
		scripts.plain = false
		all[role] = open(t, b, w.url, scripts).login(role)
		all[role].as(l)
	}
	return all
}

// show loads a screen and checks its status and its text.
func (all tabs) show(t *testing.T, w *world, s screen) *tab {
	t.Helper()
	role := s.as
	if role == "" {
		role = "operator"
	}
	p, want := all[role], max(int64(s.status), 200)
	eventually(t, s.name+" has its turn", func() error { // the desk refuses long work beside other such work
		p.visit(w.put.Replace(s.path))
		for _, step := range s.steps {
			if name, text, fills := strings.Cut(step, "="); fills {
				eval[bool](p, fmt.Sprintf(`document.querySelector("[name=" + %q + "]").value = %q; true`, name, text))
			} else {
				p.press(step)
			}
		}
		if busy := int64(http.StatusServiceUnavailable); p.code() == busy && want != busy {
			return fmt.Errorf("status %d", busy)
		}
		return nil
	})
	if p.code() != want {
		t.Errorf("%s: status %d, want %d", s.name, p.code(), want)
	}
	if s.status == 0 || s.text != "" {
		p.awaits(s.text)
	}
	return p
}

// faultless: axe-core finds nothing on any screen, and the browser complains of nothing, light and dark, narrow and wide.
func faultless(t *testing.T, w *world, b *chrome) {
	for _, l := range []look{{width: 1280, height: 900, still: true}, {width: 360, height: 740, still: true}} { // else colours are on their way
		all := logIn(t, w, b, l)
		for _, s := range screens {
			p := all.show(t, w, s)
			for _, f := range p.taken() {
				t.Errorf("%s, %+v: the browser complained: %s", s.name, l, f)
			}
			for _, l.dark = range []bool{true, false} {
				p.as(l)
				for _, f := range p.findings() {
					t.Errorf("%s, %+v: %s: %s\n%s", s.name, l, f.ID, f.Help, fmt.Sprint(f.Nodes))
				}
			}
			p.taken() // axe-core itself causes some
		}
	}
}

// wideness tells how far a page is wider than its window, and which elements are.
const wideness = `(() => {
	const seen = document.documentElement.clientWidth, out = [];
	if (document.documentElement.scrollWidth > seen) out.push("the page: " + document.documentElement.scrollWidth + " of " + seen);
	for (const e of document.querySelectorAll("body *")) {
		if (e.closest(".skip, svg") || !e.getClientRects().length) continue;
		let inside = false;
		for (let p = e.parentElement; p && !inside; p = p.parentElement) inside = /auto|scroll|hidden/.test(getComputedStyle(p).overflowX) && p !== document.body;
		const r = e.getBoundingClientRect();
		if (!inside && r.right > seen + 1 && out.length < 4) out.push(e.tagName + "." + e.className + " to " + Math.round(r.right) + " of " + seen + ": " + e.textContent.trim().slice(0, 60));
	}
	return out;
})()`

// fitting: nothing is wider than the window, from 360 to 1600 pixels, and at 200 % zoom.
func fitting(t *testing.T, w *world, b *chrome) {
	all := logIn(t, w, b, wide)
	for _, s := range screens {
		p := all.show(t, w, s)
		for _, l := range []look{{width: 360, height: 740}, {width: 480, height: 800}, {width: 640, height: 450, scale: 2}, {width: 760, height: 900}, {width: 961, height: 900}, {width: 1100, height: 900}, {width: 1600, height: 1000}} {
			p.as(l) // style sheets alone decide by the width, so the page is not loaded again
			if found := eval[[]string](p, wideness); len(found) > 0 {
				t.Errorf("%s at %d pixels: %s", s.name, l.width, strings.Join(found, "\n"))
			}
		}
	}
}

// still: with reduced motion nothing moves.
func still(t *testing.T, w *world, b *chrome) {
	all := logIn(t, w, b, look{width: 1280, height: 900, still: true})
	for _, s := range screens {
		p := all.show(t, w, s)
		if n := eval[int](p, `document.getAnimations().length + [...document.querySelectorAll("*")].filter(e => { const c = getComputedStyle(e); return c.animationName !== "none" || c.transitionDuration.split(",").some(d => parseFloat(d) > 0) || c.scrollBehavior === "smooth" }).length`); n != 0 {
			t.Errorf("%s: %d elements move", s.name, n)
		}
	}
}

// plain: without scripts a person reads the same.
func plain(t *testing.T, w *world, b *chrome) {
	with, without := logIn(t, w, b, wide), logIn(t, w, b, look{width: 1280, height: 900, plain: true})
	for _, s := range screens {
		if s.unscripted != "" {
			without.show(t, w, s).awaits(s.unscripted)
			continue
		}
		// The freshness on a page can change between two looks.
		eventually(t, s.name+" has the same words", func() error {
			if one, other := words(with.show(t, w, s).text()), words(without.show(t, w, s).text()); !slices.Equal(one, other) {
				return fmt.Errorf("with scripts\n%v\nwithout\n%v", one, other)
			}
			return nil
		})
	}
}

// words of a page, but for numbers and times, which change between two looks.
func words(text string) []string {
	return slices.DeleteFunc(strings.Fields(text), func(w string) bool { return strings.ContainsAny(w, "0123456789") })
}
