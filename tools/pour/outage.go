package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"docket/internal/audit/conservation"
	"docket/internal/record/home"
	"docket/sample"
)

// maxRecordBytes is the default of DOCKET_MAX_RECORD_BYTES: one of the planted records is larger.
const maxRecordBytes = 16 << 20

// outage pours at an even pace, freezes Postgres and later stops it meanwhile, and accounts for every decision.
type outage struct {
	project
	frozen time.Duration
	away   time.Duration
	around time.Duration
	rate   int
	say    func(format string, args ...any)
	out    io.Writer
	// Nil where there is no Prometheus.
	observed *observed

	ledger *conservation.Produced
	mu     sync.Mutex
	poured map[[2]int64]conservation.Record // by partition and offset
}

func (o *outage) run(ctx context.Context) error {
	o.ledger, o.poured = conservation.NewProduced(), make(map[[2]int64]conservation.Record)
	if err := o.refuse(ctx); err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.pour(gctx) })
	group.Go(func() error { return o.takeAway(gctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	o.say("sent %d Kafka records with %d decisions; waiting until each has its home", o.ledger.Records(), o.ledger.Decisions())
	if err := o.settle(ctx); err != nil {
		return err
	}
	if o.observed != nil {
		o.observed.settled = time.Now()
	}
	err := o.account(ctx)
	if o.observed != nil {
		err = errors.Join(err, o.observed.check(ctx))
	}
	return err
}

// refuse gives the table a constraint that no decoder knows of, so that bad records have to be found by bisecting.
func (o *outage) refuse(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, o.places.DatabaseURL)
	if err != nil {
		return fmt.Errorf("connect to add a constraint: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, conservation.RefuseSQL); err != nil {
		return fmt.Errorf("add a constraint: %w", err)
	}
	return nil
}

// pour writes records until both outages are over and for a while after them.
func (o *outage) pour(ctx context.Context) error {
	over := o.frozen + o.away + 3*o.around
	seed := rand.Uint64()
	generator, err := conservation.New(conservation.Config{
		Records: max(conservation.MinRecords, int(over.Seconds()*float64(o.rate))), Seed: seed, Samples: sample.DecisionLogs(),
		MaxRecordBytes: maxRecordBytes, Start: time.Now().Add(-time.Hour),
	})
	if err != nil {
		return fmt.Errorf("make decision logs: %w", err)
	}
	client, err := newProducer(o.project)
	if err != nil {
		return err
	}
	defer client.Close()
	o.say("sending %d Kafka records a second for %v, good and bad (seed %d)", o.rate, over, seed)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	began := time.Now()
	for n := 0; ; n++ {
		record, more := generator.Next()
		if !more {
			break
		}
		if err := sleep(ctx, time.Until(began.Add(time.Duration(n)*time.Second/time.Duration(o.rate)))); err != nil {
			return context.Cause(ctx)
		}
		client.Produce(ctx, &kgo.Record{Key: record.Key, Value: record.Value, Headers: record.Headers}, func(r *kgo.Record, err error) {
			if err != nil {
				fail(fmt.Errorf("pour into %s: %w", o.places.Topic, err))
				return
			}
			o.ledger.Acknowledged(r.Topic, r.Partition, r.Offset, record)
			o.mu.Lock()
			defer o.mu.Unlock()
			o.poured[[2]int64{int64(r.Partition), r.Offset}] = record
		})
	}
	if err := client.Flush(ctx); err != nil {
		return context.Cause(ctx)
	}
	return context.Cause(ctx)
}

// takeAway makes the two outages. A frozen server keeps its name and its port and answers nothing. It may carry out
// requests later. Compose also forgets the name of a stopped server.
func (o *outage) takeAway(ctx context.Context) error {
	for _, without := range []struct {
		verb, back, said string
		lasts            time.Duration
	}{
		{"pause", "unpause", "frozen", o.frozen},
		{"stop", "start", "stopped", o.away},
	} {
		if err := sleep(ctx, o.around); err != nil {
			return err
		}
		if err := o.until(ctx, "row"); err != nil {
			return err
		}
		if err := insist(ctx, without.verb, "postgres"); err != nil {
			return err
		}
		o.say("Postgres is %s for %v; sending continues", without.said, without.lasts)
		if err := o.watch(ctx, without.lasts); err != nil {
			return err
		}
		// It stays away until what it is for has come about, which takes longer on a machine with much to do.
		var err error
		switch {
		case without.verb == "pause":
			err = o.until(ctx, "parked")
		case o.observed != nil:
			err = o.observed.fired(ctx)
		}
		if err != nil {
			return err
		}
		if _, err := compose(ctx, without.back, "postgres"); err != nil {
			return err
		}
		o.say("Postgres is back")
	}
	return nil
}

// until waits until the consumer has given something this home.
func (o *outage) until(ctx context.Context, h string) error {
	deadline := time.Now().Add(still)
	for {
		n, err := o.metric(ctx, "consumer", "docket_records_total{home=\""+h+"\"}")
		if err != nil {
			return err
		}
		if n > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("nothing has the home %s after %v", h, still)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// insist runs Compose, again where it fails: runc does not always get a container frozen on a machine with much to do.
func insist(ctx context.Context, args ...string) error {
	for tries := 1; ; tries++ {
		_, err := compose(ctx, args...)
		if err == nil || tries == 5 {
			return err
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// watch says a few times what the consumer makes of it.
func (o *outage) watch(ctx context.Context, d time.Duration) error {
	const times = 3
	for range times {
		if err := sleep(ctx, d/times); err != nil {
			return err
		}
		ready, err := o.get(ctx, "consumer", "/readyz")
		if err != nil {
			return err
		}
		o.say("consumer: %s", ready)
	}
	return nil
}

// still is how long nothing at all may move before the account is made of what there is. Parked records wait for a
// minute before they are tried again.
const still = 3 * time.Minute

// settle waits until both groups have committed everything and both spools are empty, twice in a row.
func (o *outage) settle(ctx context.Context) error {
	var before [3]int64
	moved, said := time.Now(), time.Now()
	for quiet := 0; quiet < 2; {
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		source, parking, err := o.places.Lag(ctx)
		if err != nil {
			return err
		}
		spooled, err := o.both(ctx, "docket_spool_files")
		if err != nil {
			return err
		}
		left := [3]int64{source, parking, int64(spooled)}
		if quiet++; left != [3]int64{} {
			quiet = 0
		}
		if left != before {
			before, moved = left, time.Now()
		}
		if time.Since(said) > 10*time.Second || quiet == 2 {
			o.say("not committed: %d; parked and waiting: %d; files in spools: %d", source, parking, int64(spooled))
			said = time.Now()
		}
		if time.Since(moved) > still {
			o.say("nothing moved for %v; counting now", still)
			return nil
		}
	}
	return nil
}

// both is the sum of a metric over both programs.
func (o *outage) both(ctx context.Context, name string) (float64, error) {
	var sum float64
	for program := range o.programs {
		v, err := o.metric(ctx, program, name)
		if err != nil {
			return 0, err
		}
		sum += v
	}
	return sum, nil
}

// account reads the table and the topics, matches them with what was poured, and says all that is wrong.
func (o *outage) account(ctx context.Context) error {
	evidence, err := conservation.Gather(ctx, o.places, o.ledger)
	if err != nil {
		return err
	}
	account := conservation.Reconcile(o.ledger, evidence)
	parked := 0
	for _, f := range evidence.Forwarded {
		if f.Home == home.Parked {
			parked++
		}
	}
	fmt.Fprintf(o.out, "\n%s%d records went through parking\n", accountTable(account), parked)
	wrong := []error{account.Err()}
	if n := account.Homes[home.Parked]; n > 0 {
		wrong = append(wrong, fmt.Errorf("parking is not drained: %d", n))
	}
	if parked == 0 {
		wrong = append(wrong, errors.New("nothing was ever parked: the outage proved nothing"))
	}
	for _, name := range []string{"docket_unaccounted_records", "docket_hold", "docket_spool_files", "docket_spool_dropped_records_total"} {
		v, err := o.both(ctx, name)
		if err == nil && v != 0 {
			err = fmt.Errorf("%s is %v", name, v)
		}
		wrong = append(wrong, err)
	}
	wrong = append(wrong, o.readme(ctx, evidence))
	if err := errors.Join(wrong...); err != nil {
		return fmt.Errorf("the account does not add up:\n%w", err)
	}
	o.say("every decision is accounted for: none lost, none twice, dead letters as planted, parking empty")
	return nil
}

// list names the first few of many.
func list(of []string) string {
	const shown = 5
	if len(of) > shown {
		of = append(of[:shown:shown], "…")
	}
	return strings.Join(of, "; ")
}
