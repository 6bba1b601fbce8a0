//go:build integration

package ledgerdb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/postgres/ledgerdb"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

const (
	soon     = time.Hour
	atMost   = 3
	original = "decision-logs"
)

var ann = ledger.Actor{Name: "ann", Why: "because"}

// desk is a ledger in a database of its own.
type deskDB struct {
	*ledgerdb.Ledger
	*pgtest.DB
	t testing.TB
}

func newDesk(t testing.TB) *deskDB {
	t.Helper()
	d := &deskDB{DB: pgtest.New(t), t: t}
	d.Ledger = ledgerdb.New(open(t, d.URL, 0).DB)
	d.keep("-2 hours")
	d.fourEyes(false)
	return d
}

// fourEyes says whether edits of evidence need a second person.
func (d *deskDB) fourEyes(on bool) {
	d.t.Helper()
	d.Exec(d.t, `CREATE OR REPLACE FUNCTION dead_letters_four_eyes() RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT `+fmt.Sprint(on)+` $$`)
}

// keep has the database keep what is RESOLVED for so long at the least.
func (d *deskDB) keep(interval string) {
	d.t.Helper()
	d.Exec(d.t, `CREATE OR REPLACE FUNCTION dead_letters_keep() RETURNS interval LANGUAGE sql STABLE AS $$ SELECT interval '`+interval+`' $$`)
}

// unwatched begins a statement that lets time pass for the ledger, as if nobody had changed it.
const unwatched = `SET session_replication_role = replica; `

var checkFailed = envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "check 17 failed", Table: "decision_logs", Constraint: "small"}

// letter is the dead letter of the record at that offset.
func letter(offset int64, value string) ledger.Letter {
	o := envelope.Origin{Topic: original, Partition: int32(offset % 4), Offset: offset, Index: 0, Timestamp: noon}
	return ledger.Letter{
		ID: envelope.ID(o, []byte(value)), Origin: o, Cause: checkFailed,
		Found:         ledger.Found{Topic: "decision-logs-dlq", Partition: 1, Offset: offset + 1000, Stamp: noon.Add(time.Minute)},
		FirstFailedAt: noon, FailedAt: noon.Add(time.Duration(offset) * time.Second),
		Key: []byte(fmt.Sprint("key", offset%3)), Value: []byte(value), Path: "a/b", DecisionID: fmt.Sprint("d", offset), DecisionTime: noon,
		Headers: []ledger.Header{{Key: "trace", Value: []byte("x")}, {Key: "null", Value: nil}, {Key: "a\x00", Value: []byte{}}},
	}
}

// home is the dead letter of the retried record that stands at that offset of its topic.
func home(s ledger.Sending, offset int64) ledger.Letter {
	l := letter(offset, string(s.Value))
	l.Value, l.Key, l.RetryOf = s.Value, s.Key, s.Mark
	l.ID = envelope.ID(l.Origin, l.Value)
	return l
}

func (d *deskDB) enter(letters ...ledger.Letter) ledger.EnteredCount {
	d.t.Helper()
	n, err := d.Enter(context.Background(), letters, atMost, ledger.Actor{Name: "desk-1"})
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (d *deskDB) retry(ids ...string) {
	d.t.Helper()
	outcomes, err := d.Retry(context.Background(), ids, soon, ann)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, o := range outcomes {
		if o.Err != nil {
			d.t.Fatal(o.Err)
		}
	}
}

func (d *deskDB) claim(holder string, n int) []ledger.Sending {
	d.t.Helper()
	s, err := d.Claim(context.Background(), holder, n, time.Minute)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *deskDB) published(holder string, p ...ledger.Placed) {
	d.t.Helper()
	if err := d.Published(context.Background(), holder, p, soon); err != nil {
		d.t.Fatal(err)
	}
}

// put retries a letter and publishes it there.
func (d *deskDB) put(id string, offset int64) ledger.Sending {
	d.t.Helper()
	d.retry(id)
	s := d.claim("r", 1)
	if len(s) != 1 || s[0].LetterID != id {
		d.t.Fatalf("claimed %+v", s)
	}
	d.published("r", ledger.Placed{SendingID: s[0].ID, Partition: int32(offset % 4), Offset: offset})
	return s[0]
}

// stands is state, attempts and the act that moved it last.
func (d *deskDB) stands(id string) string {
	d.t.Helper()
	var s string
	d.Query(d.t, `SELECT coalesce((SELECT format('%s %s %s', state, attempts, changed_act) FROM dead_letters WHERE dead_letter_id = '`+id+`'), 'none')`, &s)
	return s
}

func (d *deskDB) text(sql string) string {
	d.t.Helper()
	var s string
	d.Query(d.t, sql, &s)
	return s
}

func (d *deskDB) trail(id string) string {
	return d.text(`SELECT coalesce(string_agg(format('%s %s>%s', act, from_state, to_state), ', ' ORDER BY audit_id), '') FROM dead_letter_audit WHERE dead_letter_id = '` + id + `'`)
}

// adds says that the counters are what a count gives.
func (d *deskDB) adds() {
	d.t.Helper()
	same(d.t, d.text(`SELECT count(*)::text FROM (
		SELECT group_id, path, state, sum(n) AS n FROM dead_letter_counts GROUP BY 1, 2, 3 HAVING sum(n) <> 0) c
		FULL JOIN (SELECT group_id, path, state, count(*) AS n FROM dead_letters GROUP BY 1, 2, 3) l USING (group_id, path, state)
		WHERE c.n IS DISTINCT FROM l.n`), "0")
	same(d.t, d.text(`SELECT count(*)::text FROM (
		SELECT day, origin_topic, origin_partition, group_id, state, sum(n) AS n FROM dead_letter_days GROUP BY 1, 2, 3, 4, 5 HAVING sum(n) <> 0) c
		FULL JOIN (SELECT (last_failed_at AT TIME ZONE 'UTC')::date AS day, origin_topic, origin_partition, group_id, state, count(*) AS n FROM dead_letters GROUP BY 1, 2, 3, 4, 5) l
		USING (day, origin_topic, origin_partition, group_id, state)
		WHERE c.n IS DISTINCT FROM l.n`), "0")
}

func TestWhatEntersIsKeptAsItCame(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	whole, bare := letter(1, `{"a":1}`), letter(2, "")
	bare.Key, bare.Value, bare.Headers, bare.Origin.Index, bare.Origin.Timestamp, bare.DecisionTime = nil, nil, nil, envelope.NoIndex, time.Time{}, time.Time{}
	empty := letter(3, "")
	empty.Key, empty.Value, empty.Headers = []byte{}, []byte{}, []ledger.Header{}
	n := d.enter(whole, bare, empty, whole)
	if n.New != 3 || n.Known != 1 || n.DeadAgain != 0 || len(n.Groups) != 1 || n.Groups[0].Fingerprint != ledger.Fingerprint(checkFailed) || n.Groups[0].Message != checkFailed.Message {
		t.Fatalf("%+v", n)
	}
	if n = d.enter(bare, whole, empty); n.Known != 3 || n.New != 0 || len(n.Groups) != 0 {
		t.Fatalf("again: %+v", n)
	}
	d.retry(whole.ID, bare.ID, empty.ID)
	sent := d.claim("r", 10)
	for i, want := range []ledger.Letter{whole, bare, empty} {
		at := slices.IndexFunc(sent, func(s ledger.Sending) bool { return s.LetterID == want.ID })
		if at < 0 {
			t.Fatalf("%d is not there", i)
		}
		s := sent[at]
		if string(s.Key) != string(want.Key) || (s.Key == nil) != (want.Key == nil) || string(s.Value) != string(want.Value) || (s.Value == nil) != (want.Value == nil) {
			t.Errorf("%d: %q %q", i, s.Key, s.Value)
		}
		if len(want.Headers) > 0 {
			same(t, s.Headers, want.Headers)
		}
		same(t, s.Topic, original)
	}
	same(t, d.text(`SELECT string_agg(coalesce(origin_index::text, 'none'), ' ' ORDER BY origin_offset) FROM dead_letters`), "0 none 0")
	d.adds()
}

// The id of a dead letter knows nothing of clusters: equal values at equal places are one letter, the first to enter. What
// differs in value or place is another letter.
func TestWhatEnters_FromTwoClusters(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	one, other := letter(0, ""), letter(0, "")
	other.Key, other.Headers = []byte("of the other cluster"), nil
	other.Origin.Timestamp = one.Origin.Timestamp.Add(time.Hour)
	other.Found.Offset, other.Found.Stamp = one.Found.Offset+7, one.Found.Stamp.Add(time.Hour)
	other.ID = envelope.ID(other.Origin, other.Value)
	same(t, other.ID, one.ID)
	if n := d.enter(one, letter(0, "x")); n.New != 2 {
		t.Fatalf("%+v", n)
	}
	if n := d.enter(other, letter(0, "y")); n.New != 1 || n.Known != 1 {
		t.Fatalf("of the other cluster: %+v", n)
	}
	same(t, d.text(`SELECT convert_from(key, 'UTF8') || ' ' || found_offset FROM dead_letters WHERE dead_letter_id = '`+one.ID+`'`), "key0 1000")
	d.put(one.ID, 5)
	if n := d.enter(other); n.Known != 1 {
		t.Fatalf("while it is retried: %+v", n)
	}
	same(t, d.stands(one.ID), "PROCESSING 0 retried")
	d.adds()
}

func TestNoLetterIsTooStrangeToEnter(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := letter(1, "x")
	l.Path = strings.Repeat("ä", 100_000)
	l.DecisionID, l.Origin.Topic = "a\x00\xff", "b\x00"
	l.Cause.Message, l.Cause.Code = "\x00\xff", "\x00"
	l.RetryOf = "ffffffff-ffff-ffff-ffff-fffffffffff'"
	l.Headers = []ledger.Header{{Key: "\xff\x00", Value: []byte("\x00")}}
	l.DecisionTime = time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)
	l.Found.Stamp, l.Origin.Timestamp, l.FirstFailedAt = time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64), time.UnixMilli(-1)
	if n := d.enter(l); n.New != 1 {
		t.Fatalf("%+v", n)
	}
	if n := d.enter(l); n.Known != 1 {
		t.Fatalf("%+v", n)
	}
}

func TestARetryGoesItsWayToStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := letter(1, `{"a":1}`)
	d.enter(l)
	s := d.put(l.ID, 500)
	var waits []ledger.Awaited
	var err error
	for deadline := time.Now().Add(time.Minute); err == nil && len(waits) == 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		waits, err = d.Awaited(t.Context(), 10)
	}
	if err != nil || len(waits) != 1 || waits[0].ID != s.ID || waits[0].Published.Offset != 500 || waits[0].State != ledger.Processing || string(waits[0].Value) != `{"a":1}` {
		t.Fatalf("%+v, %v", waits, err)
	}
	if err := d.LookAgain(t.Context(), []int64{s.ID}, soon); err != nil {
		t.Fatal(err)
	}
	if waits, err = d.Awaited(t.Context(), 10); err != nil || len(waits) != 0 {
		t.Fatalf("%+v, %v", waits, err)
	}
	for range 2 {
		if err := d.Stored(t.Context(), []int64{s.ID}, []string{"row 7"}, ledger.Actor{Name: "desk-1"}); err != nil {
			t.Fatal(err)
		}
	}
	same(t, d.stands(l.ID), "RESOLVED 0 stored")
	same(t, d.trail(l.ID), "entered >PENDING, retried PENDING>PROCESSING, stored PROCESSING>RESOLVED")
	same(t, d.text(`SELECT outcome FROM dead_letter_outbox`), "stored")
	d.adds()
}

func TestARetryThatIsDeadAgainCountsOnceUntilItFailed(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := letter(1, `{"a":1}`)
	d.enter(l)
	for i := int64(1); i <= atMost; i++ {
		s := d.put(l.ID, 500+i)
		dead, twin := home(s, 500+i), home(s, 600+i)
		dead.Cause.Code = fmt.Sprint("4200", i)
		unmarked := dead
		unmarked.RetryOf = ""
		if i == 2 {
			dead.RetryOf = "" // the place says enough
		}
		if n := d.enter(dead); n.DeadAgain != 1 || n.New != 0 || len(n.Groups) != 1 {
			t.Fatalf("%+v", n)
		}
		if n := d.enter(dead, twin, unmarked); n.Known != 3 {
			t.Fatalf("%+v", n)
		}
		want := "PENDING"
		if i == atMost {
			want = "FAILED"
		}
		same(t, d.stands(l.ID), fmt.Sprintf("%s %d died", want, i))
		same(t, d.text(`SELECT code FROM dead_letters JOIN dead_letter_groups USING (group_id)`), dead.Cause.Code)
		same(t, d.text(`SELECT why FROM dead_letters`), "dead again: data "+dead.Cause.Code+" small")
		d.adds()
	}
	same(t, d.text(`SELECT string_agg(outcome, ' ') FROM dead_letter_outbox`), "dead dead dead")
}

func TestTwoDeathsOfOneLetterInOneBatchAreTwo(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l := letter(1, `{"a":1}`)
	d.enter(l)
	first := d.put(l.ID, 501)
	d.lapse()
	second := d.put(l.ID, 502)
	if n := d.enter(home(first, 501), home(second, 502)); n.DeadAgain != 2 {
		t.Fatalf("%+v", n)
	}
	same(t, d.stands(l.ID), "PENDING 2 died")
	d.adds()
}

// lapse ends all leases.
func (d *deskDB) lapse() int {
	d.t.Helper()
	d.Exec(d.t, unwatched+`UPDATE dead_letters SET lease_until = now() - interval '1 s' WHERE state = 'PROCESSING'`)
	n, err := d.EndLeases(context.Background(), ledger.Actor{Name: "desk-1"})
	if err != nil {
		d.t.Fatal(err)
	}
	return n
}

func TestRefusalsSayWhoHasIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	l, m := letter(1, `{"a":1}`), letter(2, `{"a":2}`)
	d.enter(l, m)
	d.retry(l.ID)
	outcomes, err := d.Resolve(t.Context(), []string{"none", l.ID, m.ID, m.ID}, ledger.Actor{Name: "bob", Why: "old"})
	if err != nil {
		t.Fatal(err)
	}
	var refused *ledger.RefusedError
	if !errors.Is(outcomes[0].Err, ledger.ErrNotFound) || !errors.As(outcomes[1].Err, &refused) || outcomes[2].Err != nil || outcomes[3].Err != nil {
		t.Fatalf("%+v", outcomes)
	}
	if refused.State != ledger.Processing || refused.By != "ann" || refused.Act != ledger.Retried || refused.At.IsZero() || refused.ID != l.ID {
		t.Fatalf("%+v", refused)
	}
	same(t, d.stands(m.ID), "RESOLVED 0 closed")
	if err := d.Edit(t.Context(), m.ID, nil, "", 0, ann); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if err := d.Edit(t.Context(), "none", nil, "", 0, ann); !errors.Is(err, ledger.ErrNotFound) {
		t.Fatal(err)
	}
	for name, do := range map[string]func(ledger.Actor) error{
		"enter":   func(a ledger.Actor) error { _, err := d.Enter(t.Context(), nil, 1, a); return err },
		"retry":   func(a ledger.Actor) error { _, err := d.Retry(t.Context(), nil, soon, a); return err },
		"resolve": func(a ledger.Actor) error { _, err := d.Resolve(t.Context(), nil, a); return err },
		"bulk retry": func(a ledger.Actor) error {
			_, err := d.RetryMatching(t.Context(), ledger.Filter{}, noon, 1, soon, a)
			return err
		},
		"bulk resolve": func(a ledger.Actor) error {
			_, err := d.ResolveMatching(t.Context(), ledger.Filter{}, noon, 1, a)
			return err
		},
		"edit":   func(a ledger.Actor) error { return d.Edit(t.Context(), m.ID, nil, "", 0, a) },
		"stored": func(a ledger.Actor) error { return d.Stored(t.Context(), nil, nil, a) },
		"leases": func(a ledger.Actor) error { _, err := d.EndLeases(t.Context(), a); return err },
		"remove": func(a ledger.Actor) error { _, err := d.Remove(t.Context(), noon, 1, a); return err },
	} {
		if err := do(ledger.Actor{Why: "x"}); err == nil || errors.As(err, &refused) {
			t.Errorf("%s by nobody: %v", name, err)
		}
	}
	if _, err := d.Resolve(t.Context(), []string{l.ID}, ledger.Actor{Name: "x"}); err == nil {
		t.Error("resolved without a note")
	}
}
