//go:build integration

package chaos

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
)

const (
	limitsEvery = time.Second
	// late is how long a write may take that had its rows from the limit: a deadline of three seconds, or a process that
	// waits at a point for as long, and a busy machine.
	late = 7 * time.Second
)

// followLimits counts the answers of consumers that low lanes wait for Redis.
func (c *campaign) followLimits(ctx context.Context) {
	for wait(ctx, limitsEvery) {
		for _, s := range c.slots[:Consumers] {
			if _, body, err := s.get(ctx, "/readyz"); err == nil && strings.Contains(body, `"limits_away"`) {
				c.saidAway.Add(1)
			}
		}
	}
}

// waited checks that low lanes waited while Redis was away and nothing else was wrong: none of their rows was stored, and
// no record of any lane was parked.
func (c *campaign) waited(ctx context.Context, evidence conservation.Evidence) {
	for _, e := range c.episodes {
		if !slices.Contains(awayKinds, e.fault.Kind) {
			continue
		}
		for _, s := range c.aside(e) {
			rows, err := c.storedIn(ctx, s)
			if err != nil {
				c.broken("the account", "%v", err)
				return
			}
			c.note("calm while %s: %v to %v, rows by lane %v", e.fault.Kind, s.From.UTC(), s.To.UTC(), rows)
			if n := rows[defaultLane] + rows[bulkLane]; n > 0 {
				c.broken("the limits", "%d rows of low lanes were stored within %v of %s", n, s.To.Sub(s.From).Round(time.Second), e.fault.Kind)
			}
			for _, f := range evidence.Forwarded {
				if f.Home == home.Parked && f.FailedAt.After(s.From) && f.FailedAt.Before(s.To) {
					c.broken("the limits", "%v was parked while %s", f.Place, e.fault.Kind)
				}
			}
		}
	}
}

// aside are the times of a fault at which no other was under way.
func (c *campaign) aside(e episode) []Span {
	var others []Span
	for _, o := range c.episodes {
		if o != e {
			others = append(others, o.whole)
		}
	}
	return calm(e.inForce, others, late)
}

// storedIn counts the rows that were stored within a span, by lane.
func (c *campaign) storedIn(ctx context.Context, s Span) (rows [laneCount]int, err error) {
	err = c.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		found, err := conn.Query(ctx, "SELECT source_topic, count(*) FROM decision_logs WHERE stored_at > $1 AND stored_at < $2 GROUP BY 1", s.From, s.To)
		if err != nil {
			return err
		}
		var topic string
		var n int
		_, err = pgx.ForEachRow(found, []any{&topic, &n}, func() error {
			rows[slices.Index(c.topics(), topic)] = n
			return nil
		})
		return err
	})
	return rows, err
}

// separate checks what a fault of one part does to the lanes when nothing else is wrong. A lane that cannot be read
// stores nothing and the others continue. Without Redis the urgent lane continues, and the consumers say that the others
// wait.
func (c *campaign) separate(ctx context.Context) {
	continues := map[string][]int{RedisRefused: {urgentLane}}
	for _, e := range c.episodes {
		lanes, waits := continues[e.fault.Kind], -1
		if e.fault.Kind == LaneUnread {
			waits = e.fault.Target / Brokers
			lanes = slices.DeleteFunc([]int{defaultLane, urgentLane, bulkLane}, func(lane int) bool { return lane == waits })
		}
		for _, s := range c.aside(e) {
			rows, err := c.storedIn(ctx, s)
			if err != nil {
				c.broken("the account", "%v", err)
				return
			}
			c.note("apart from others %s (%d) for %v: rows by lane %v", e.fault.Kind, e.fault.Target, s.To.Sub(s.From).Round(time.Second), rows)
			if waits >= 0 && rows[waits] > 0 {
				c.broken("the campaign", "%d rows of %s were stored although it could not be read", rows[waits], c.topics()[waits])
			}
			for _, lane := range lanes {
				if rows[lane] == 0 {
					c.broken("the lanes", "%s stored nothing within %v of %s", c.topics()[lane], s.To.Sub(s.From).Round(time.Second), e.fault.Kind)
				}
			}
		}
	}
	if c.saidAway.Load() == 0 {
		c.broken("the limits", "no consumer said that low lanes wait for Redis")
	}
}
