//go:build integration

package browser

import (
	"fmt"
)

// answered is the time of the answer that a page shows.
func answered(p *tab) string {
	p.t.Helper()
	return eval[string](p, `document.querySelector("time[data-asof]").getAttribute("datetime")`)
}

// asked is how often a page asked by itself, besides its stream.
func asked(p *tab) int {
	p.t.Helper()
	return eval[int](p, `performance.getEntriesByType("resource").filter(e => new URL(e.name).pathname === "/").length`)
}

// moves waits for so many newer answers on a page.
func moves(p *tab, times int) {
	p.t.Helper()
	for range times {
		before := answered(p)
		eventually(p.t, "a newer answer is on the page", func() error {
			if now := answered(p); now == before {
				return fmt.Errorf("it is of %s", now)
			}
			return nil
		})
	}
}

// follows waits until the answers of a page come by its stream: for longer than it waits before it asks by itself.
func follows(p *tab) {
	p.t.Helper()
	eventually(p.t, "the page follows the stream", func() error {
		before := asked(p)
		moves(p, 4)
		if n := asked(p) - before; n > 0 {
			return fmt.Errorf("it asked %d times", n)
		}
		return nil
	})
}

// live plays the first page: hidden it asks nothing, shown again it catches up, and without a stream it asks by itself.
func live(p *tab) {
	p.t.Helper()
	p.visit("/")
	follows(p)
	hide := func(is bool) {
		eval[bool](p, fmt.Sprintf(`(() => { Object.defineProperty(document, "hidden", { configurable: true, get: () => %v }); document.dispatchEvent(new Event("visibilitychange")); return true })()`, is))
	}
	hide(true)
	// Four streams are as many as one name may have. Their events also say that time goes by for the hidden page. One is
	// refused, and opened again, as long as the desk has not seen that the page closed its own.
	eval[bool](p, `(() => {
		window.held = [1, 2, 3, 4].map(() => {
			const h = { heard: 0 };
			const open = () => {
				h.stream = new EventSource("/events/now");
				for (const name of ["page", "asof"]) h.stream.addEventListener(name, () => h.heard++);
				h.stream.addEventListener("error", () => { if (h.stream.readyState === EventSource.CLOSED && !h.over) setTimeout(open, 200) });
			};
			open();
			return h;
		});
		return true;
	})()`)
	hear := func(times int) {
		eventually(p.t, "the other streams have events", func() error {
			if n := eval[int](p, "Math.min(...window.held.map(s => s.heard))"); n < times {
				return fmt.Errorf("%d of %d", n, times)
			}
			return nil
		})
	}
	hear(1)
	before, was := asked(p), answered(p)
	hear(4)
	if now := answered(p); asked(p) != before || now != was {
		p.t.Errorf("the hidden page asked %d times, and shows %s in place of %s", asked(p)-before, now, was)
	}
	hide(false) // its stream is one too many, and refused
	moves(p, 2)
	if asked(p) < before+2 {
		p.t.Errorf("two answers came with %d requests", asked(p)-before)
	}
	eval[bool](p, "window.held.forEach(h => { h.over = true; h.stream.close() }) === undefined")
	hide(true)
	hide(false)
	follows(p)
}

// tails opens a page with a live tail, and waits until its stream is open.
func tails(p *tab, path string) {
	p.t.Helper()
	p.visit(path)
	eventually(p.t, "the tail is live", func() error {
		if state := eval[string](p, `document.querySelector("[data-state]").textContent`); state != "live" {
			return fmt.Errorf("it says %q", state)
		}
		return nil
	})
	eval[bool](p, "window.kept = true")
}

// tailed is the row of a decision in the tail; empty: it is not there.
func tailed(p *tab, id string) string {
	p.t.Helper()
	return eval[string](p, fmt.Sprintf(`(() => { for (const row of document.querySelectorAll("[data-rows] tr")) if (row.getAttribute("data-key").startsWith(%q)) return row.innerText; return "" })()`, id+" "))
}

// comes waits until a decision is in the tail of a page that was not loaded again.
func comes(p *tab, id string) {
	p.t.Helper()
	eventually(p.t, "the decision is in the tail", func() error {
		if tailed(p, id) == "" {
			return fmt.Errorf("%s is not there: %.600s", id, p.text())
		}
		return nil
	})
	if !eval[bool](p, "window.kept === true") {
		p.t.Error("the page was loaded again")
	}
}
