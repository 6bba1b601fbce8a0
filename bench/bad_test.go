//go:build integration

package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"docket/internal/postgres/store"
)

// scattered is a constraint on the place of a record. The decoder cannot foresee it: nothing in the record tells. The clean
// runs carry the same constraint with a bound that refuses nothing, so that both pay for being checked. A probe's row, which
// comes from beyond every record, or in earlier releases from the first of a partition, is taken.
const scattered = "(source_offset > 1000000000000 OR ((hashint8(source_offset) # hashint4(source_partition) # 512) & 1023) >= %d)"

const threePercent = 31 // of 1024

// bad measures rows that the table refuses: many in a stream, and few in one large batch.
func (b *bench) bad(ctx context.Context) error {
	t, err := b.half(ctx)
	if err != nil {
		return err
	}
	refused, err := b.countBad(ctx, t)
	if err != nil {
		return err
	}
	const clean, spoilt = "Docket, CHECK that refuses none", "Docket, CHECK that refuses 3 %"
	act := func(name string, bound int, refused int64) func() error {
		return func() error {
			homes := map[string]int64{"row": int64(t.decisions) - refused, "dead_letter": refused}
			_, err := b.measure(ctx, name, func(ctx context.Context) (run Run, err error) {
				return run, b.constrained(ctx, "CHECK ("+fmt.Sprintf(scattered, bound)+")", func() error {
					run, err = b.drained(ctx, load{topic: t, homes: homes})
					return err
				})
			})
			return err
		}
	}
	if err := b.rounds(b.Rounds, act(clean, 0, 0), act(spoilt, threePercent, refused)); err != nil {
		return err
	}
	b.judge("3 % bad rows, against the clean rate", Between(b.runs[spoilt], b.runs[clean], Rates), AtLeast(0.85), "",
		fmt.Sprintf("%d of %d refused by a CHECK", refused, t.decisions))
	return b.batches(ctx)
}

// countBad asks the server itself how many of a topic's records the constraint will refuse.
func (b *bench) countBad(ctx context.Context, t topic) (refused int64, err error) {
	ends, err := b.ends(ctx, t.name)
	if err != nil {
		return 0, err
	}
	for partition, end := range ends {
		n, err := b.number(ctx, "SELECT count(*) FROM generate_series(0::bigint, $1::bigint - 1) AS s(source_offset), (SELECT $2::int) AS p(source_partition) WHERE NOT "+
			fmt.Sprintf(scattered, threePercent), end, partition)
		if err != nil {
			return 0, err
		}
		refused += n
	}
	return refused, nil
}

// constrained does something while the empty table has one more constraint.
func (b *bench) constrained(ctx context.Context, constraint string, do func() error) error {
	if err := b.sql(ctx, "TRUNCATE decision_logs", "ALTER TABLE decision_logs ADD CONSTRAINT bench_refuses "+constraint); err != nil {
		return err
	}
	err := do()
	if undo := b.sql(ctx, "ALTER TABLE decision_logs DROP CONSTRAINT bench_refuses"); err == nil {
		err = undo
	}
	return err
}

// batchSize is that of the batches in which few are bad.
const batchSize = 10_000

// oneBatch makes a worker take all of them at once: twice its default number, and time to have them all in hand.
var oneBatch = []string{"DOCKET_BATCH_MAX_RECORDS=10000", "DOCKET_BATCH_MAX_BYTES=64MiB", "DOCKET_BATCH_MAX_WAIT=10s"}

// aBatch is a batch with bad ones in it.
type aBatch struct {
	name           string
	bad            int
	by             refuser
	writes, effort *Goal
}

// refuser is what refuses rows.
type refuser int

const (
	byCheck    refuser = iota // the server names the line of a COPY
	byForeign                 // a foreign key, at the end of the statement: no line; parked, as what is pointed to may still come
	byDeferred                // a constraint trigger, at the commit: no line
)

// home is where Docket brings what was refused.
func (r refuser) home() string {
	if r == byForeign {
		return "parked"
	}
	return "dead_letter"
}

func (b *bench) batches(ctx context.Context) error {
	t, err := b.filled(ctx, "one-batch", 1, batchSize, 0)
	if err != nil {
		return err
	}
	for _, a := range []aBatch{
		{"one bad in 10,000, refused by a CHECK", 1, byCheck, AtMost(4), AtMost(0.08)},
		{"one bad in 10,000, refused by a foreign key", 1, byForeign, AtMost(31), nil},
		{"one bad in 10,000, refused at the commit", 1, byDeferred, AtMost(31), nil},
		{"100 bad in 10,000, refused by a CHECK", 100, byCheck, nil, AtMost(0.2)},
	} {
		if err := b.batch(ctx, t, a); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// batch compares Docket with a write row by row, in rounds.
func (b *bench) batch(ctx context.Context, t topic, a aBatch) error {
	var docket, rows []Run
	bad := chosen(b.Seed, a.bad)
	err := b.rounds(b.Rounds,
		func() error {
			return b.refusing(ctx, a, bad, func() (err error) {
				run, err := b.measure(ctx, a.name+", Docket", func(ctx context.Context) (Run, error) {
					return b.drained(ctx, load{topic: t, settings: oneBatch, homes: map[string]int64{"row": int64(batchSize - a.bad), a.by.home(): int64(a.bad)}})
				})
				if err == nil && run.Batches != 1 {
					return fmt.Errorf("the worker took %d batches, and one was wanted", run.Batches)
				}
				docket = append(docket, run)
				return err
			})
		},
		func() error {
			return b.refusing(ctx, a, bad, func() error {
				run, err := b.measure(ctx, a.name+", row by row", func(ctx context.Context) (Run, error) { return b.oneByOne(ctx, t, a) })
				rows = append(rows, run)
				return err
			})
		})
	if err != nil {
		return err
	}
	b.judge(a.name+", writes in search", Over(docket, func(r Run) float64 { return float64(r.Probes) }), a.writes, "%.0f", "docket_bisect_probes_total")
	b.judge(a.name+", time against row by row", Between(docket, rows, func(d, r Run) float64 { return d.InBatches.Seconds() / r.Took.Seconds() }), a.effort, "%.3f",
		"Docket: the batch in hand to the last of its homes, what is forwarded included; row by row: the inserts alone, of decoded rows")
	return nil
}

func (b *bench) oneByOne(ctx context.Context, t topic, a aBatch) (run Run, err error) {
	if err := b.emptied(ctx); err != nil {
		return run, err
	}
	from, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	took, refused, err := b.insertedOneByOne(ctx, t)
	if err != nil {
		return run, err
	}
	if refused != a.bad {
		return run, fmt.Errorf("%d rows were refused, and %d should", refused, a.bad)
	}
	to, err := b.meter(ctx)
	if err != nil {
		return run, err
	}
	run = Run{Rows: int64(t.decisions), Took: took}
	run.since(from, to, 0)
	return run, b.counted(ctx, int64(t.decisions-refused))
}

// refusing does something while the table refuses the given offsets.
func (b *bench) refusing(ctx context.Context, a aBatch, bad []int, do func() error) error {
	list := "'{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(bad), " ", ","), "[]") + "}'::bigint[]"
	switch a.by {
	case byForeign:
		err := b.sql(ctx, "DROP TABLE IF EXISTS bench_known", "CREATE TABLE bench_known (source_offset bigint PRIMARY KEY)",
			fmt.Sprintf("INSERT INTO bench_known SELECT n FROM generate_series(0, %d) AS n WHERE n <> ALL (%s)", batchSize-1, list),
			fmt.Sprintf("INSERT INTO bench_known VALUES (%d), (%d)", int64(store.ProbeOffset), int64(math.MaxInt64))) // a probe's, now and in earlier releases
		if err != nil {
			return err
		}
		return b.constrained(ctx, "FOREIGN KEY (source_offset) REFERENCES bench_known", do)
	case byDeferred:
		return b.triggered(ctx, list, do)
	}
	return b.constrained(ctx, "CHECK (source_offset <> ALL ("+list+"))", do)
}

// triggered does something while a trigger refuses offsets at the commit.
func (b *bench) triggered(ctx context.Context, list string, do func() error) error {
	err := b.sql(ctx, "TRUNCATE decision_logs",
		`CREATE OR REPLACE FUNCTION bench_refuse() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN RAISE EXCEPTION USING ERRCODE = '23514', CONSTRAINT = 'bench_refuses'; END $$`,
		`CREATE CONSTRAINT TRIGGER bench_refuses AFTER INSERT ON decision_logs DEFERRABLE INITIALLY DEFERRED
			FOR EACH ROW WHEN (NEW.source_offset = ANY (`+list+`)) EXECUTE FUNCTION bench_refuse()`)
	if err != nil {
		return err
	}
	err = do()
	if undo := b.sql(ctx, "DROP TRIGGER bench_refuses ON decision_logs"); err == nil {
		err = undo
	}
	return err
}

// chosen are so many different offsets of a batch, by seed.
func chosen(seed uint64, n int) []int {
	all := rand.New(rand.NewPCG(seed, 10_000)).Perm(batchSize)[:n]
	slices.Sort(all)
	return all
}
