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
	// An older version never takes the place of a newer one, whoever wrote that.
	keepStatesSQL = `
INSERT INTO decision_states AS s (subject, path, verdict, revision, hash, since, since_id, last_seen, decisions, version_ts, version_id, before_verdict, before_ts, before_id, late)
SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::timestamptz[], $7::text[], $8::timestamptz[], $9::bigint[], $10::timestamptz[], $11::text[],
       $12::text[], $13::timestamptz[], $14::text[], $15::bigint[])
    ON CONFLICT (subject, path) DO UPDATE SET verdict = EXCLUDED.verdict, revision = EXCLUDED.revision, hash = EXCLUDED.hash, since = EXCLUDED.since, since_id = EXCLUDED.since_id,
       last_seen = EXCLUDED.last_seen, decisions = EXCLUDED.decisions, version_ts = EXCLUDED.version_ts, version_id = EXCLUDED.version_id,
       before_verdict = EXCLUDED.before_verdict, before_ts = EXCLUDED.before_ts, before_id = EXCLUDED.before_id, late = EXCLUDED.late
 WHERE (EXCLUDED.version_ts, EXCLUDED.version_id) >= (s.version_ts, s.version_id)`
	keepFlipsSQL = `
INSERT INTO decision_flips (subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late)
SELECT subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[], $9::timestamptz[], $10::text[], $11::timestamptz[], $12::boolean[])
       WITH ORDINALITY AS f(subject, path, was, verdict, was_revision, revision, ts, decision_id, was_ts, was_id, stored_at, late, n)
 ORDER BY n`
	// Senders can invent paths and revisions without end: those beyond a number are not kept, and raise no alert.
	keepDenialsSQL = `
INSERT INTO decision_states_paths (path, denied_ts, denied_id, stored_at)
SELECT path, ts, id, stored_at FROM unnest($1::text[], $2::timestamptz[], $3::text[], $4::timestamptz[]) WITH ORDINALITY AS d(path, ts, id, stored_at, n)
 WHERE n + (SELECT count(*) FROM decision_states_paths) <= 10000
    ON CONFLICT DO NOTHING`
	keepRatesSQL = `
INSERT INTO decision_states_revisions AS r (path, revision, first_at, last_at, allowed, denied)
SELECT path, revision, first_at, last_at, allowed, denied
  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::bigint[]) WITH ORDINALITY AS f(path, revision, first_at, last_at, allowed, denied, n)
 WHERE n + (SELECT count(*) FROM decision_states_revisions) <= 20000 OR EXISTS (SELECT FROM decision_states_revisions o WHERE o.path = f.path AND o.revision = f.revision)
    ON CONFLICT (path, revision) DO UPDATE SET last_at = greatest(r.last_at, EXCLUDED.last_at), allowed = r.allowed + EXCLUDED.allowed, denied = r.denied + EXCLUDED.denied`
)

// mostFolded limits the states that are in memory. A state is written once for all decisions of it among these.
const mostFolded = 200_000

// fold folds decisions into the states that the table has, and writes these if they are many.
func (r *followRound) fold(ctx context.Context, tx pgx.Tx, decisions []state.Decision) error {
	if r.states == nil {
		r.states = state.New(nil, r.of.cfg.Most-r.had-r.added)
	}
	if err := r.know(ctx, tx, decisions); err != nil {
		return err
	}
	for i := range decisions {
		r.states.Add(&decisions[i])
	}
	if r.states.Size() < mostFolded {
		return nil
	}
	return r.write(ctx, tx)
}

// write writes what was folded.
func (r *followRound) write(ctx context.Context, tx pgx.Tx) error {
	f := r.states
	if r.states = nil; f == nil {
		return nil
	}
	states, added := f.Changed()
	r.added += added
	r.Counts.Add(f.Counts)
	r.Flips += int64(len(f.Flips))
	r.Skipped[state.SkipFull] += f.Counts.Full
	for _, write := range []func(context.Context, pgx.Tx) error{
		func(ctx context.Context, tx pgx.Tx) error { return keepStates(ctx, tx, states) },
		func(ctx context.Context, tx pgx.Tx) error { return keepFlips(ctx, tx, f.Flips) },
		func(ctx context.Context, tx pgx.Tx) error { return keepDenials(ctx, tx, f.Denials()) },
		func(ctx context.Context, tx pgx.Tx) error { return keepRates(ctx, tx, f.Rates()) },
	} {
		if err := write(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// know reads the states of decisions that the fold does not have yet.
func (r *followRound) know(ctx context.Context, tx pgx.Tx, decisions []state.Decision) error {
	var subjects, paths []string
	for i := range decisions {
		if k := decisions[i].Key; !r.states.Asked(k) {
			subjects, paths = append(subjects, k.Subject), append(paths, k.Path)
		}
	}
	if len(subjects) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, knownStatesSQL, subjects, paths)
	if err != nil {
		return err
	}
	known, err := pgx.CollectRows(rows, scanState)
	r.states.Known(known)
	return err
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

func keepStates(ctx context.Context, tx pgx.Tx, states []state.State) error {
	n := len(states)
	if n == 0 {
		return nil
	}
	subjects, paths, verdicts, revisions, hashes := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([][]byte, n)
	since, sinceIDs, seen, counts := make([]time.Time, n), make([]string, n), make([]time.Time, n), make([]int64, n)
	versions, versionIDs := make([]time.Time, n), make([]string, n)
	was, wasAt, wasIDs, late := make([]*string, n), make([]*time.Time, n), make([]*string, n), make([]int64, n)
	for i := range states {
		s := &states[i]
		subjects[i], paths[i], verdicts[i], revisions[i], hashes[i] = s.Subject, s.Path, string(s.Verdict), s.Revision, s.Hash[:]
		since[i], sinceIDs[i], seen[i], counts[i] = s.Since.Time, s.Since.ID, s.LastSeen, s.Decisions
		versions[i], versionIDs[i], late[i] = s.Version.Time, s.Version.ID, s.Late
		if b := s.Before; b != nil {
			said := string(b.Verdict)
			was[i], wasAt[i], wasIDs[i] = &said, &b.Time, &b.ID
		}
	}
	_, err := tx.Exec(ctx, keepStatesSQL, subjects, paths, verdicts, revisions, hashes, since, sinceIDs, seen, counts, versions, versionIDs, was, wasAt, wasIDs, late)
	return err
}

func keepFlips(ctx context.Context, tx pgx.Tx, flips []state.Flip) error {
	n := len(flips)
	if n == 0 {
		return nil
	}
	subjects, paths, was, verdicts := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	wasRevisions, revisions, ids, wasIDs := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	at, wasAt, stored, late := make([]time.Time, n), make([]time.Time, n), make([]time.Time, n), make([]bool, n)
	for i := range flips {
		f := &flips[i]
		subjects[i], paths[i], was[i], verdicts[i] = f.Subject, f.Path, string(f.Was), string(f.Verdict)
		wasRevisions[i], revisions[i], ids[i], wasIDs[i] = f.WasRevision, f.Revision, f.Version.ID, f.WasVersion.ID
		at[i], wasAt[i], stored[i], late[i] = f.Time, f.WasVersion.Time, f.StoredAt, f.Late
	}
	_, err := tx.Exec(ctx, keepFlipsSQL, subjects, paths, was, verdicts, wasRevisions, revisions, at, ids, wasAt, wasIDs, stored, late)
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
	err := s.db.Pool().QueryRow(ctx, trimStatesSQL, idle, keep, trimPortion).Scan(&gone)
	return gone, s.db.Noted("remove idle states", err)
}
