package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
)

// withoutRow is the query of the README that lists the Kafka records that left no row.
const withoutRow = `SELECT p, o FROM (SELECT source_partition p, max(source_offset) m FROM decision_logs GROUP BY 1) t, generate_series(0, m) o ` +
	`EXCEPT SELECT source_partition, source_offset FROM decision_logs ORDER BY 1, 2`

// readme accounts once more, by the query of the README. Each Kafka record that the query lists has to be in the
// dead-letter topic, or to repeat a decision that has its row. The list must have every planted bad record.
func (o *outage) readme(ctx context.Context, ev conservation.Evidence) error {
	text, err := os.ReadFile("README.md")
	if err != nil {
		return err
	}
	if !strings.Contains(string(text), withoutRow) {
		return errors.New("the query is not in the README")
	}
	listed, err := compose(ctx, "exec", "-T", "postgres", "psql", "-U", "docket", "-AtF", " ", "-c", withoutRow)
	if err != nil {
		return err
	}
	dead, stored := homes(ev)
	seen := make(map[[2]int64]bool)
	var lost, extra []string
	for line := range strings.Lines(listed) {
		var at [2]int64
		if _, err := fmt.Sscan(line, &at[0], &at[1]); err != nil {
			return fmt.Errorf("read the query's answer: %w", err)
		}
		seen[at] = true
		r, ours := o.poured[at]
		if !ours || !housed(r, at, dead, stored) {
			lost = append(lost, strings.TrimSpace(line))
		}
	}
	last := make(map[int64]int64)
	for _, row := range ev.Rows {
		last[int64(row.Partition)] = max(last[int64(row.Partition)], row.Offset)
	}
	for at, r := range o.poured {
		if at[1] <= last[at[0]] && allBad(r) && !seen[at] {
			extra = append(extra, fmt.Sprint(at))
		}
	}
	if len(lost)+len(extra) > 0 {
		return fmt.Errorf("by the README's query: %d lost: %s; %d bad ones with a row: %s", len(lost), list(lost), len(extra), list(extra))
	}
	o.say("by the README's query: %d Kafka records without a row, each is a dead letter or a duplicate", len(seen))
	return nil
}

// homes are the places of the dead letters and the ids of the rows.
func homes(ev conservation.Evidence) (dead map[conservation.Place]bool, stored map[string]bool) {
	dead, stored = make(map[conservation.Place]bool), make(map[string]bool, len(ev.Rows))
	for _, f := range ev.Forwarded {
		if f.Home == home.DeadLetter {
			f.Index = max(0, f.Index) // -1: a whole Kafka record
			dead[f.Place] = true
		}
	}
	for _, row := range ev.Rows {
		stored[row.ID] = true
	}
	return dead, stored
}

// housed: every decision of the record is a dead letter or has its row, perhaps from another record.
func housed(r conservation.Record, at [2]int64, dead map[conservation.Place]bool, stored map[string]bool) bool {
	for i, d := range r.Decisions {
		place := conservation.Place{Topic: "decision-logs", Partition: int32(at[0]), Offset: at[1], Index: i}
		if !dead[place] && (d.Code != "" || !stored[d.ID]) {
			return false
		}
	}
	return true
}

func allBad(r conservation.Record) bool {
	for _, d := range r.Decisions {
		if d.Code == "" {
			return false
		}
	}
	return true
}
