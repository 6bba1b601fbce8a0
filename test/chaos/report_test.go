//go:build integration

package chaos

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/record/home"
)

// report prints the closing table and fails the test where anything was found.
func (c *campaign) report(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	table := Table{Seed: c.seed, Duration: c.length, Commit: commit(), Faults: c.injected, Undone: c.failed, Kills: c.kills}
	for _, f := range c.findings {
		table.Findings = append(table.Findings, fmt.Sprintf("after %v in %s: %s", f.after.Round(time.Second), f.where, f.what))
	}
	c.mu.Unlock()
	table.Rows = c.figures()
	var text strings.Builder
	table.Text(&text)
	fmt.Fprint(os.Stderr, "\n", text.String())
	c.note("%s", text.String())
	if *flagOut != "" {
		var page strings.Builder
		table.Markdown(&page)
		check(t, os.WriteFile(*flagOut, []byte(page.String()), 0o644))
	}
	if len(table.Findings) > 0 {
		t.Errorf("seed %d: %s\nlogs are in %s/logs", c.seed, table.Findings[0], c.dir)
	}
}

func (c *campaign) figures() []Row {
	rows := []Row{
		{"records produced", fmt.Sprint(c.ledger.Records())},
		{"decisions produced", fmt.Sprint(c.ledger.Decisions())},
		{"decisions seen at home under way", fmt.Sprint(c.result.checked.Load())},
		{"transactions cut at COMMIT or insert", fmt.Sprint(c.wires.cut.Cuts())},
	}
	if c.pair != nil {
		rows = append(rows, Row{"standby promoted", fmt.Sprint(c.promotions.Load())}, Row{"waits for the standby canceled", fmt.Sprint(c.canceled.Load())})
	}
	if c.lanes {
		rows = append(rows, Row{"answers that low lanes wait for Redis", fmt.Sprint(c.saidAway.Load())})
	}
	a := c.result.account
	if a == nil {
		return append(rows, Row{"account", "none"})
	}
	for _, h := range []home.Home{home.Row, home.Duplicate, home.DeadLetter, home.Exhausted, home.Parked, home.Spooled} {
		rows = append(rows, Row{"home: " + h.String(), fmt.Sprint(a.Homes[h])})
	}
	if r := c.result.summary; r != nil {
		held := map[verify.State][]string{}
		for _, v := range r.Results {
			held[v.State] = append(held[v.State], v.Invariant)
		}
		for _, state := range []verify.State{verify.Held, verify.Broken, verify.Warned, verify.Undecided} {
			rows = append(rows, Row{"invariants " + string(state), cmp.Or(strings.Join(held[state], " "), "none")})
		}
	}
	recovery := "never"
	if c.result.settled {
		recovery = c.result.recovery.Round(100 * time.Millisecond).String()
	}
	broken := func(invariant string) int {
		if c.result.summary == nil {
			return 0
		}
		return c.result.summary.Of(invariant).Findings
	}
	return append(rows, // the account lists the first only, where there are many
		Row{"lost", fmt.Sprint(max(len(a.Lost), broken("I1")))}, Row{"doubled", fmt.Sprint(max(len(a.Doubled), broken("I2")))},
		Row{"altered", fmt.Sprint(max(len(a.Altered), broken("I3")))}, Row{"invented", fmt.Sprint(max(len(a.Invented), broken("I4")))},
		Row{"false dead letters", fmt.Sprint(max(len(a.Misplaced), broken("I5")))},
		Row{"recovered after the last heal", recovery})
}

func commit() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}
