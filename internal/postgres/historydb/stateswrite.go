package historydb

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/history/state"
	"docket/internal/record/verdict"
)

const (
	stateOfSQL     = `s.subject, s.path, s.verdict, s.revision, s.hash, s.since, s.since_id, s.last_seen, s.decisions, s.version_ts, s.version_id, s.before_verdict, s.before_ts, s.before_id, s.late`
	knownStatesSQL = `SELECT ` + stateOfSQL + ` FROM unnest($1::text[], $2::text[]) AS k(subject, path) JOIN decision_states s ON s.subject = k.subject AND s.path = k.path`
	// New states and flips come by COPY, as they are many while the states catch up.
	addStatesSQL = `COPY decision_states (subject, path, verdict, revision, hash, since, since_id, last_seen, decisions, version_ts, version_id, before_verdict, before_ts, before_id, late) FROM STDIN (FORMAT binary)`
	addFlipsSQL  = `COPY decision_flips (subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late) FROM STDIN (FORMAT binary)`
	// An older version never takes the place of a newer one, whoever wrote that.
	seeStatesSQL = `
UPDATE decision_states s SET last_seen = k.seen, decisions = k.decisions, version_ts = k.seen, version_id = k.id
  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::text[]) AS k(subject, path, seen, decisions, id)
 WHERE s.subject = k.subject AND s.path = k.path AND (k.seen, k.id) >= (s.version_ts, s.version_id)`
	moveStateSQL = `
UPDATE decision_states s SET verdict = k.verdict, revision = k.revision, hash = k.hash, since = k.since, since_id = k.since_id, last_seen = k.seen, decisions = k.decisions,
       version_ts = k.seen, version_id = k.id, before_verdict = k.was, before_ts = k.was_ts, before_id = k.was_id, late = k.late
  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bytea[], $9::timestamptz[], $10::text[], $11::text[], $12::timestamptz[], $13::text[], $14::bigint[])
       AS k(subject, path, seen, decisions, id, verdict, revision, hash, since, since_id, was, was_ts, was_id, late)
 WHERE s.subject = k.subject AND s.path = k.path AND (k.seen, k.id) >= (s.version_ts, s.version_id)`
	// Senders can invent paths and revisions without end: those beyond a number are not kept, and raise no alert. A path that was
	// told is kept as long as it is denied. One that was not told keeps the time by which its age is judged.
	keepDenialsSQL = `
INSERT INTO decision_states_paths (path, denied_ts, denied_id, stored_at)
SELECT path, ts, id, stored_at FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::timestamptz[]) WITH ORDINALITY AS d(path, ts, id, stored_at, n)
 WHERE CASE WHEN EXISTS (SELECT FROM decision_states_paths o WHERE o.path = d.path)
            THEN EXISTS (SELECT FROM decision_states_paths o WHERE o.path = d.path AND o.told AND o.stored_at < d.stored_at - interval '1 hour')
            ELSE n + (SELECT count(*) FROM decision_states_paths) <= 10000 END
    ON CONFLICT (path) DO UPDATE SET stored_at = EXCLUDED.stored_at`
	keepRatesSQL = `
INSERT INTO decision_states_revisions AS r (path, revision, first_at, last_at, allowed, denied)
SELECT path, revision, first_at, last_at, allowed, denied
  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[]) WITH ORDINALITY AS f(path, revision, first_at, last_at, allowed, denied, n)
 WHERE n + (SELECT count(*) FROM decision_states_revisions) <= 20000 OR EXISTS (SELECT FROM decision_states_revisions o WHERE o.path = f.path AND o.revision = f.revision)
    ON CONFLICT (path, revision) DO UPDATE SET last_at = greatest(r.last_at, EXCLUDED.last_at), allowed = r.allowed + EXCLUDED.allowed, denied = r.denied + EXCLUDED.denied`
)

// mostFolded and leastFolded limit the states that are in memory before they are written. A state is written once for all
// decisions of it in a round.
const mostFolded, leastFolded = 250_000, 1_000

// settle folds the decisions that were gathered into the states that the table has.
func (r *followRound) settle(ctx context.Context, tx pgx.Tx) error {
	if unknown := r.fold.Unknown(); len(unknown) > 0 {
		subjects, paths := make([]string, len(unknown)), make([]string, len(unknown))
		for i, k := range unknown {
			subjects[i], paths[i] = k.Subject, k.Path
		}
		rows, err := tx.Query(ctx, knownStatesSQL, pgx.QueryExecModeDescribeExec, subjects, paths)
		if err != nil {
			return err
		}
		known, err := pgx.CollectRows(rows, scanState)
		if err != nil {
			return err
		}
		r.fold.Known(known)
	}
	r.fold.Settle()
	return nil
}

// write writes what was folded, and returns how many states are new.
func (r *followRound) write(ctx context.Context, tx pgx.Tx) (added int64, err error) {
	f := r.fold
	changes := f.Changes()
	r.Counts, r.Flips = f.Counts, int64(len(f.Flips))
	r.Skipped[state.SkipFull] += f.Counts.Full
	for _, write := range []func(context.Context, pgx.Tx) error{
		func(ctx context.Context, tx pgx.Tx) error { return addStates(ctx, tx, changes.New) },
		func(ctx context.Context, tx pgx.Tx) error { return seeStates(ctx, tx, changes.Seen) },
		func(ctx context.Context, tx pgx.Tx) error { return moveStates(ctx, tx, changes.Moved) },
		func(ctx context.Context, tx pgx.Tx) error { return addFlips(ctx, tx, f.Flips) },
		func(ctx context.Context, tx pgx.Tx) error { return keepDenials(ctx, tx, f.Denials()) },
		func(ctx context.Context, tx pgx.Tx) error { return keepRates(ctx, tx, f.Rates()) },
	} {
		if err := write(ctx, tx); err != nil {
			return 0, err
		}
	}
	return int64(len(changes.New)), nil
}

func scanState(row pgx.CollectableRow) (s state.State, err error) {
	var hash []byte
	var said string
	var was, wasID *string
	var wasAt *time.Time
	err = row.Scan(&s.Subject, &s.Path, &said, &s.Revision, &hash, &s.Since.Time, &s.Since.ID, &s.LastSeen, &s.Decisions, &s.Version.Time, &s.Version.ID, &was, &wasAt, &wasID, &s.Late)
	copy(s.Hash[:], hash)
	s.Verdict = verdict.Verdict(said)
	s.Since.Time, s.LastSeen, s.Version.Time = s.Since.Time.UTC(), s.LastSeen.UTC(), s.Version.Time.UTC()
	if was != nil && wasAt != nil && wasID != nil {
		s.Before = &state.Before{Verdict: verdict.Verdict(*was), Version: state.Version{Time: wasAt.UTC(), ID: *wasID}}
	}
	return s, err
}

// addStates adds states that the table does not have.
func addStates(ctx context.Context, tx pgx.Tx, states []*state.State) error {
	if len(states) == 0 {
		return nil
	}
	_, err := tx.Conn().PgConn().CopyFrom(ctx, newCopying(len(states), func(c *copying, i int) {
		s := states[i]
		c.columns(15)
		c.texts(s.Subject, s.Path, string(s.Verdict), s.Revision)
		c.bytes(s.Hash[:])
		c.version(s.Since)
		c.time(s.LastSeen)
		c.number(s.Decisions)
		c.version(s.Version)
		if b := s.Before; b != nil {
			c.texts(string(b.Verdict))
			c.version(b.Version)
		} else {
			c.nulls(3)
		}
		c.number(s.Late)
	}), addStatesSQL)
	return err
}

func addFlips(ctx context.Context, tx pgx.Tx, flips []state.Flip) error {
	if len(flips) == 0 {
		return nil
	}
	_, err := tx.Conn().PgConn().CopyFrom(ctx, newCopying(len(flips), func(c *copying, i int) {
		f := &flips[i]
		c.columns(12)
		c.texts(f.Subject, f.Path, string(f.Was), string(f.Verdict), f.WasRevision, f.Revision)
		c.version(f.Version)
		c.version(f.WasVersion)
		c.time(f.StoredAt)
		c.truth(f.Late)
	}), addFlipsSQL)
	return err
}

// newest is the columns that every newer decision changes.
type newest struct {
	subjects, paths, ids []string
	seen                 []time.Time
	counts               []int64
}

func newestOf(states []*state.State) (n newest) {
	n = newest{make([]string, len(states)), make([]string, len(states)), make([]string, len(states)), make([]time.Time, len(states)), make([]int64, len(states))}
	for i, s := range states {
		n.subjects[i], n.paths[i], n.ids[i], n.seen[i], n.counts[i] = s.Subject, s.Path, s.Version.ID, s.Version.Time, s.Decisions
	}
	return n
}

// seeStates updates states that got the same answer again.
func seeStates(ctx context.Context, tx pgx.Tx, states []*state.State) error {
	if len(states) == 0 {
		return nil
	}
	n := newestOf(states)
	_, err := tx.Exec(ctx, seeStatesSQL, pgx.QueryExecModeDescribeExec, n.subjects, n.paths, n.seen, n.counts, n.ids)
	return err
}

// moveStates updates all columns of states.
func moveStates(ctx context.Context, tx pgx.Tx, states []*state.State) error {
	count := len(states)
	if count == 0 {
		return nil
	}
	n := newestOf(states)
	verdicts, revisions, hashes := make([]string, count), make([]string, count), make([][]byte, count)
	since, sinceIDs, late := make([]time.Time, count), make([]string, count), make([]int64, count)
	was, wasAt, wasIDs := make([]*string, count), make([]*time.Time, count), make([]*string, count)
	for i, s := range states {
		verdicts[i], revisions[i], hashes[i] = string(s.Verdict), s.Revision, s.Hash[:]
		since[i], sinceIDs[i], late[i] = s.Since.Time, s.Since.ID, s.Late
		if b := s.Before; b != nil {
			said := string(b.Verdict)
			was[i], wasAt[i], wasIDs[i] = &said, &b.Time, &b.ID
		}
	}
	_, err := tx.Exec(ctx, moveStateSQL, pgx.QueryExecModeDescribeExec, n.subjects, n.paths, n.seen, n.counts, n.ids, verdicts, revisions, hashes, since, sinceIDs, was, wasAt, wasIDs, late)
	return err
}

func keepDenials(ctx context.Context, tx pgx.Tx, denials []state.Denial) error {
	n := len(denials)
	if n == 0 {
		return nil
	}
	paths, at, ids, stored := make([]string, n), make([]time.Time, n), make([]string, n), make([]time.Time, n)
	for i, d := range denials {
		paths[i], at[i], ids[i], stored[i] = d.Path, d.Time, d.ID, d.StoredAt
	}
	_, err := tx.Exec(ctx, keepDenialsSQL, paths, at, ids, stored)
	return err
}

func keepRates(ctx context.Context, tx pgx.Tx, rates []state.Rate) error {
	n := len(rates)
	if n == 0 {
		return nil
	}
	paths, revisions, first, last, allowed, denied := make([]string, n), make([]string, n), make([]time.Time, n), make([]time.Time, n), make([]int64, n), make([]int64, n)
	for i, r := range rates {
		paths[i], revisions[i], first[i], last[i], allowed[i], denied[i] = r.Path, r.Revision, r.First, r.Last, r.Allowed, r.Denied
	}
	_, err := tx.Exec(ctx, keepRatesSQL, paths, revisions, first, last, allowed, denied)
	return err
}

const (
	trimStatesSQL = `SELECT decision_states_trim($1::interval, $2::interval, $3)`
	trimPortion   = 10_000
)

// Trim removes states that were not seen for as long as idle, and flips older than keep, and returns how many states that were. Both
// are an hour at least.
func (s *States) Trim(ctx context.Context, idle, keep time.Duration) (int64, error) {
	if err := s.db.Usable(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, stateStatement)
	defer cancel()
	var gone int64
	err := s.db.ReadCommitted(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, trimStatesSQL, idle, keep, trimPortion).Scan(&gone)
	})
	return gone, s.db.Noted("remove idle states", err)
}
