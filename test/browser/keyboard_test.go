//go:build integration

package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// focused describes the element that has the focus, and whether a person sees that it has.
type focused struct {
	Tag, Text, Name, Href string
	Seen                  bool // it is in the window and has an outline
}

const focusNow = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body) return {Tag: "BODY", Text: "", Name: "", Href: "", Seen: true};
	const mark = e.closest("svg") ? e.querySelector("rect.hit") || e : e, style = getComputedStyle(mark), box = e.getBoundingClientRect();
	const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1 || style.stroke && style.stroke !== "none" && parseFloat(style.strokeWidth) >= 1;
	const there = box.width > 1 && box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
	return {Tag: e.tagName.toUpperCase(), Text: (e.textContent || "").trim().slice(0, 200), Name: e.getAttribute("name") || e.getAttribute("aria-label") || "", Href: e.getAttribute("href") || "", Seen: Boolean(ring) && there};
})()`

// hit presses a key.
func (p *tab) hit(key string) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(key))
}

// to presses Tab until the focus is at an element, which has to be seen on the way like each before it.
func (p *tab) to(what string, is func(focused) bool) {
	p.t.Helper()
	for range 200 {
		p.hit(kb.Tab)
		at := eval[focused](p, focusNow)
		if !at.Seen {
			p.t.Errorf("at %s the focus is not seen on %+v", p.address(), at)
		}
		if is(at) {
			return
		}
	}
	p.t.Fatalf("at %s Tab does not come to %s", p.address(), what)
}

func link(text string) func(focused) bool {
	return func(f focused) bool { return (f.Tag == "A" || f.Tag == "BUTTON") && strings.Contains(f.Text, text) }
}

func field(name string) func(focused) bool { return func(f focused) bool { return f.Name == name } }

// enter presses Enter and waits for the page that follows.
func (p *tab) enter() {
	p.t.Helper()
	p.follow(func() { p.hit(kb.Enter) })
}

// keyboard: the morning of an operator without a mouse. It retries a group and resolves a letter.
func keyboard(t *testing.T, w *world, b *chrome) {
	p := open(t, b, w.url, wide)
	p.visit("/dead-letters")
	if at := eval[focused](p, focusNow); at.Name != "token" || !at.Seen {
		t.Errorf("the login begins at %+v", at)
	}
	p.do(chromedp.KeyEvent(tokenOf("operator")))
	p.enter()
	p.awaits("Groups") // the login leads back

	// The first key leads past the menu.
	p.hit(kb.Tab)
	if at := eval[focused](p, focusNow); at.Text != "Skip to content" || !at.Seen {
		t.Errorf("the first Tab leads to %+v", at)
	}
	p.hit(kb.Enter)
	eventually(t, "the focus is in the content", func() error {
		if at := eval[string](p, "document.activeElement.id"); at != "main" {
			return fmt.Errorf("it is at %q", at)
		}
		return nil
	})
	p.hit(kb.Tab)
	if inside := eval[bool](p, `document.getElementById("main").contains(document.activeElement)`); !inside {
		t.Error("the Tab after the skip link leads out of the content")
	}

	// A dry run, and away from it.
	group := w.put.Replace("/dead-letters/groups/{group}")
	p.visit("/dead-letters")
	p.to("the group", func(f focused) bool { return f.Href == group })
	p.enter()
	p.awaits("Retry all of them")
	p.to("the dry run", link("Dry run"))
	p.enter()
	p.awaits("Dry run of")
	p.to("the way back", link("Cancel"))
	p.enter()
	if at := p.address(); at != group {
		t.Errorf("Cancel leads to %s", at)
	}

	// A retry.
	w.exec(takeRefunds)
	p.to("the dry run", link("Dry run"))
	p.enter()
	p.awaits("Would be stored")
	p.to("the reason", field("reason"))
	p.do(chromedp.KeyEvent("the check was dropped"))
	p.to("the button", link("Retry"))
	p.enter()
	if at := p.address(); !strings.HasPrefix(at, "/jobs/") {
		t.Fatalf("the retry leads to %s", at)
	}
	p.awaits("DONE")
	p.awaits("the check was dropped")
	w.exec(refuseRefunds)

	// A letter is resolved.
	p.visit("/dead-letters")
	p.to("the group of one letter", link("syntax"))
	p.enter()
	p.to("its letter", func(f focused) bool {
		return strings.HasPrefix(f.Href, "/dead-letters/") && !strings.Contains(f.Href, "groups")
	})
	p.enter()
	p.to("the note", field("note"))
	p.do(chromedp.KeyEvent("cut off by its sender"))
	p.to("the button", link("Resolve"))
	p.enter()
	p.awaits("RESOLVED")
	p.awaits("cut off by its sender")

	// A denial is found by the search line, a bar of the histogram, and Why.
	p.visit("/decisions?since=24h")
	p.do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error { // in one event, which the page may refuse
		for _, kind := range []input.DispatchKeyEventType{input.DispatchKeyEventTypeKeyDown, input.DispatchKeyEventTypeKeyUp} {
			if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: "/", Code: "Slash", Text: "/"}); err != nil {
				return err
			}
		}
		return nil
	}))
	if at := eval[focused](p, focusNow); at.Name != "q" || !at.Seen {
		t.Errorf("the key / leads to %+v", at)
	}
	p.do(chromedp.KeyEvent("verdict:denied since:24h"))
	p.enter()
	p.to("a bar", func(f focused) bool {
		return strings.Contains(f.Name, " denied") && !strings.Contains(f.Name, ", 0 denied") && strings.HasPrefix(f.Href, "/decisions?")
	})
	before := p.address()
	p.enter()
	if at := p.address(); at == before || !strings.HasPrefix(at, "/decisions?") || !strings.Contains(at, "denied") {
		t.Errorf("the bar leads from %s to %s", before, at)
	}
	p.to("a decision", func(f focused) bool { return strings.HasPrefix(f.Href, "/decisions/") })
	p.enter()
	p.awaits("known by")
	p.to("the end of the page, and the menu again", link("Log out"))
}
