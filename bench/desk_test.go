//go:build integration

package bench

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/postgres/store"
	"docket/internal/record/envelope"
)

const (
	deskDays  = 30
	deskBatch = 1000
	deskCalls = 50
	// deskPartitions are those of the dead-letter topic in docker-compose.yml.
	deskPartitions = 3
)

// enter has n letters entered.
func enter(ctx context.Context, book ledger.Intake, letters *letters, n int) error {
	all, ctx := errgroup.WithContext(ctx)
	batches := make(chan []ledger.Letter)
	for range deskPartitions {
		all.Go(func() error {
			for batch := range batches {
				if _, err := book.Enter(ctx, batch, 3, ledger.Actor{Name: "desk", Why: "read"}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	all.Go(func() error {
		defer close(batches)
		for left := n; left > 0; left -= deskBatch {
			select {
			case batches <- letters.next(min(left, deskBatch)):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	return all.Wait()
}

// desk fills the ledger and looks into it in every way that an operator has. Letters enter as the desk has them
// enter: each partition of the dead-letter topic by itself.
func (b *bench) desk(ctx context.Context) error {
	db, err := store.Open(db.Config{URL: b.dsn, StoreTimeout: 10 * time.Minute}, zerolog.Nop())
	if err != nil {
		return err
	}
	defer db.Close()
	book, now := ledgerdb.New(db.DB), time.Now()
	letters := newLetters(b.Seed, now)
	began := time.Now()
	if err := enter(ctx, book, letters, b.N); err != nil {
		return err
	}
	rate := float64(b.N) / time.Since(began).Seconds()
	b.rows = append(b.rows, Row{What: "letters that enter the ledger, a second", Measured: Figure{Value: rate}, Goal: AtLeast(10_000), Format: "%.0f", Note: fmt.Sprintf("%d, %d at a time, %d partitions side by side", b.N, deskBatch, deskPartitions)})
	if err := b.decided(ctx, book); err != nil {
		return err
	}
	for _, s := range DeskShapes(now, deskDays, letters.fingerprints(), letters.paths(), letters.ids) {
		looked, err := s.Look(ctx, book, deskCalls)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
		b.say("%-40s p50 %7.1f ms, p95 %7.1f ms", s.Name, ms(looked.P50), ms(looked.P95))
		b.rows = append(b.rows, Row{What: "desk, " + s.Name + ", p95", Measured: Figure{Value: ms(looked.P95)}, Goal: AtMost(ms(DeskGoal)), Format: "%.1f ms", Note: fmt.Sprintf("p50 %.1f ms", ms(looked.P50))})
	}
	return nil
}

// decided resolves 45 of 100, has 1 retried and 9 failed, and lets the server do its upkeep.
func (b *bench) decided(ctx context.Context, book *ledgerdb.Ledger) error {
	const move = `UPDATE dead_letters SET state = '%s', changed_at = clock_timestamp(), changed_by = 'bench', changed_act = '%s', why = 'bench' WHERE state = '%s' AND origin_offset %% 100 < %d`
	if err := b.sql(ctx, fmt.Sprintf(move, "RESOLVED", "closed", "PENDING", 45), fmt.Sprintf(move, "PROCESSING", "retried", "PENDING", 55),
		fmt.Sprintf(move, "FAILED", "refused", "PROCESSING", 54)); err != nil {
		return err
	}
	if err := book.Compact(ctx); err != nil {
		return err
	}
	return b.sql(ctx, "VACUUM ANALYZE dead_letters", "VACUUM ANALYZE dead_letter_counts", "VACUUM ANALYZE dead_letter_days", "CHECKPOINT")
}

// letters makes dead letters: 200 fingerprints and 40 paths, some far more frequent than others, 12 partitions, 30 days.
type letters struct {
	random *rand.Rand
	now    time.Time
	made   int64
	ids    []string // of the first ones
}

func newLetters(seed uint64, now time.Time) *letters {
	return &letters{random: rand.New(rand.NewPCG(seed, 6)), now: now}
}

func (l *letters) cause(i int) envelope.Cause {
	c := envelope.Cause{Kind: envelope.Data, Code: "23514", Table: "decision_logs", Constraint: fmt.Sprint("rule_", i), Message: "check_violation: constraint rule_" + fmt.Sprint(i)}
	switch i % 7 {
	case 1, 2:
		c.Code = "22P02"
	case 3:
		c.Kind, c.Code = envelope.Conflict, "conflict"
	case 4:
		c.Kind, c.Code = envelope.Transient, "40001"
	case 5:
		c.Kind, c.Code = envelope.Exhausted, "08006"
	case 6:
		c.Kind, c.Code = envelope.Decode, "bad_json"
	}
	return c
}

func (l *letters) fingerprints() (of []string) {
	for i := range 200 {
		of = append(of, ledger.Fingerprint(l.cause(i)))
	}
	return of
}

func (l *letters) paths() (of []string) {
	for i := range 40 {
		of = append(of, fmt.Sprintf("shop/service%d/allow", i))
	}
	return of
}

func (l *letters) next(n int) []ledger.Letter {
	paths, batch := l.paths(), make([]ledger.Letter, n)
	for i := range batch {
		l.made++
		id := sha256.Sum256(fmt.Append(nil, l.made))
		hexID := hex.EncodeToString(id[:])
		failed := l.now.Add(-time.Duration(l.random.Float64() * deskDays * 24 * float64(time.Hour)))
		path := paths[int(40*math.Pow(l.random.Float64(), 2))]
		batch[i] = ledger.Letter{
			ID:    hexID,
			Cause: l.cause(int(200 * math.Pow(l.random.Float64(), 3))), Path: path, DecisionID: hexID[:32], DecisionTime: failed,
			Origin: envelope.Origin{Topic: logs, Partition: int32(l.random.IntN(12)), Offset: l.made, Timestamp: failed}, FirstFailedAt: failed,
			FailedAt: failed.Add(time.Duration(l.random.IntN(3600)) * time.Second), Found: ledger.Found{Topic: logs + "-dlq", Partition: int32(l.made % 3), Offset: l.made, Stamp: failed},
			Key: []byte(hexID[:8]), Value: fmt.Appendf(nil, `{"decision_id":%q,"path":%q,"input":{"pad":%q}}`, hexID[:32], path, strings.Repeat(hexID[:16], 25)),
		}
		if len(l.ids) < deskCalls {
			l.ids = append(l.ids, hexID)
		}
	}
	return batch
}
