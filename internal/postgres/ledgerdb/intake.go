package ledgerdb

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/record/envelope"
)

var _ ledger.Intake = (*Ledger)(nil)

// The most that one INSERT takes.
const (
	enterRows  = 5000
	enterBytes = 16 << 20
)

// entering is a letter on its way in.
type entering struct {
	*ledger.Letter
	fingerprint string
	hash        []byte // of the value, as valueHashSQL makes it
	parent      *string
	copies      int64 // records of the batch that are this letter
	last        int64 // offset of the last of them
}

// Enter implements [ledger.Intake].
func (l *Ledger) Enter(ctx context.Context, letters []ledger.Letter, maxAttempts int, by ledger.Actor) (ledger.EnteredCount, error) {
	var count ledger.EnteredCount
	if by.Name == "" {
		return count, ledger.ErrNobody
	}
	if len(letters) == 0 {
		return count, nil
	}
	batch := inOrder(letters)
	var groups map[string]int32
	err := l.within(ctx, "enter dead letters", pgx.ReadWrite, func(ctx context.Context, tx pgx.Tx) (err error) {
		var waits bool
		if count, groups, waits, err = l.enter(ctx, tx, letters, batch, maxAttempts, by, &room{most: l.most}); err != nil || !waits {
			return err
		}
		return db.Confirm(ctx, tx) // letters that are known already have their home only once the standby has them
	})
	if err != nil {
		return ledger.EnteredCount{}, err
	}
	l.groups.keep(groups)
	return count, nil
}

// enter enters a batch that is in order. waits says that it changed nothing, and that its COMMIT would wait for no standby.
func (l *Ledger) enter(ctx context.Context, tx pgx.Tx, letters []ledger.Letter, batch []entering, maxAttempts int, by ledger.Actor, r *room) (count ledger.EnteredCount, groups map[string]int32, waits bool, err error) {
	// The order of the four is that of all locks: groups, letters, outbox, growth, and what is new comes last.
	if groups, count.Groups, err = l.grouped(ctx, tx, batch); err != nil {
		return count, nil, false, err
	}
	h := reentry{tx: tx, groups: groups, most: maxAttempts, by: by}
	fresh, err := h.receive(ctx, batch)
	if err != nil {
		return count, nil, false, err
	}
	r.ends(batch, fresh)
	admitted, left, err := r.admit(ctx, tx, fresh)
	if err != nil {
		return count, nil, false, err
	}
	added, err := insertLetters(ctx, tx, admitted, groups, by)
	if err != nil {
		return count, nil, false, err
	}
	if err := insertHeld(ctx, tx, fresh); err != nil {
		return count, nil, false, err
	}
	count.DeadAgain, count.New, count.Left = h.dead, added, left
	count.Known = len(letters) - h.dead - added - left
	return count, groups, added+h.dead+left == 0, nil
}

// inOrder gives each letter once, by id: two that enter the same letters never wait for each other in a circle.
func inOrder(letters []ledger.Letter) []entering {
	batch := make([]entering, 0, len(letters))
	for i := range letters {
		batch = append(batch, entering{Letter: &letters[i]})
	}
	slices.SortStableFunc(batch, func(a, b entering) int { return strings.Compare(a.ID, b.ID) })
	each := batch
	batch = batch[:0:0]
	for _, e := range each {
		if n := len(batch); n == 0 || batch[n-1].ID != e.ID {
			batch = append(batch, e)
		}
		own := &batch[len(batch)-1]
		own.copies, own.last = own.copies+1, max(own.last, e.Found.Offset)
	}
	for i := range batch {
		batch[i].fingerprint = ledger.Fingerprint(batch[i].Cause)
		batch[i].hash = valueHash(batch[i].Value)
	}
	return batch
}

// valueHash is empty where there is no value, and the SHA-256 of one, an empty one too, else.
func valueHash(value []byte) []byte {
	if value == nil {
		return []byte{}
	}
	sum := sha256.Sum256(value)
	return sum[:]
}

// A letter that was removed stays out; its audit shows that it was here. A letter that never was in Kafka has its id from its
// value alone, so the same refusal has the same id a year later. It enters again if it was found after the removal. Partition
// -1 is [envelope.NoPlace].
const enterSQL = `INSERT INTO dead_letters (dead_letter_id, group_id, path, decision_id, decision_ts,
		origin_topic, origin_partition, origin_offset, origin_index, origin_timestamp,
		found_topic, found_partition, found_offset, found_at, key, value, headers, message,
		first_failed_at, last_failed_at, changed_by, changed_act, why, job_id, parent_id)
	SELECT n.id, n.group_id, n.path, n.decision_id, n.decision_ts,
		n.origin_topic, n.origin_partition, n.origin_offset, n.origin_index, n.origin_timestamp,
		n.found_topic, n.found_partition, n.found_offset, n.found_at, n.key, n.value, n.headers::jsonb, n.message,
		n.first_failed_at, n.last_failed_at, $21::text, 'entered', n.why, NULL, n.parent_id
	FROM unnest($1::text[], $2::int[], $3::text[], $4::text[], $5::timestamptz[],
		$6::text[], $7::int[], $8::bigint[], $9::int[], $10::timestamptz[],
		$11::text[], $12::int[], $13::bigint[], $14::timestamptz[], $15::bytea[], $16::bytea[], $17::text[], $18::text[],
		$19::timestamptz[], $20::timestamptz[], $22::text[], $23::text[])
		AS n(id, group_id, path, decision_id, decision_ts, origin_topic, origin_partition, origin_offset, origin_index, origin_timestamp,
		found_topic, found_partition, found_offset, found_at, key, value, headers, message, first_failed_at, last_failed_at, why, parent_id)
	WHERE (SELECT a.audit_id FROM dead_letter_audit a WHERE a.dead_letter_id = n.id AND a.act = 'removed'
		AND (n.origin_partition <> -1 OR a.at >= n.found_at) LIMIT 1) IS NULL
	ORDER BY n.id
	ON CONFLICT (dead_letter_id) DO NOTHING
	RETURNING dead_letter_id`

// unheldSQL says whether any of these letters is not in the ledger, and was not removed from it either, as enterSQL has it.
const unheldSQL = `SELECT EXISTS (SELECT FROM unnest($1::text[], $2::int[], $3::timestamptz[]) AS n(id, origin_partition, found_at)
	WHERE NOT EXISTS (SELECT FROM dead_letters d WHERE d.dead_letter_id = n.id)
	AND NOT EXISTS (SELECT FROM dead_letter_audit a WHERE a.dead_letter_id = n.id AND a.act = 'removed' AND (n.origin_partition <> -1 OR a.at >= n.found_at)))`

// insertLetters says how many were not there. Of those that it did not insert the ledger must know each: a trigger of somebody else's
// can swallow a row, or alter its id, without an error.
func insertLetters(ctx context.Context, tx pgx.Tx, letters []entering, groups map[string]int32, by ledger.Actor) (int, error) {
	added := 0
	for len(letters) > 0 {
		n, size := 0, 0
		for n < len(letters) && n < enterRows && (n == 0 || size+letters[n].size() <= enterBytes) {
			size += letters[n].size()
			n++
		}
		args, err := letterColumns(letters[:n], groups, by)
		if err != nil {
			return 0, err
		}
		entered, err := textsOf(tx.Query(ctx, enterSQL, args...))
		if err != nil {
			return 0, err
		}
		if !slices.EqualFunc(entered, letters[:n], func(id string, e entering) bool { return id == e.ID }) {
			if err := allHeld(ctx, tx, letters[:n]); err != nil {
				return 0, err
			}
		}
		added += len(entered)
		letters = letters[n:]
	}
	return added, nil
}

// allHeld is an error where a letter is neither in the ledger nor in its audit as removed.
func allHeld(ctx context.Context, tx pgx.Tx, letters []entering) error {
	ids, partitions, found := make([]string, len(letters)), make([]int32, len(letters)), make([]time.Time, len(letters))
	for i := range letters {
		ids[i], partitions[i], found[i] = letters[i].ID, letters[i].Origin.Partition, inRange(letters[i].Found.Stamp)
	}
	var unheld bool
	err := tx.QueryRow(ctx, unheldSQL, ids, partitions, found).Scan(&unheld)
	if err == nil && unheld {
		err = swallowed("a dead letter was neither entered nor refused: a trigger on dead_letters swallows it, or alters its id")
	}
	return err
}

// heldSQL also notes what a release before this one did not, of a letter that it entered.
const heldSQL = `INSERT INTO dead_letter_decisions (dead_letter_id, refused, places, decision_ids, decision_ts, hashes)
	SELECT d.dead_letter_id, $2::int, $3::int[], $4::text[], $5::timestamptz[], ARRAY(SELECT hashtextextended(h.id, 0) FROM unnest($4::text[]) WITH ORDINALITY AS h(id, n) ORDER BY h.n)
	FROM dead_letters d WHERE d.dead_letter_id = $1::text ON CONFLICT (dead_letter_id) DO NOTHING`

// insertHeld writes down what letters that hold several decisions say of each.
func insertHeld(ctx context.Context, tx pgx.Tx, letters []entering) error {
	for i := range letters {
		e := &letters[i]
		if e.Refused == 0 && len(e.Held) == 0 {
			continue
		}
		n := len(e.Held)
		places, ids, times := make([]int32, n), make([]string, n), make([]*time.Time, n)
		for j, h := range e.Held {
			places[j], ids[j], times[j] = int32(h.Place), db.Text(h.ID), timeOrNull(h.Time) //nolint:gosec // below decision.MaxDecisions
		}
		refused := max(e.Refused, 1) // a record that is refused as a whole counts as one
		if _, err := tx.Exec(ctx, heldSQL, e.ID, refused, places, ids, times); err != nil {
			return err
		}
	}
	return nil
}

func (e entering) size() int {
	n := len(e.Key) + len(e.Value)
	for _, h := range e.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// letterColumns are the arguments of enterSQL.
func letterColumns(letters []entering, groups map[string]int32, by ledger.Actor) ([]any, error) {
	n := len(letters)
	var (
		id, path, originTopic, foundTopic, message, why = make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
		decisionID, headers, parent                     = make([]*string, n), make([]*string, n), make([]*string, n)
		group, originPartition, foundPartition          = make([]int32, n), make([]int32, n), make([]int32, n)
		originOffset, foundOffset                       = make([]int64, n), make([]int64, n)
		originIndex                                     = make([]*int32, n)
		decided, appended                               = make([]*time.Time, n), make([]*time.Time, n)
		found, first, last                              = make([]time.Time, n), make([]time.Time, n), make([]time.Time, n)
		key, value                                      = make([][]byte, n), make([][]byte, n)
	)
	for i := range letters {
		e := &letters[i]
		id[i], path[i], message[i], parent[i] = e.ID, pathText(e.Path), db.Text(e.Cause.Message), e.parent
		originTopic[i], originPartition[i], originOffset[i] = db.Text(e.Origin.Topic), e.Origin.Partition, e.Origin.Offset
		foundTopic[i], foundPartition[i], foundOffset[i], found[i] = e.Found.Topic, e.Found.Partition, e.Found.Offset, inRange(e.Found.Stamp)
		group[i], key[i], value[i], first[i], last[i] = groups[e.fingerprint], e.Key, e.Value, inRange(e.FirstFailedAt), inRange(e.FailedAt)
		appended[i], decided[i] = timeOrNull(e.Origin.Timestamp), timeOrNull(e.DecisionTime)
		if e.DecisionID != "" {
			decisionID[i] = new(db.Text(e.DecisionID))
		}
		if e.Origin.Index != envelope.NoIndex {
			originIndex[i] = new(int32(e.Origin.Index)) //nolint:gosec // at most decision.MaxDecisions
		}
		why[i] = failedWith(e.Cause)
		if len(e.Headers) > 0 {
			b, err := json.Marshal(e.Headers)
			if err != nil {
				return nil, err
			}
			headers[i] = new(string(b))
		}
	}
	return []any{
		pgx.QueryExecModeDescribeExec, // the types are asked for, so that bytes travel as bytes and not as hex
		id, group, path, decisionID, decided, originTopic, originPartition, originOffset, originIndex, appended,
		foundTopic, foundPartition, foundOffset, found, key, value, headers, message, first, last, db.Text(by.Name), why, parent,
	}, nil
}

// failedWith is the cause in one line, without the message, which can be long.
func failedWith(c envelope.Cause) string {
	line := string(c.Kind) + " " + c.Code
	if c.Constraint != "" {
		line += " " + c.Constraint
	}
	return db.Text(line)
}
