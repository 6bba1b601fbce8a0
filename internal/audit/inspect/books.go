package inspect

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgerrcode"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/postgres/ledgerdb"
)

// mostLetters limits the letters of the ledger that are checked, the latest moved ones; each takes some hundred
// bytes.
const mostLetters = 200_000

// mostRanges limits the ranges of letters left in Kafka that are checked, the newest ones.
const mostRanges = 100_000

// books asks the ledger about the letters that moved since a time, and about records of the dead-letter topics. It
// comes after the topics, and reads the desk's offsets before the ledger. So the ledger must have all records below
// them.
func (s *System) books(ctx context.Context, ev *verify.Evidence, since time.Time) (*verify.Books, error) {
	b := &verify.Books{Read: map[string]map[int32]int64{}}
	committed := 0
	for _, name := range []string{s.settings.KafkaDLQTopic, s.settings.KafkaParkingDLQTopic} {
		read, err := s.kafka.Committed(ctx, s.settings.DeskGroup, name)
		if err != nil {
			return nil, err
		}
		b.Read[name] = read
		committed += len(read)
	}
	var err error
	b.Proof, err = ledgerdb.New(s.db.DB).Proof(ctx, since, mostLetters)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		b.Why = "there is no ledger in this database"
		return b, nil
	case errclass.Classify(err).Code == pgerrcode.InsufficientPrivilege:
		b.Why = "this role may not read the ledger"
		return b, nil
	case err != nil:
		return nil, err
	case committed == 0 && len(b.Letters) == 0:
		b.Why = "no desk has read the dead-letter topics yet"
		return b, nil
	}
	return b, s.missing(ctx, ev, b)
}

// missing asks about each record that the desk has read.
func (s *System) missing(ctx context.Context, ev *verify.Evidence, b *verify.Books) error {
	var traces []ledger.Trace
	var at []int
	for i := range ev.Forwarded {
		if f := &ev.Forwarded[i]; b.Entered(f) {
			traces, at = append(traces, f.Trace()), append(at, i)
		}
	}
	var err error
	if b.Ranges, err = ledgerdb.New(s.db.DB).Surplus(ctx, true, 0, mostRanges); err != nil {
		return err
	}
	b.RangesCut = len(b.Ranges) == mostRanges
	known, err := ledgerdb.New(s.db.DB).Knows(ctx, traces)
	if err != nil {
		return err
	}
	for n, there := range known {
		b.Looked(&ev.Forwarded[at[n]], there)
	}
	return nil
}
