package ledgerdb

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/db"
	"docket/internal/record/decision"
)

// valueBytes is how much of a value is read where the ledger has to know what it says, inflated.
const valueBytes = 16 << 20

// reentry takes back retried records that were dead-lettered again. Which state their letters get is for
// [ledger.Standing.DeadAgain] to say.
//
// Marks and places are only hints where to look, as any writer to the source topic can put any mark there. The value decides.
// One that is equal to the retried value is that record, whoever wrote it. One that is equal to the decision of that number
// in it is that decision. All else is a dead letter like any other.
type reentry struct {
	tx     pgx.Tx
	groups map[string]int32
	most   int
	by     ledger.Actor

	sendings map[int64]*returning
	letters  map[string]*ledger.Standing
	dead     int
}

// returning is a sending that a mark or a place points at.
type returning struct {
	id       int64
	letter   string
	hash     []byte
	outcome  *string
	newest   bool // no later retry of its letter is there
	parts    []decision.Part
	read     bool
	children []int32 // that were learnt now
	code     string
	ended    bool // now
}

// before is how the sending had ended, empty where it is open.
func (s *returning) before() ledger.SendingOutcome {
	if s.outcome == nil {
		return ""
	}
	return ledger.SendingOutcome(*s.outcome)
}

func (s *returning) died() bool { return s.before() == ledger.SendingDead }

// death is one step of one letter.
type death struct {
	*entering
	letter string
	after  ledger.Standing
}

// deaths are written in rounds: a letter is in each of them once.
type deaths struct {
	rounds [][]death
	at     map[string]int
}

func (d *deaths) add(one death) {
	if d.at == nil {
		d.at = make(map[string]int)
	}
	n := d.at[one.letter]
	if d.at[one.letter]++; n == len(d.rounds) {
		d.rounds = append(d.rounds, nil)
	}
	d.rounds[n] = append(d.rounds[n], one)
}

// receive ends the retries that letters are the ends of, and gives back what has to enter as a letter of its own.
func (h *reentry) receive(ctx context.Context, batch []entering) ([]entering, error) {
	hints, err := h.pointedAt(ctx, batch)
	if err != nil || len(hints) == 0 {
		return batch, err
	}
	if err := h.lock(ctx, hints); err != nil {
		return nil, err
	}
	if err := h.leaveThose(ctx, batch, hints); err != nil {
		return nil, err
	}
	var fresh []entering
	var died deaths
	for i := range batch {
		e := &batch[i]
		s, err := h.whose(ctx, e, hints[i])
		if err != nil {
			return nil, err
		}
		if s == nil {
			fresh = append(fresh, *e)
			continue
		}
		if after, counts := h.end(s, e); counts {
			died.add(death{e, s.letter, after})
		}
	}
	return fresh, h.close(ctx, died)
}

// Each is looked up by an index, however wrong the planner is about the size of a table that has just grown.
const (
	byMarkSQL = `SELECT n.i, o.outbox_id, o.dead_letter_id FROM unnest($1::int[], $2::uuid[]) AS n(i, mark)
		CROSS JOIN LATERAL (SELECT outbox_id, dead_letter_id FROM dead_letter_outbox WHERE mark = n.mark OFFSET 0) o`
	byPublishedSQL = `SELECT n.i, o.outbox_id, o.dead_letter_id FROM unnest($1::int[], $2::text[], $3::int[], $4::bigint[]) AS n(i, topic, partition, place)
		CROSS JOIN LATERAL (SELECT outbox_id, dead_letter_id FROM dead_letter_outbox
			WHERE topic = n.topic AND published_partition = n.partition AND published_offset = n.place AND published_at IS NOT NULL OFFSET 0) o`
)

// pointedAt gives, by index of a letter, the sendings that its mark and its place name, the mark's first.
func (h *reentry) pointedAt(ctx context.Context, batch []entering) (map[int][]int64, error) {
	h.sendings, h.letters = make(map[int64]*returning), make(map[string]*ledger.Standing)
	hints := make(map[int][]int64)
	var marked, all []int32
	var marks []string
	topics, partitions, offsets := make([]string, len(batch)), make([]int32, len(batch)), make([]int64, len(batch))
	for i := range batch {
		all = append(all, int32(i)) //nolint:gosec // some thousands
		topics[i], partitions[i], offsets[i] = db.Text(batch[i].Origin.Topic), batch[i].Origin.Partition, batch[i].Origin.Offset
		if isMark(batch[i].RetryOf) {
			marked, marks = append(marked, int32(i)), append(marks, batch[i].RetryOf) //nolint:gosec // some thousands
		}
	}
	note := func(rows pgx.Rows, err error) error {
		if err != nil {
			return err
		}
		var i int
		var id int64
		var letter string
		_, err = pgx.ForEachRow(rows, []any{&i, &id, &letter}, func() error {
			if !slices.Contains(hints[i], id) {
				hints[i] = append(hints[i], id)
			}
			h.sendings[id] = &returning{id: id, letter: letter}
			return nil
		})
		return err
	}
	if len(marked) > 0 {
		if err := note(h.tx.Query(ctx, byMarkSQL, marked, marks)); err != nil {
			return nil, err
		}
	}
	return hints, note(h.tx.Query(ctx, byPublishedSQL, all, topics, partitions, offsets))
}

// isMark says that s has the form of the marks that are given out: another never reaches the database, which would refuse it.
func isMark(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i, c := range []byte(s) {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return true
}

// lock takes the letters and then their sendings, and drops the hints that lead nowhere any more. A retry that ended dead
// outlives its letter: its record in the dead-letter topic is still known.
func (h *reentry) lock(ctx context.Context, hints map[int][]int64) error {
	var letters []string
	var sendings []int64
	for id, s := range h.sendings {
		letters, sendings = append(letters, s.letter), append(sendings, id)
	}
	rows, err := h.tx.Query(ctx, `SELECT dead_letter_id, state, attempts FROM dead_letters WHERE dead_letter_id = ANY($1::text[])
		ORDER BY dead_letter_id FOR UPDATE`, letters)
	if err != nil {
		return err
	}
	var id string
	var r ledger.Standing
	if _, err := pgx.ForEachRow(rows, []any{&id, &r.State, &r.Attempts}, func() error {
		h.letters[id] = new(r)
		return nil
	}); err != nil {
		return err
	}
	locked, err := lockedSendings(ctx, h.tx, sendings)
	if err != nil {
		return err
	}
	h.sendings = locked
	for i, ids := range hints {
		hints[i] = slices.DeleteFunc(ids, func(id int64) bool {
			s := h.sendings[id]
			return s == nil || h.letters[s.letter] == nil && !s.died()
		})
	}
	return nil
}

// leaveThose drops the hints of letters that are in the ledger themselves: one that came before it was known for a retry, as its
// place was not noted yet, stays a letter of its own. The retry ends by [Ledger.Overtaken].
func (h *reentry) leaveThose(ctx context.Context, batch []entering, hints map[int][]int64) error {
	at := make(map[string]int, len(hints))
	var ids []string
	for i := range hints {
		at[batch[i].ID] = i
		ids = append(ids, batch[i].ID)
	}
	there, err := textsOf(h.tx.Query(ctx, `SELECT dead_letter_id FROM dead_letters WHERE dead_letter_id = ANY($1::text[])`, ids))
	for _, id := range there {
		delete(hints, at[id])
	}
	return err
}

func lockedSendings(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]*returning, error) {
	rows, err := tx.Query(ctx, `SELECT o.outbox_id, o.dead_letter_id, o.value_hash, o.outcome,
			NOT EXISTS (SELECT FROM dead_letter_outbox l WHERE l.dead_letter_id = o.dead_letter_id AND l.outbox_id > o.outbox_id)
		FROM dead_letter_outbox o WHERE o.outbox_id = ANY($1::bigint[]) ORDER BY o.outbox_id FOR UPDATE`, ids)
	if err != nil {
		return nil, err
	}
	locked := make(map[int64]*returning)
	var s returning
	_, err = pgx.ForEachRow(rows, []any{&s.id, &s.letter, &s.hash, &s.outcome, &s.newest}, func() error {
		locked[s.id] = new(s)
		s.hash, s.outcome = nil, nil
		return nil
	})
	return locked, err
}

// whose gives the sending that e is the end of, or nil where e is a letter of its own. In that case it sets the parent of e
// where that is one of several decisions of a sending's record.
func (h *reentry) whose(ctx context.Context, e *entering, hints []int64) (*returning, error) {
	for _, id := range hints {
		if s := h.sendings[id]; bytes.Equal(s.hash, e.hash) {
			return s, nil
		}
	}
	for _, id := range hints {
		s := h.sendings[id]
		if h.letters[s.letter] == nil {
			continue
		}
		parts, err := h.partsOf(ctx, s, e)
		if err != nil {
			return nil, err
		}
		if len(parts) > 0 {
			e.parent = new(s.letter)
			for _, at := range parts {
				s.children = append(s.children, int32(at)) //nolint:gosec // below the number of parts
			}
			return nil, nil //nolint:nilnil // a letter of its own
		}
	}
	return nil, nil //nolint:nilnil // a letter of its own
}

// sentValueSQL is the value that a sending o of a letter d has, which may have been edited since.
const sentValueSQL = `CASE
	WHEN o.value_hash = '' THEN NULL
	WHEN coalesce(sha256(d.value), '') = o.value_hash THEN d.value
	ELSE (SELECT a.original FROM dead_letter_audit a WHERE a.dead_letter_id = o.dead_letter_id AND sha256(a.original) = o.value_hash LIMIT 1) END`

// partsOf are the decisions of a sending's record that a letter holds.
func (h *reentry) partsOf(ctx context.Context, s *returning, e *entering) ([]int, error) {
	if e.Origin.Index < 0 && e.Refused == 0 || e.Value == nil {
		return nil, nil
	}
	if !s.read {
		var value []byte
		if err := h.tx.QueryRow(ctx, `SELECT `+sentValueSQL+` FROM dead_letter_outbox o JOIN dead_letters d USING (dead_letter_id)
			WHERE o.outbox_id = $1`, s.id).Scan(&value); err != nil {
			return nil, err
		}
		s.read = true
		if r, refusal := decision.Decode(value, valueBytes); refusal == nil && !r.Sole {
			s.parts = r.Parts
		}
	}
	return ledger.PartsOf(e.Letter, s.parts), nil
}

// end notes that s ended dead, where it had not ended. counts is false where that changes nothing of its letter.
func (h *reentry) end(s *returning, e *entering) (after ledger.Standing, counts bool) {
	before := s.before()
	if !before.EndsDead() {
		return ledger.Standing{}, false
	}
	s.outcome, s.ended, s.code = new(string(ledger.SendingDead)), true, db.Text(e.Cause.Code)
	letter := h.letters[s.letter]
	if after, counts = letter.DeadAgain(before, s.newest, h.most); counts {
		h.letters[s.letter] = &after
		h.dead++
	}
	return after, counts
}

// diedSQL writes what [ledger.Standing.DeadAgain] decided: the letters are locked since their standing was read.
const diedSQL = `UPDATE dead_letters d SET state = n.state::dead_letter_state, attempts = n.attempts, group_id = n.group_id, message = n.message,
		last_failed_at = greatest(d.last_failed_at, n.failed), found_topic = n.topic, found_partition = n.partition, found_offset = n.place, found_at = n.found,
		changed_at = clock_timestamp(), changed_by = $10::text, changed_act = 'died', why = n.why,
		owner = CASE WHEN n.state = 'PROCESSING' THEN d.owner END, lease_until = CASE WHEN n.state = 'PROCESSING' THEN d.lease_until END
	FROM unnest($1::text[], $2::text[], $3::int[], $4::text[], $5::timestamptz[], $6::text[], $7::int[], $8::bigint[], $9::timestamptz[], $11::text[], $12::int[])
		AS n(id, state, group_id, message, failed, topic, partition, place, found, why, attempts)
	WHERE d.dead_letter_id = n.id`

func (h *reentry) write(ctx context.Context, deaths []death) error {
	n := len(deaths)
	id, state, message, topic, why := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	group, partition, offset, attempts := make([]int32, n), make([]int32, n), make([]int64, n), make([]int32, n)
	failed, found := make([]time.Time, n), make([]time.Time, n)
	for i, d := range deaths {
		id[i], state[i], message[i], why[i] = d.letter, string(d.after.State), db.Text(d.Cause.Message), "dead again: "+failedWith(d.Cause)
		group[i], failed[i], attempts[i] = h.groups[d.fingerprint], inRange(d.FailedAt), int32(d.after.Attempts) //nolint:gosec // read from an int of the table
		topic[i], partition[i], offset[i], found[i] = d.Found.Topic, d.Found.Partition, d.Found.Offset, inRange(d.Found.Stamp)
	}
	tag, err := h.tx.Exec(ctx, diedSQL, id, state, group, message, failed, topic, partition, offset, found, db.Text(h.by.Name), why, attempts)
	if err == nil && tag.RowsAffected() != int64(n) {
		err = fmt.Errorf("%w: %d of %d letters", ledger.ErrLost, tag.RowsAffected(), n)
	}
	return err
}

// close writes down what was learnt of letters and sendings.
func (h *reentry) close(ctx context.Context, died deaths) error {
	for _, round := range died.rounds {
		if err := h.write(ctx, round); err != nil {
			return err
		}
	}
	var ended []int64
	var codes []string
	for id, s := range h.sendings {
		if s.ended {
			ended, codes = append(ended, id), append(codes, s.code)
		}
		if len(s.children) == 0 {
			continue
		}
		if _, err := h.tx.Exec(ctx, `UPDATE dead_letter_outbox SET children = ARRAY(SELECT DISTINCT unnest(children || $2::int[]) ORDER BY 1)
			WHERE outbox_id = $1`, id, s.children); err != nil {
			return err
		}
	}
	if len(ended) == 0 {
		return nil
	}
	_, err := h.tx.Exec(ctx, `UPDATE dead_letter_outbox o SET outcome = 'dead', ended_at = clock_timestamp(), code = n.code, claimed_by = NULL, claimed_until = NULL
		FROM unnest($1::bigint[], $2::text[]) AS n(id, code) WHERE o.outbox_id = n.id`, ended, codes)
	return err
}
