package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/envelope"
)

const (
	lettersDays  = 30
	lettersBatch = 1000
)

// fillLetters enters n letters as a desk does: 200 groups and 40 paths, some far more frequent than others. Of 100, 45
// are resolved and 9 failed.
func fillLetters(ctx context.Context, book *ledgerdb.Ledger, conn *pgx.Conn, n int) error {
	began := time.Now()
	var work errgroup.Group
	work.SetLimit(3)
	for from := 0; from < n; from += lettersBatch {
		work.Go(func() error {
			_, err := book.Enter(ctx, someLetters(from, min(lettersBatch, n-from), began), 3, ledger.Actor{Name: "desk", Why: "read"})
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	const move = `UPDATE dead_letters SET state = '%s', changed_at = clock_timestamp(), changed_by = 'bench', changed_act = '%s', why = 'bench' WHERE state = '%s' AND origin_offset %% 100 < %d`
	for _, sql := range []string{fmt.Sprintf(move, "RESOLVED", "closed", "PENDING", 45), fmt.Sprintf(move, "PROCESSING", "retried", "PENDING", 55), fmt.Sprintf(move, "FAILED", "refused", "PROCESSING", 54)} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	if err := book.Compact(ctx); err != nil {
		return err
	}
	for _, table := range []string{"dead_letters", "dead_letter_audit", "dead_letter_counts", "dead_letter_days"} {
		if _, err := conn.Exec(ctx, "VACUUM (ANALYZE) "+table); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "%d dead letters in %s\n", n, time.Since(began).Round(time.Second))
	return nil
}

// someLetters makes n letters from a number on. The same numbers make the same letters.
func someLetters(from, n int, now time.Time) []ledger.Letter {
	random := rand.New(rand.NewPCG(uint64(from), 6))
	batch := make([]ledger.Letter, n)
	for i := range batch {
		sum := sha256.Sum256(fmt.Append(nil, from+i))
		id := hex.EncodeToString(sum[:])
		failed := now.Add(-time.Duration(random.Float64() * lettersDays * 24 * float64(time.Hour)))
		kind := int(200 * math.Pow(random.Float64(), 3))
		path := fmt.Sprintf("shop/service%d/allow", int(40*math.Pow(random.Float64(), 2)))
		batch[i] = ledger.Letter{
			ID: id, Path: path, DecisionID: id[:32], DecisionTime: failed, FirstFailedAt: failed, FailedAt: failed.Add(time.Duration(random.IntN(3600)) * time.Second),
			Cause:  envelope.Cause{Kind: envelope.Data, Code: "23514", Table: "decision_logs", Constraint: fmt.Sprint("rule_", kind), Message: "check_violation: constraint rule_" + fmt.Sprint(kind)},
			Origin: envelope.Origin{Topic: "decision-logs", Partition: int32(random.IntN(12)), Offset: int64(from + i), Index: envelope.NoIndex, Timestamp: failed},
			Found:  ledger.Found{Topic: "decision-logs-dlq", Partition: int32(i % 3), Offset: int64(from + i), Stamp: failed},
			Key:    []byte(id[:8]), Value: fmt.Appendf(nil, `{"decision_id":%q,"path":%q,"input":{"pad":%q}}`, id[:32], path, strings.Repeat(id[:16], 25)),
		}
	}
	return batch
}
