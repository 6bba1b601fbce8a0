//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"docket/internal/desk/ledger"
)

// modelLetter and modelSending are what the ledger has to say of one.
type modelLetter struct {
	ledger.Letter
	state    ledger.State
	attempts int
	edits    int
	free     bool // of a RESOLVED one: it is stored, or an archive has it
}

type modelSending struct {
	ledger.Sending
	holder  string // empty: nobody ever claimed it, or it was given back
	live    bool   // the claim
	waits   bool   // to be tried again
	out     bool   // it was claimed once: its record can be anywhere
	place   int64  // 0: not published
	outcome string // empty: open
}

// ledgerModel is the ledger as it should be.
type ledgerModel struct {
	d        *ledgerDB
	conn     *pgx.Conn
	letters  map[string]*modelLetter
	removed  map[string]bool
	sendings map[int64]*modelSending
	deaths   []ledger.Letter
	offset   int64
}

func TestModel_OfTheTables(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	conn, err := pgx.Connect(t.Context(), d.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	rapid.Check(t, func(rt *rapid.T) {
		d.Exec(t, `SET session_replication_role = replica; TRUNCATE dead_letters, dead_letter_cases, dead_letter_rule_acts, dead_letter_proposals, dead_letter_decisions, dead_letter_audit, dead_letter_edits, dead_letter_outbox, dead_letter_counts`)
		m := &ledgerModel{d: d, conn: conn, letters: map[string]*modelLetter{}, removed: map[string]bool{}, sendings: map[int64]*modelSending{}, offset: 1000}
		rt.Repeat(map[string]func(*rapid.T){
			"": m.check, "enter": m.enter, "again": m.again, "retry": m.retry, "resolve": m.resolve, "edit": m.edit, "claim": m.claim, "publish": m.publish,
			"unpublish": m.unpublish, "die": m.die, "stored": m.stored, "leases": m.leases, "claims": m.claims, "archive": m.archive, "remove": m.remove, "compact": m.compact,
		})
	})
}

func (m *ledgerModel) pool() []ledger.Letter {
	var pool []ledger.Letter
	for i := range int64(6) {
		pool = append(pool, letter(i, fmt.Sprint(i)))
	}
	return pool
}

func (m *ledgerModel) enter(t *rapid.T) {
	batch := rapid.SliceOfN(rapid.SampledFrom(m.pool()), 1, 8).Draw(t, "letters")
	want := 0
	for _, l := range batch {
		if m.letters[l.ID] == nil && !m.removed[l.ID] {
			m.letters[l.ID] = &modelLetter{Letter: l, state: ledger.Pending}
			want++
		}
	}
	n, err := m.d.Enter(context.Background(), batch, atMost, ann)
	if err != nil || n.New != want || n.Known != len(batch)-want || n.DeadAgain != 0 {
		t.Fatalf("%+v, %v; %d new were expected", n, err, want)
	}
}

// again delivers some of what was delivered.
func (m *ledgerModel) again(t *rapid.T) {
	if len(m.deaths) == 0 {
		return
	}
	batch := rapid.SliceOfN(rapid.SampledFrom(m.deaths), 1, 4).Draw(t, "deaths")
	n, err := m.d.Enter(context.Background(), batch, atMost, ann)
	if err != nil || n.Known != len(batch) {
		t.Fatalf("%+v, %v", n, err)
	}
}

func (m *ledgerModel) ids() []string { return slices.Sorted(maps.Keys(m.letters)) }

func (m *ledgerModel) draw(t *rapid.T) []string {
	ids := append(m.ids(), "none")
	return rapid.SliceOfN(rapid.SampledFrom(ids), 1, 4).Draw(t, "ids")
}

// decided holds what was answered against the model, and moves there what is free.
func (m *ledgerModel) decided(t *rapid.T, outcomes []ledger.Outcome, err error, ids []string, to ledger.State) {
	if err != nil || len(outcomes) != len(ids) {
		t.Fatalf("%v, %v", outcomes, err)
	}
	moved := map[string]bool{}
	for i, id := range ids {
		l := m.letters[id]
		var refused *ledger.RefusedError
		switch {
		case l == nil:
			if !errors.Is(outcomes[i].Err, ledger.ErrNotFound) {
				t.Fatalf("%s: %v", id, outcomes[i].Err)
			}
		case moved[id] || l.state == ledger.Pending || l.state == ledger.Failed:
			if outcomes[i].Err != nil {
				t.Fatalf("%s: %v", id, outcomes[i].Err)
			}
			moved[id] = true
			l.state = to
		case !errors.As(outcomes[i].Err, &refused) || refused.State != l.state:
			t.Fatalf("%s: %v", id, outcomes[i].Err)
		}
	}
	m.learn(t)
}

// learn takes over the rows of the outbox that are new.
func (m *ledgerModel) learn(t *rapid.T) {
	rows, err := m.conn.Query(context.Background(), `SELECT outbox_id, dead_letter_id, mark::text, value, key FROM dead_letter_outbox JOIN dead_letters USING (dead_letter_id)`)
	if err != nil {
		t.Fatal(err)
	}
	var s ledger.Sending
	waiting := map[string]int{}
	if _, err := pgx.ForEachRow(rows, []any{&s.ID, &s.LetterID, &s.Mark, &s.Value, &s.Key}, func() error {
		if m.sendings[s.ID] == nil {
			waiting[s.LetterID]++
			m.sendings[s.ID] = &modelSending{Sending: s}
		}
		s.Value, s.Key = nil, nil
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for id, n := range waiting {
		if n != 1 || m.letters[id].state != ledger.Processing {
			t.Fatalf("%d rows for %s, which is %s", n, id, m.letters[id].state)
		}
	}
}

func (m *ledgerModel) retry(t *rapid.T) {
	ids := m.draw(t)
	outcomes, err := m.d.Retry(context.Background(), ids, soon, ann)
	m.decided(t, outcomes, err, ids, ledger.Processing)
}

func (m *ledgerModel) resolve(t *rapid.T) {
	ids := m.draw(t)
	outcomes, err := m.d.Resolve(context.Background(), ids, ann)
	m.decided(t, outcomes, err, ids, ledger.Resolved)
}

func (m *ledgerModel) edit(t *rapid.T) {
	id := m.draw(t)[0]
	also := rapid.Bool().Draw(t, "retry")
	lease, to := time.Duration(0), ledger.Pending
	l := m.letters[id]
	if l != nil {
		l.edits++
		to = l.state
	}
	if also {
		lease, to = soon, ledger.Processing
	}
	err := m.d.Edit(context.Background(), id, "", fmt.Appendf(nil, "%d", m.next()), "a diff", lease, ann)
	if l != nil && l.state != ledger.Pending && l.state != ledger.Failed {
		l.edits--
	}
	m.decided(t, []ledger.Outcome{{ID: id, Err: err}}, nil, []string{id}, to)
}

func (m *ledgerModel) next() int64 { m.offset++; return m.offset }

func (m *ledgerModel) unsent(s *modelSending) bool { return s.place == 0 && s.outcome == "" }

func (m *ledgerModel) claim(t *rapid.T) {
	n, holder := rapid.IntRange(1, 4).Draw(t, "n"), rapid.SampledFrom([]string{"x", "y"}).Draw(t, "holder")
	var want []int64
	blocked := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(m.sendings)) {
		s := m.sendings[id]
		switch {
		case !m.unsent(s):
		case s.live, s.waits:
			blocked[string(s.Key)] = true
		case !blocked[string(s.Key)] && len(want) < n:
			want = append(want, id)
		}
	}
	sent, err := m.d.Claim(context.Background(), holder, n, time.Hour)
	var got []int64
	for _, c := range sent {
		got = append(got, c.ID)
		if s := m.sendings[c.ID]; s != nil {
			s.holder, s.live, s.out = holder, true, true
			if string(s.Value) != string(c.Value) || s.Mark != c.Mark || s.LetterID != c.LetterID {
				t.Fatalf("claimed %+v, not %+v", c, s.Sending)
			}
		}
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("claimed %v, not %v; %v", got, want, err)
	}
}

// one draws a sending whose record may be in the topic; nil: there is none, and the action is to do nothing.
func (m *ledgerModel) one(t *rapid.T) *modelSending {
	var out []int64
	for id, s := range m.sendings {
		if s.out {
			out = append(out, id)
		}
	}
	if len(out) == 0 {
		return nil
	}
	slices.Sort(out)
	return m.sendings[rapid.SampledFrom(out).Draw(t, "sending")]
}

func (s *modelSending) givenUp() bool { return s.outcome == "withdrawn" || s.outcome == "refused" }

func (m *ledgerModel) publish(t *rapid.T) {
	s, place := m.one(t), m.next()
	if s == nil {
		return
	}
	if s.place == 0 {
		if s.place, s.live, s.holder = place, false, ""; s.givenUp() {
			s.outcome = ""
		}
	}
	if err := m.d.Published(context.Background(), "x", []ledger.Placed{{SendingID: s.ID, Partition: int32(place % 4), Offset: place}}, time.Hour); err != nil {
		t.Fatal(err)
	}
}

func (m *ledgerModel) unpublish(t *rapid.T) {
	s, giveUp, pause := m.one(t), rapid.Bool().Draw(t, "give up"), rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "pause")
	if s == nil {
		return
	}
	holder := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "holder")
	lost := s.holder != holder || !m.unsent(s)
	err := m.d.Unpublished(context.Background(), holder, s.ID, "timeout", pause, giveUp)
	if lost != errors.Is(err, ledger.ErrLost) || !lost && err != nil {
		t.Fatalf("lost: %v, got %v", lost, err)
	}
	if lost {
		return
	}
	s.live, s.holder, s.waits = false, "", pause > 0
	if giveUp {
		s.outcome, m.letters[s.LetterID].state = "refused", ledger.Failed
	}
}

func (m *ledgerModel) die(t *rapid.T) {
	s := m.one(t)
	if s == nil {
		return
	}
	l := m.letters[s.LetterID]
	at := s.place
	if at == 0 || rapid.Bool().Draw(t, "a copy") {
		at = m.next()
	}
	dead := home(s.Sending, at)
	m.deaths = append(m.deaths, dead)
	counts := s.outcome == "" && l.state != ledger.Resolved
	later := false
	for id, other := range m.sendings {
		later = later || other.LetterID == s.LetterID && id > s.ID
	}
	if s.outcome == "" || s.givenUp() {
		s.outcome, s.live, s.holder = "dead", false, ""
	}
	if counts {
		l.attempts++
		switch {
		case l.state == ledger.Processing && later:
		case l.state == ledger.Failed || l.attempts >= atMost:
			l.state = ledger.Failed
		default:
			l.state = ledger.Pending
		}
	}
	n, err := m.d.Enter(context.Background(), []ledger.Letter{dead, dead}, atMost, ann)
	if err != nil || n.New != 0 || (n.DeadAgain == 1) != counts || n.DeadAgain+n.Known != 2 {
		t.Fatalf("%+v, %v; it counts: %v", n, err, counts)
	}
}

func (m *ledgerModel) stored(t *rapid.T) {
	s := m.one(t)
	if s == nil {
		return
	}
	if l := m.letters[s.LetterID]; l.state != ledger.Resolved {
		l.state, l.free = ledger.Resolved, true
	}
	for id, other := range m.sendings {
		if other.LetterID != s.LetterID || other.outcome != "" || other.place != 0 && string(other.Value) != string(s.Value) {
			continue
		}
		if other.outcome = "stored"; other.place == 0 && id != s.ID {
			other.outcome = "withdrawn"
		}
		other.live, other.holder = false, ""
	}
	if err := m.d.Stored(context.Background(), []int64{s.ID}, []string{"there"}, ann); err != nil {
		t.Fatal(err)
	}
}

func (m *ledgerModel) leases(t *rapid.T) {
	m.sql(t, `SET LOCAL session_replication_role = replica; UPDATE dead_letters SET lease_until = now() - interval '1 s' WHERE state = 'PROCESSING'`)
	busy := map[string]bool{}
	for _, s := range m.sendings {
		busy[s.LetterID] = busy[s.LetterID] || m.unsent(s) && s.live
	}
	want := 0
	for id, l := range m.letters {
		if l.state != ledger.Processing || busy[id] {
			continue
		}
		l.state = ledger.Pending
		want++
		for _, s := range m.sendings {
			if s.LetterID == id && m.unsent(s) {
				s.outcome, s.holder = "withdrawn", ""
			}
		}
	}
	n, err := m.d.EndLeases(context.Background(), ann)
	if err != nil || n != want {
		t.Fatalf("%d leases ended, not %d; %v", n, want, err)
	}
}

// claims lets time pass for the outbox.
func (m *ledgerModel) claims(t *rapid.T) {
	m.sql(t, `UPDATE dead_letter_outbox SET next_try_at = now() - interval '1 s', claimed_until = CASE WHEN claimed_until IS NOT NULL THEN now() - interval '1 s' END`)
	for _, s := range m.sendings {
		s.live, s.waits = false, false
	}
}

// archive notes some of what is RESOLVED as archived.
func (m *ledgerModel) archive(t *rapid.T) {
	ids := m.draw(t)
	m.sql(t, `UPDATE dead_letters SET archived_in = 'archive-1' WHERE state = 'RESOLVED' AND archived_in IS NULL AND dead_letter_id = ANY('{`+strings.Join(ids, ",")+`}')`)
	for _, id := range ids {
		if l := m.letters[id]; l != nil && l.state == ledger.Resolved {
			l.free = true
		}
	}
}

func (m *ledgerModel) remove(t *rapid.T) {
	want := 0
	for id, l := range m.letters {
		if l.state != ledger.Resolved || !l.free {
			continue
		}
		want++
		m.removed[id] = true
		delete(m.letters, id)
		maps.DeleteFunc(m.sendings, func(_ int64, s *modelSending) bool { return s.LetterID == id })
	}
	m.deaths = nil                                                    // their marks may be gone
	m.d.Exec(m.d.T, `UPDATE dead_letter_edits SET marked_at = now()`) // else what was edited stays
	n, err := m.d.Remove(context.Background(), time.Now().Add(time.Hour), 100, ann)
	if err != nil || n != want {
		t.Fatalf("%d removed, not %d; %v", n, want, err)
	}
}

func (m *ledgerModel) compact(t *rapid.T) {
	if err := m.d.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (m *ledgerModel) sql(t *rapid.T, sql string) {
	if _, err := m.conn.Exec(context.Background(), sql); err != nil {
		t.Fatal(err)
	}
}

func (m *ledgerModel) check(t *rapid.T) {
	for id, l := range m.letters {
		var state ledger.State
		var attempts, died, edits int
		if err := m.conn.QueryRow(context.Background(), `SELECT state::text, attempts, (SELECT count(*) FROM dead_letter_audit a WHERE a.dead_letter_id = d.dead_letter_id AND act = 'died'),
			(SELECT count(*) FROM dead_letter_audit a WHERE a.dead_letter_id = d.dead_letter_id AND act = 'edited')
			FROM dead_letters d WHERE dead_letter_id = $1`, id).Scan(&state, &attempts, &died, &edits); err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		if state != l.state || attempts != l.attempts || died != l.attempts || edits != l.edits {
			t.Fatalf("%s is %s after %d (%d in the audit), %d edits; it should be %s after %d, %d edits", id, state, attempts, died, edits, l.state, l.attempts, l.edits)
		}
	}
	for id, s := range m.sendings {
		var outcome string
		if err := m.conn.QueryRow(context.Background(), `SELECT coalesce(outcome, '') FROM dead_letter_outbox WHERE outbox_id = $1`, id).Scan(&outcome); err != nil || outcome != s.outcome {
			t.Fatalf("sending %d ended %q, not %q; %v", id, outcome, s.outcome, err)
		}
	}
	for what, sql := range broken {
		var n int
		if err := m.conn.QueryRow(context.Background(), sql).Scan(&n); err != nil || n != 0 {
			t.Fatalf("%d %s; %v", n, what, err)
		}
	}
}

// broken counts what must never be.
var broken = map[string]string{
	"counters that are not what a count gives": `SELECT count(*) FROM (
		SELECT group_id, path, state, sum(n) AS n FROM dead_letter_counts GROUP BY 1, 2, 3 HAVING sum(n) <> 0) c
		FULL JOIN (SELECT group_id, path, state, count(*) AS n FROM dead_letters GROUP BY 1, 2, 3) l USING (group_id, path, state)
		WHERE c.n IS DISTINCT FROM l.n`,
	"lines of the audit that do not follow the one before, or are no legal move": `SELECT count(*) FROM (
		SELECT *, lag(to_state) OVER (PARTITION BY dead_letter_id ORDER BY audit_id) AS before FROM dead_letter_audit) a
		WHERE before IS DISTINCT FROM from_state OR NOT (from_state = to_state AND act IN ('edited', 'died', 'archived', 'changed')
			OR EXISTS (SELECT FROM dead_letter_moves m WHERE m.from_state IS NOT DISTINCT FROM a.from_state AND m.to_state IS NOT DISTINCT FROM a.to_state AND m.act = a.act))`,
	"letters whose audit ends in another state": `SELECT count(*) FROM dead_letters d FULL JOIN (
		SELECT DISTINCT ON (dead_letter_id) dead_letter_id, to_state FROM dead_letter_audit ORDER BY dead_letter_id, audit_id DESC) a USING (dead_letter_id)
		WHERE d.state IS DISTINCT FROM a.to_state`,
	"letters of which two retries wait": `SELECT count(*) FROM (SELECT FROM dead_letter_outbox WHERE published_at IS NULL AND ended_at IS NULL GROUP BY dead_letter_id HAVING count(*) > 1) x`,
	"retries that wait for a letter that is not being retried": `SELECT count(*) FROM dead_letter_outbox JOIN dead_letters USING (dead_letter_id)
		WHERE published_at IS NULL AND ended_at IS NULL AND state <> 'PROCESSING'`,
}
