//go:build integration

package chaos

import (
	"context"
	"time"
)

// spoil breaks something itself where it was asked to: a campaign that finds nothing then cannot be believed.
func (c *campaign) spoil(ctx context.Context) {
	if *flagSpoil != "row" {
		return
	}
	go func() {
		if !wait(ctx, c.length/2) {
			return
		}
		err := again(ctx, func() error {
			return c.database.exec(ctx, "DELETE FROM decision_logs WHERE (decision_id, ts) IN (SELECT decision_id, ts FROM decision_logs LIMIT 1)")
		})
		c.say("a row was deleted (%v) %v into the load", err, time.Since(c.began).Round(time.Second))
	}()
}
