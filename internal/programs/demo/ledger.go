package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
)

// ledgerCheck is a comparison of the ledger with the dead-letter topics.
type ledgerCheck struct {
	held    int // dead letters of the topics that the ledger holds
	missing int // dead letters of the topics that the ledger lacks
	extra   int // dead letters of the ledger that are in neither topic
}

func (c ledgerCheck) complete() bool { return c.missing == 0 && c.extra == 0 }

func (c ledgerCheck) String() string {
	if c.complete() {
		return fmt.Sprintf("The ledger holds all %s dead letters: the desk entered each of them.", number(c.held))
	}
	return fmt.Sprintf("THE LEDGER IS WRONG: it holds %s of the %s dead letters in the topics, and %s others.",
		number(c.held), number(c.held+c.missing), number(c.extra))
}

// letters are the ids of the dead letters in both dead-letter topics. A record that was forwarded twice has one id.
func letters(ev conservation.Evidence) map[string]bool {
	ids := make(map[string]bool)
	for i := range ev.Forwarded {
		if f := &ev.Forwarded[i]; f.Home == home.DeadLetter || f.Home == home.Exhausted {
			ids[f.ID] = true
		}
	}
	return ids
}

// compare compares the ids in the topics with those in the ledger.
func compare(topics, ledger map[string]bool) (c ledgerCheck) {
	for id := range topics {
		if ledger[id] {
			c.held++
		} else {
			c.missing++
		}
	}
	c.extra = len(ledger) - c.held
	return c
}

// checkLedger waits until the ledger holds the dead letters of the topics.
func (s *show) checkLedger(ctx context.Context, topics map[string]bool) (ledgerCheck, error) {
	conn, err := pgx.Connect(ctx, s.places.DatabaseURL)
	if err != nil {
		return ledgerCheck{}, fmt.Errorf("connect to read the ledger: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }() // only read
	return awaitLetters(ctx, s.cfg.LedgerWait, topics, func(ctx context.Context) (map[string]bool, error) {
		return readLedger(ctx, conn)
	})
}

// awaitLetters reads the ledger until it holds all ids of the topics, or until it gained none for the time of limit. It
// returns the last comparison.
func awaitLetters(
	ctx context.Context, limit time.Duration, topics map[string]bool, read func(context.Context) (map[string]bool, error),
) (ledgerCheck, error) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	held, gained := 0, time.Now()
	for {
		ledger, err := read(ctx)
		if err != nil {
			return ledgerCheck{}, fmt.Errorf("read the ledger: %w", err)
		}
		c := compare(topics, ledger)
		if c.held > held {
			held, gained = c.held, time.Now()
		}
		if c.missing == 0 || time.Since(gained) >= limit {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return ledgerCheck{}, ctx.Err()
		case <-tick.C:
		}
	}
}

// readLedger reads the ids of all dead letters in the ledger.
func readLedger(ctx context.Context, conn *pgx.Conn) (map[string]bool, error) {
	rows, err := conn.Query(ctx, `SELECT dead_letter_id FROM dead_letters`)
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	ids := make(map[string]bool, len(found))
	for _, id := range found {
		ids[id] = true
	}
	return ids, nil
}
