package worker

import (
	"fmt"
	"strings"

	"docket/internal/desk/ledger"
)

// note describes the job's activity in one line.
func (c *jobRun) note() string {
	note := c.progress()
	if c.perSecond >= 0.05 {
		note += "; " + perSecond(c.perSecond) + "/s"
	}
	if c.waits != "" {
		note += "; " + c.waits
	}
	return note
}

// progress describes the progress: sent 1,200 of 4,819, 1,190 stored, 3 failed again, 7 in progress.
func (c *jobRun) progress() string {
	of := c.job.Matched
	if c.job.Limit > 0 {
		of = min(of, c.job.Limit)
	}
	if c.job.Act == ledger.Closed {
		return fmt.Sprintf("resolved %s of %s", thousands(c.job.Sent), thousands(of))
	}
	said := []string{fmt.Sprintf("sent %s of %s", thousands(c.job.Sent), thousands(of))}
	for _, part := range []struct {
		n    int64
		what string
	}{{c.job.Stored, "stored"}, {c.job.Dead, "failed again"}, {c.job.Refused, "not accepted by Kafka"}, {c.job.Open(), "in progress"}} {
		if part.n > 0 {
			said = append(said, thousands(part.n)+" "+part.what)
		}
	}
	return strings.Join(said, ", ")
}

func perSecond(f float64) string {
	if f < 9.95 {
		return fmt.Sprintf("%.1f", f)
	}
	return thousands(int64(f + 0.5))
}

func records(n int64) string { return thousands(n) + verb(n, " record", " records") }
