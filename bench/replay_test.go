//go:build integration

package bench

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
)

// mostReplays are the rounds of parking and replay at most: each writes the whole topic a second time.
const mostReplays = 3

// parkingAll makes a worker park whatever fails, for ever, and what it parks be due at once. By default it would hold
// after three whole batches in a row: an outage is waited out, not copied.
var parkingAll = []string{"DOCKET_PARK_BATCHES=0", "DOCKET_PARKING_BACKOFF=1ms"}

const (
	cleanName  = "Docket, empty table, beside parking"
	parkName   = "Docket, every batch parked"
	replayName = "Docket, replay of what was parked"
)

// replay parks a whole topic, and brings what was parked into the table.
func (b *bench) replay(ctx context.Context) error {
	t, err := b.logs(ctx)
	if err != nil {
		return err
	}
	err = b.rounds(min(b.Rounds, mostReplays),
		func() error {
			_, err := b.measure(ctx, cleanName, func(ctx context.Context) (Run, error) { return b.drained(ctx, load{topic: t}) })
			return err
		},
		func() error { return b.parkAndReplay(ctx, t) })
	if err != nil {
		return err
	}
	clean := b.runs[cleanName]
	b.judge("parking, decisions against the clean drain", Between(b.runs[parkName], clean, Rates), AtLeast(0.5), "",
		"every batch fails with HV00N, which parks without another try")
	b.judge("replay, decisions against the clean drain", Between(b.runs[replayName], clean, Rates), AtLeast(0.5), "",
		"all of them due; from the parking topic into the empty table")
	b.judge("parking, worker CPU against the clean drain", Between(b.runs[parkName], clean, perDecision), nil, "", "for a decision")
	b.judge("replay, worker CPU against the clean drain", Between(b.runs[replayName], clean, perDecision), nil, "", "for a decision")
	return nil
}

func perDecision(a, b Run) float64 { return a.WorkerCPU() / b.WorkerCPU() }

// parkAndReplay fills a parking topic by the consumer and empties it by the replayer.
func (b *bench) parkAndReplay(ctx context.Context, t topic) error {
	var lot topic
	_, err := b.measure(ctx, parkName, func(ctx context.Context) (run Run, err error) {
		if lot.name != "" { // made again
			if err := b.remove(ctx, lot.name); err != nil {
				return run, err
			}
		}
		lot, run, err = b.parked(ctx, t)
		return run, err
	})
	if err != nil {
		return err
	}
	_, err = b.measure(ctx, replayName, func(ctx context.Context) (Run, error) { return b.replayed(ctx, t, lot) })
	return errors.Join(err, b.remove(ctx, lot.name))
}

// parked lets a worker carry a topic while nothing can be stored, and sees that all of it is in the parking topic.
func (b *bench) parked(ctx context.Context, t topic) (lot topic, run Run, err error) {
	b.started++
	lot = topic{name: fmt.Sprintf("%s-%d", t.name+"-parking", b.started), decisions: t.decisions, bytes: t.bytes}
	if err := b.create(ctx, lot.name, partitions, nil); err != nil {
		return lot, run, err
	}
	err = b.failing(ctx, func() (err error) {
		run, err = b.drained(ctx, load{
			topic: t, homes: map[string]int64{"parked": int64(t.decisions)}, settings: append([]string{"DOCKET_KAFKA_PARKING_TOPIC=" + lot.name}, parkingAll...),
		})
		return err
	})
	if err != nil {
		return lot, run, err
	}
	return lot, run, b.holds(ctx, lot)
}

// failing does something while each write to the table fails as one whose trigger asks a foreign server that is away: of all
// failures of whole batches, this one is parked at once. A transient failure is retried twice before, after pauses, and a
// table that refuses everything is a hold.
func (b *bench) failing(ctx context.Context, do func() error) error {
	err := b.sql(ctx, "TRUNCATE decision_logs",
		`CREATE OR REPLACE FUNCTION bench_away() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'HV00N'; END $$`,
		"CREATE TRIGGER bench_away BEFORE INSERT ON decision_logs FOR EACH STATEMENT EXECUTE FUNCTION bench_away()")
	if err != nil {
		return err
	}
	err = do()
	if undo := b.sql(ctx, "DROP TRIGGER bench_away ON decision_logs"); err == nil {
		err = undo
	}
	return err
}

// holds sees that a topic has as many records as there are decisions, no more and no less.
func (b *bench) holds(ctx context.Context, t topic) error {
	ends, err := b.ends(ctx, t.name)
	if err != nil {
		return err
	}
	var n int64
	for _, end := range ends {
		n += end
	}
	if n != int64(t.decisions) {
		return fmt.Errorf("the account does not add up: %s has %d records, and should have %d", t.name, n, t.decisions)
	}
	return nil
}

// replayed lets the replayer empty a parking topic into the empty table. It checks that each row names the place where it
// was first read. It also checks that the parking topic is committed to its end.
func (b *bench) replayed(ctx context.Context, t, lot topic) (run Run, err error) {
	group := b.group()
	run, err = b.drained(ctx, load{topic: lot, group: group, replay: true})
	if err != nil {
		return run, err
	}
	n, err := b.number(ctx, "SELECT count(DISTINCT (source_partition, source_offset)) FROM decision_logs WHERE source_topic = $1", t.name)
	if err != nil {
		return run, err
	}
	if n != int64(t.decisions) {
		return run, fmt.Errorf("the account does not add up: %d of %d decisions came back under their own origin", n, t.decisions)
	}
	return run, b.committed(ctx, group, lot)
}

// committed sees that a group has committed a topic to its end.
func (b *bench) committed(ctx context.Context, group string, t topic) error {
	ends, err := b.ends(ctx, t.name)
	if err != nil {
		return err
	}
	at, err := kadm.NewClient(b.client).FetchOffsetsForTopics(ctx, group, t.name)
	if err == nil {
		err = at.Error()
	}
	if err != nil {
		return fmt.Errorf("ask for the offsets of %s: %w", group, err)
	}
	for partition, end := range ends {
		if o, ok := at.Lookup(t.name, partition); end > 0 && (!ok || o.At != end) {
			return fmt.Errorf("the account does not add up: %s/%d is committed up to %d, and has %d records", t.name, partition, o.At, end)
		}
	}
	return nil
}
