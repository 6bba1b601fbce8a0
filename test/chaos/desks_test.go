//go:build integration

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/conservation"
	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/record/home"
	"docket/internal/service/config"
	"docket/internal/testkit/testenv"
)

// deskGroup is the consumer group of the desks, which have the default.
const deskGroup = "docket-desk"

// desks are the slots of the desks; none where Postgres has a standby.
func (c *campaign) desks() []*slot {
	return c.slots[min(len(c.slots), members+joiners):]
}

// makeDesks gives the programs' role the rights of the desk, and makes a slot for each desk.
func (c *campaign) makeDesks(t *testing.T, env []string) {
	t.Helper()
	grants, err := os.ReadFile(filepath.Join("..", "..", "docs", "desk-grants.sql"))
	check(t, err)
	check(t, c.database.exec(t.Context(), strings.ReplaceAll(string(grants), `:"schema"`, "public"), "GRANT docket_desk TO "+role,
		"REVOKE ALL ON decision_logs FROM docket_desk")) // the role has its own rights there, which a fault takes away
	for i := range Desks {
		s := &slot{campaign: c, number: len(c.slots), program: "docket", args: []string{"desk"}, name: fmt.Sprintf("desk-%d", i)}
		s.addr, err = testenv.FreeAddr()
		check(t, err)
		s.env = append(append([]string{}, env...), "DOCKET_HTTP_ADDR="+s.addr, "DOCKET_DESK_API_ADDR=", "DOCKET_DESK_LEASE=10s",
			"DOCKET_DESK_RELAY_INTERVAL=200ms", "DOCKET_DESK_RETRY_FIRST=5s", "DOCKET_DESK_RETRY_INTERVAL=5s", "DOCKET_DESK_RETRY_KINDS=conflict")
		c.slots = append(c.slots, s)
	}
}

func (c *campaign) deskFaults() map[string]inject {
	if c.standby {
		return nil
	}
	first := members + joiners
	return map[string]inject{
		"desk killed": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			return c.killed(first + f.Target), nil
		},
		"desk stopped beyond its session": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			s := c.slots[first+f.Target]
			s.freeze()
			return func(context.Context) error { s.thaw(); return nil }, nil
		},
		"desk killed again and again": func(_ context.Context, f Fault) (func(context.Context) error, error) {
			return c.killedAgain(c.slots[first+f.Target]), nil
		},
		"both desks killed at once": func(context.Context, Fault) (func(context.Context) error, error) {
			return c.killed(first, first+1), nil
		},
	}
}

// operate retries dead letters while the load lasts, by `docket dlq retry`: some by their ids, others by jobs.
func (c *campaign) operate(ctx context.Context) {
	for n := 0; len(c.desks()) > 0 && wait(ctx, 2*time.Second); n++ {
		args := []string{"dlq", "retry", "--operator", "chaos", "--reason", "the campaign says so", "--detach"}
		if n%3 == 2 {
			args = append(args, "--all", "--limit", "20", "--yes")
		} else {
			ids, err := c.freeLetters(ctx)
			if err != nil || len(ids) == 0 {
				continue
			}
			args = append(args, ids...)
		}
		asking, cancel := context.WithTimeout(ctx, 15*time.Second)
		cmd := exec.CommandContext(asking, filepath.Join(c.bin, "docket"), args...)
		cmd.Env = c.desks()[0].env
		if out, err := cmd.CombinedOutput(); err != nil {
			c.note("docket %v: %v: %.300s", args[:2], err, out)
		} else {
			c.decided.Add(1)
		}
		cancel()
	}
}

// endSchedule starts the desks again without scheduled retries: a conflict never ends, and its next retry would come into the account.
func (c *campaign) endSchedule() {
	for _, s := range c.desks() {
		s.terminate()
		s.env = append(s.env, "DOCKET_DESK_RETRY_KINDS=")
		if err := s.start(); err != nil {
			c.broken("the campaign", "%v", err)
		}
	}
}

// freeLetters are the ids of some that can be retried.
func (c *campaign) freeLetters(ctx context.Context) (ids []string, err error) {
	err = c.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT dead_letter_id FROM dead_letters WHERE state IN ('PENDING', 'FAILED') ORDER BY random() LIMIT 5`)
		if err != nil {
			return err
		}
		ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return ids, err
}

// deskUnsettled says what the desks have still to do.
func (c *campaign) deskUnsettled(ctx context.Context) error {
	if len(c.desks()) == 0 {
		return nil
	}
	for _, topic := range []string{c.places.DLQTopic, c.places.ParkingDLQ} {
		dead, _, err := conservation.Places{Brokers: c.places.Brokers, Topic: topic, Group: deskGroup, ParkingTopic: topic, ParkingGroup: deskGroup}.Lag(ctx)
		if err != nil || dead > 0 {
			return fmt.Errorf("the desks have %d records of %s to read: %w", dead, topic, err)
		}
	}
	return c.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var retried, sent, jobs int
		err := conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM dead_letters WHERE state = 'PROCESSING'), (SELECT count(*) FROM dead_letter_outbox WHERE ended_at IS NULL),
			(SELECT count(*) FROM dead_letter_jobs WHERE state IN ('WAITING', 'RUNNING'))`).Scan(&retried, &sent, &jobs)
		if err == nil && retried+sent+jobs > 0 {
			err = fmt.Errorf("%d letters and %d retries have not ended, %d jobs", retried, sent, jobs)
		}
		return err
	})
}

// books decides I16 as `consumer verify` does on a live system, and that each retry had one effect.
func (c *campaign) books(ctx context.Context, evidence conservation.Evidence) {
	if len(c.desks()) == 0 {
		return
	}
	summary, err := c.inspected(ctx)
	if err != nil {
		c.broken("the ledger", "it cannot be verified: %v", err)
		return
	}
	found := summary.Of("I16")
	c.note("%v", found)
	for i, v := range c.result.summary.Results {
		if v.Invariant == "I16" {
			c.result.summary.Results[i] = found
		}
	}
	if found.State != verify.Held {
		c.broken("the ledger", "%v", found)
	}
	if err := c.effects(ctx, evidence); err != nil {
		c.broken("the ledger", "%v", err)
	}
}

// inspected is what `consumer verify --settled` finds.
func (c *campaign) inspected(ctx context.Context) (*verify.Summary, error) {
	s, _, err := config.LoadWith(config.Consumer, append(c.laneSettings(),
		"DOCKET_KAFKA_BROKERS="+strings.Join(c.places.Brokers, ","), "DOCKET_DATABASE_URL="+c.places.DatabaseURL, "DOCKET_MAX_RECORD_BYTES=1MiB",
	), nil)
	if err != nil {
		return nil, err
	}
	s.DeskGroup = deskGroup
	sys, err := inspect.Open(s, inspect.Options{Spools: c.places.SpoolDirs})
	if err != nil {
		return nil, err
	}
	defer sys.Close()
	result, err := sys.Verify(ctx, inspect.Scope{Since: c.began.Add(-time.Hour), Settled: c.result.settled})
	if err != nil {
		return nil, err
	}
	return result.Summary, nil
}

// retried is a row of the outbox.
type retried struct {
	ID                           int64
	Mark, Letter, Outcome, Topic string
	Partition                    int32
	Offset                       int64 // -1: not published
	Job                          int64
}

// effects checks that each retry was put back where the ledger says, under a mark that the ledger issued. A retry that the
// ledger calls dead has a dead letter. No job retried a letter twice, and each counted its acts.
func (c *campaign) effects(ctx context.Context, evidence conservation.Evidence) error {
	var all []retried
	jobs := map[int64][2]int64{} // sent, ended
	err := c.database.with(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, `SELECT outbox_id, mark::text, dead_letter_id, coalesce(outcome, 'open'), topic, coalesce(published_partition, 0), coalesce(published_offset, -1), coalesce(job_id, 0)
			FROM dead_letter_outbox`)
		if err != nil {
			return err
		}
		if all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[retried]); err != nil {
			return err
		}
		counts, err := conn.Query(ctx, `SELECT j.job_id, j.sent, coalesce((SELECT sum(n) FROM dead_letter_job_ends e WHERE e.job_id = j.job_id), 0)::bigint FROM dead_letter_jobs j`)
		if err != nil {
			return err
		}
		var id, sent, ended int64
		_, err = pgx.ForEachRow(counts, []any{&id, &sent, &ended}, func() error { jobs[id] = [2]int64{sent, ended}; return nil })
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(c.putBackAsSaid(all, evidence), countedAsDone(all, jobs))
}

func (c *campaign) putBackAsSaid(all []retried, evidence conservation.Evidence) error {
	var wrong []error
	dead := map[conservation.Place]bool{}
	for i := range evidence.Forwarded {
		if f := &evidence.Forwarded[i]; f.Home == home.DeadLetter || f.Home == home.Exhausted {
			at := f.Place
			at.Index = 0
			dead[at] = true
		}
	}
	marks := c.load.marks()
	for _, r := range all {
		diedThere, there := false, false
		for _, at := range marks[r.Mark] {
			diedThere = diedThere || dead[at]
			there = there || at == conservation.Place{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset}
		}
		switch {
		case r.Offset >= 0 && !there:
			wrong = append(wrong, fmt.Errorf("retry %d is said to be at %s/%d/%d, and is not there", r.ID, r.Topic, r.Partition, r.Offset))
		case r.Outcome == "dead" && !diedThere:
			wrong = append(wrong, fmt.Errorf("retry %d of %.12s is said to be dead again, and no dead letter is its record", r.ID, r.Letter))
		case r.Outcome == "open" && c.result.settled:
			wrong = append(wrong, fmt.Errorf("retry %d has not ended", r.ID))
		}
		delete(marks, r.Mark)
	}
	for mark, at := range marks {
		wrong = append(wrong, fmt.Errorf("%v was put back under a mark that nobody gave out: %s", at, mark))
	}
	c.say("%d retries, %d of them of jobs, by %d commands of operators and the schedule; %d records were put back", len(all), ofJobs(all), c.decided.Load(), c.load.putBacks.Load())
	return errors.Join(wrong...)
}

func ofJobs(all []retried) (n int) {
	for _, r := range all {
		if r.Job != 0 {
			n++
		}
	}
	return n
}

func countedAsDone(all []retried, jobs map[int64][2]int64) error {
	var wrong []error
	letters, sent := map[string]bool{}, map[int64]int64{}
	for _, r := range all {
		if r.Job == 0 {
			continue
		}
		sent[r.Job]++
		if key := fmt.Sprint(r.Job, " ", r.Letter); letters[key] {
			wrong = append(wrong, fmt.Errorf("job %d retried %.12s twice", r.Job, r.Letter))
		} else {
			letters[key] = true
		}
	}
	for id, said := range jobs {
		if said != [2]int64{sent[id], sent[id]} {
			wrong = append(wrong, fmt.Errorf("job %d says that it sent %d, of which %d ended; it sent %d", id, said[0], said[1], sent[id]))
		}
	}
	return errors.Join(wrong...)
}

// followReturns writes down what the desks put back on the source, as it comes.
func (c *campaign) followReturns(ctx context.Context) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.cluster.Direct()...), kgo.ConsumeTopics(c.topics()...))
	if err != nil {
		c.broken("the campaign", "no client to see what is put back: %v", err)
		return
	}
	defer cl.Close()
	var unknown []*kgo.Record // the record that was put back is not known yet
	for ctx.Err() == nil {
		polling, cancel := context.WithTimeout(ctx, time.Second)
		cl.PollFetches(polling).EachRecord(func(r *kgo.Record) {
			if isPutBack(r) {
				unknown = append(unknown, r)
			}
		})
		cancel()
		unknown = c.load.adopt(unknown)
	}
}
