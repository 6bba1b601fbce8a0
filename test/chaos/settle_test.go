//go:build integration

package chaos

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"docket/internal/audit/conservation"
	"docket/internal/audit/verify"
	"docket/internal/record/home"
)

// result is what the account found.
type result struct {
	checked  atomic.Int64 // decisions that the live check saw at home
	healed   time.Time    // when the last fault was
	recovery time.Duration
	settled  bool
	backlog  int // records, at the last heal
	account  *conservation.Account
	summary  *verify.Summary
}

const (
	settleBase = 60 * time.Second
	settlePace = 100 // records a second that are counted on while a backlog is worked off
	// breakerPause is how long the low lanes wait once more if Redis is slow to answer one of the first calls.
	breakerPause = 30 * time.Second
)

// settle waits until everything is committed, spools are empty and every member is ready, within the bound that was
// promised: a minute, the backlog at its pace, and the longest pause of a parked record.
func (c *campaign) settle(ctx context.Context) {
	source, parking, err := c.lag(ctx)
	c.result.backlog = int(source + parking)
	if err != nil {
		c.note("the backlog is not known: %v", err)
	}
	bound := settleBase + longestPause + time.Duration(source+parking)*time.Second/settlePace
	if c.lanes {
		bound += breakerPause
	}
	c.say("everything is healed, %d records to go, %d parked; it has to settle within %v", source, parking, bound.Round(time.Second))
	deadline := c.result.healed.Add(bound)
	quiet := 0
	for {
		last := c.unsettled(ctx)
		if last == nil {
			if quiet++; quiet == 1 {
				c.result.recovery = time.Since(c.result.healed)
			}
			if quiet == 3 {
				c.result.settled = true
				c.say("settled %v after the last heal", c.result.recovery.Round(100*time.Millisecond))
				return
			}
		} else {
			quiet = 0
			c.note("not settled: %v", last)
		}
		if time.Now().After(deadline) && last != nil {
			c.broken("settling", "not within %v of the last heal: %v", bound.Round(time.Second), last)
			c.goroutines()
			return
		}
		if !wait(ctx, 500*time.Millisecond) {
			return
		}
	}
}

func (c *campaign) lag(ctx context.Context) (source, parking int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, adminLimit)
	defer cancel()
	return c.places.Lag(ctx)
}

// unsettled says what is not settled yet, nil if nothing.
func (c *campaign) unsettled(ctx context.Context) error {
	source, parking, err := c.lag(ctx)
	if err != nil {
		return err
	}
	if source+parking > 0 {
		return fmt.Errorf("lag of the source %d, of parking %d", source, parking)
	}
	if err := c.deskUnsettled(ctx); err != nil {
		return err
	}
	for _, dir := range c.places.SpoolDirs {
		if files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl.gz")); len(files) > 0 {
			return fmt.Errorf("%d files in a spool", len(files))
		}
	}
	for _, s := range c.ran() {
		code, body, err := s.get(ctx, "/readyz")
		if err != nil {
			return fmt.Errorf("%s does not answer: %w", s.name, err)
		}
		if code != http.StatusOK {
			return fmt.Errorf("%s is not ready: %s", s.name, body)
		}
	}
	return nil
}

// goroutines has every member write its stacks into its log, and ends it.
func (c *campaign) goroutines() {
	for _, s := range c.ran() {
		s.note("%s", s.name+" is told to write down its goroutines")
		if process, ended := s.order(); process != nil {
			_ = process.Signal(syscall.SIGQUIT)
			limit := time.NewTimer(5 * time.Second)
			select {
			case <-ended:
			case <-limit.C:
				s.kill()
			}
			limit.Stop()
		}
	}
}

// account counts every decision, and looks at what has to hold of processes, spools and logs.
func (c *campaign) account(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	if c.result.settled {
		c.sound(ctx)
	}
	c.places.DatabaseURL = c.database.url()         // a promotion may have changed it
	if _, err := c.load.readBack(ctx); err != nil { // records that were put back while it settled
		c.broken("the account", "%v", err)
	}
	evidence, err := conservation.Gather(ctx, c.places, c.ledger)
	if err != nil {
		c.broken("the account", "%v", err)
		return
	}
	c.invariants(ctx, evidence)
	c.books(ctx, evidence)
	c.waited(ctx, evidence)
	a := conservation.Reconcile(c.ledger, evidence)
	c.result.account = a
	if err := a.Err(); err != nil {
		for line := range strings.Lines(err.Error()) {
			c.broken("the account", "%s", strings.TrimSpace(line))
		}
	}
	if n := a.Homes[home.Parked] + a.Homes[home.Spooled]; n > 0 && c.result.settled {
		c.broken("the account", "%d are parked or spooled after it settled", n)
	}
	for _, s := range c.slots {
		s.terminate()
	}
	c.spools()
	c.logs()
}
