//go:build integration

package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"docket/internal/testkit/testenv"
	"docket/sample/policies"
)

const opaToken = "planted-token-of-opa"

// TestStory_FromDenialToRetry is the morning of an operator on real parts: OPA denies, the denial is on the page, Why
// is read, a bad migration fills the dead letters, and a retry empties them again.
func TestStory_FromDenialToRetry(t *testing.T) {
	t.Parallel()
	db := testenv.OwnPostgres(t)
	s := newStack(t, testenv.Kafka(t), db, testenv.Prefix(t))
	uploads := freeAddr(t)
	s.start("collect", "DOCKET_COLLECTOR_ADDR="+uploads, "DOCKET_COLLECTOR_TOKENS=opa:"+opaToken).awaitReady()
	s.start("consume").awaitReady()
	desk := s.desk()
	opa := testenv.StartOPA(t, testenv.OPAOptions{Service: "http://" + uploads, Token: opaToken, Bundle: testenv.ServeBundle(t, "shop", policies.Files, "r1"), Status: true})
	b := chromium(t)
	olga, adam := open(t, b, s.url, wide).login("operator"), open(t, b, s.url, wide).login("admin")

	live(adam)

	// A denial appears while the page is open, and nothing is pressed for it. Then: why.
	tails(olga, "/decisions?verdict=denied&since=1h&live=1")
	allowed, denied := refund(t, opa, 20), refund(t, opa, 900)
	comes(olga, denied)
	if row := tailed(olga, denied); !strings.Contains(row, "denied") || !strings.Contains(row, "shop/refund/decision") {
		t.Errorf("the row of the denial says %q", row)
	}
	// The allowed one came before it, and is stored by now: the tail leaves it out.
	eventually(t, "the allowed one is stored", func() error {
		if n := ask[int](s, "SELECT count(*) FROM decision_logs WHERE decision_id = $1", allowed); n != 1 {
			return fmt.Errorf("%d rows", n)
		}
		return nil
	})
	again := refund(t, opa, 901)
	comes(olga, again)
	if row := tailed(olga, allowed); row != "" {
		t.Errorf("the tail of denials has %q", row)
	}
	if row := tailed(olga, denied); row == "" || !eval[bool](olga, "window.kept === true") {
		t.Errorf("the page was loaded again, or forgot a row: %q", row)
	}
	olga.press(denied[:8])
	olga.awaits("a refund of 900 is above the limit of")
	olga.awaits("amount_over_limit")

	// A bad migration.
	s.exec("ALTER TABLE decision_logs ADD CONSTRAINT small_refunds CHECK (coalesce((raw#>>'{input,amount}')::numeric, 0) < 500) NOT VALID")
	const bad = 120
	for range bad {
		refund(t, opa, 700)
	}
	olga.awaitsAfter("/dead-letters", fmt.Sprintf("%d are not resolved", bad))
	olga.press("23514")
	olga.awaits("small_refunds")
	olga.press("Dry run")
	olga.awaits(fmt.Sprintf("Dry run of %d letters", bad))
	if got := number(olga, "Would fail"); got != bad {
		t.Errorf("on the broken table %d of %d would fail", got, bad)
	}

	// The repair. The second person looks on, in a browser of her own.
	s.exec("ALTER TABLE decision_logs DROP CONSTRAINT small_refunds")
	olga.press("Cancel")
	olga.press("Dry run")
	olga.awaits("Would be stored")
	if got := number(olga, "Would be stored"); got != bad {
		t.Errorf("on the repaired table %d of %d would be stored", got, bad)
	}
	olga.fill("[name=reason]", "the check is dropped")
	olga.fill("[name=rate]", "4")
	olga.press(fmt.Sprintf("Retry %d letters", bad))
	job := olga.address()
	if !strings.HasPrefix(job, "/jobs/") {
		t.Fatalf("the retry led to %s", job)
	}
	adam.visit(job)
	for _, p := range []*tab{olga, adam} { // without a reload
		eventually(t, "the page of the job shows progress", func() error {
			if n := number(p, "Stored"); n < 1 {
				return fmt.Errorf("%d", n)
			}
			return nil
		})
	}

	// A reload, a desk that starts again, and a database that is away, all in the middle of the job.
	before := number(olga, "Stored")
	olga.visit(job)
	if now := number(olga, "Stored"); now < before {
		t.Errorf("after a reload %d are stored, before it were %d", now, before)
	}
	olga.visit("/")
	follows(olga)
	eval[bool](olga, "window.kept = true")
	desk.stop()
	desk = s.desk()
	follows(olga) // by itself
	if !eval[bool](olga, "window.kept === true") {
		t.Error("the live page was loaded again")
	}
	olga.taken() // the desk was away
	olga.visit(job)
	olga.awaits("the check is dropped") // she is still logged in
	db.Pause(t)
	olga.visit("/dead-letters")
	olga.awaits("The database does not answer")
	olga.awaits("You stay logged in")
	aged := func(is bool) func() error { // the page that is open says so by itself
		return func() error {
			if old, err := try[bool](adam, `document.querySelector("[data-live] .asof").classList.contains("stale")`); err != nil || old != is {
				return fmt.Errorf("stale: %v, %v", old, err)
			}
			return nil
		}
	}
	eventually(t, "the open page is marked as old", aged(true))
	if said := eval[string](adam, `document.getElementById("say").textContent`); !strings.Contains(said, "out of date") {
		t.Errorf("a screen reader is told %q", said)
	}
	db.Unpause(t)
	eventually(t, "the open page is new again", aged(false))
	adam.taken() // refreshes failed in the outage
	eventually(t, "the page is back", func() error {
		olga.press("Try again")
		if text := olga.text(); !strings.Contains(text, "Groups") {
			return fmt.Errorf("%.300s", text)
		}
		return nil
	})

	olga.visit(job)
	olga.awaits("DONE")
	if got := number(olga, "Stored"); got != bad {
		t.Errorf("%d of %d are stored", got, bad)
	}
	if said := eval[string](olga, `document.getElementById("say").textContent`); said != "" && !strings.Contains(said, "stored") {
		t.Errorf("a screen reader is told %q", said)
	}
	adam.awaits("DONE") // without a reload: the page refreshes
	if said := eval[string](adam, `document.getElementById("say").textContent`); !strings.Contains(said, fmt.Sprintf("%d of %d moved", bad, bad)) {
		t.Errorf("a screen reader is told %q", said)
	}
	adam.visit("/dead-letters")
	adam.awaits("Nothing waits for you")
	olga.awaitsAfter("/decisions?verdict=denied&since=1h", fmt.Sprintf("denied %d", bad+2))
	if n := ask[int](s, "SELECT count(*) FROM decision_logs"); n != bad+3 {
		t.Errorf("%d rows of %d decisions", n, bad+3)
	}

	// The end of the shift.
	olga.press("Log out everywhere")
	olga.awaits("You are logged out")
	olga.visit(job)
	olga.awaits("Log in to the desk")
	desk.stop()
}

// refund asks OPA for a refund and returns the id of its decision.
func refund(t *testing.T, opa *testenv.OPA, amount int) string {
	t.Helper()
	said, err := opa.Ask(t.Context(), "shop/refund/decision", json.RawMessage(fmt.Sprintf(`{"user":"bob","amount":%d,"order":{"customer":"carol"}}`, amount)))
	if err != nil || said.ID == "" {
		t.Fatalf("OPA answered %+v, %v", said, err)
	}
	return said.ID
}

// number is what a page shows below a word, -1 if it has none.
func number(p *tab, word string) int {
	n, err := try[int](p, fmt.Sprintf(`(() => { for (const e of document.querySelectorAll(".place")) if (e.textContent.trim() === %q) return parseInt(e.parentElement.querySelector(".number").textContent.replaceAll(",", "")); return -1 })()`, word))
	if err != nil {
		return -1
	}
	return n
}
