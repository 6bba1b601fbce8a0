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
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

const (
	soon     = time.Hour
	atMost   = 3
	original = "decision-logs"
)

var ann = ledger.Actor{Name: "ann", Why: "because"}

// ledgerDB is a ledger in a database of its own.
type ledgerDB struct{ *pgtest.Letters }

func newLedger(t testing.TB) *ledgerDB {
	t.Helper()
	return &ledgerDB{pgtest.NewLetters(t)}
}

func (d *ledgerDB) trail(id string) string {
	return d.Text(`SELECT coalesce(string_agg(format('%s %s>%s', act, from_state, to_state), ', ' ORDER BY audit_id), '') FROM dead_letter_audit WHERE dead_letter_id = '` + id + `'`)
}

func TestEnter_KeptAsItCame(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	whole, bare := letter(1, `{"a":1}`), letter(2, "")
	bare.Key, bare.Value, bare.Headers, bare.Origin.Index, bare.Origin.Timestamp, bare.DecisionTime = nil, nil, nil, envelope.NoIndex, time.Time{}, time.Time{}
	empty := letter(3, "")
	empty.Key, empty.Value, empty.Headers = []byte{}, []byte{}, []ledger.Header{}
	n := d.Entered(whole, bare, empty, whole)
	if n.New != 3 || n.Known != 1 || n.DeadAgain != 0 || len(n.Groups) != 1 || n.Groups[0].Fingerprint != ledger.Fingerprint(pgtest.CheckFailed) || n.Groups[0].Message != pgtest.CheckFailed.Message {
		t.Fatalf("%+v", n)
	}
	if n = d.Entered(bare, whole, empty); n.Known != 3 || n.New != 0 || len(n.Groups) != 0 {
		t.Fatalf("again: %+v", n)
	}
	d.Retried(whole.ID, bare.ID, empty.ID)
	sent := d.Claimed("r", 10)
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
	same(t, d.Text(`SELECT string_agg(coalesce(origin_index::text, 'none'), ' ' ORDER BY origin_offset) FROM dead_letters`), "0 none 0")
	d.Sums()
}

// The id of a dead letter knows nothing of clusters: equal values at equal places are one letter, the first to enter. A
// record that differs in value or place is another letter.
func TestEnter_FromTwoClusters(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	one, other := letter(0, ""), letter(0, "")
	other.Key, other.Headers = []byte("of the other cluster"), nil
	other.Origin.Timestamp = one.Origin.Timestamp.Add(time.Hour)
	other.Found.Offset, other.Found.Stamp = one.Found.Offset+7, one.Found.Stamp.Add(time.Hour)
	other.ID = envelope.ID(other.Origin, other.Value)
	same(t, other.ID, one.ID)
	if n := d.Entered(one, letter(0, "x")); n.New != 2 {
		t.Fatalf("%+v", n)
	}
	if n := d.Entered(other, letter(0, "y")); n.New != 1 || n.Known != 1 {
		t.Fatalf("of the other cluster: %+v", n)
	}
	same(t, d.Text(`SELECT convert_from(key, 'UTF8') || ' ' || found_offset FROM dead_letters WHERE dead_letter_id = '`+one.ID+`'`), "key0 1000")
	d.Put(one.ID, 5)
	if n := d.Entered(other); n.Known != 1 {
		t.Fatalf("while it is retried: %+v", n)
	}
	same(t, d.State(one.ID), "PROCESSING 0 retried")
	d.Sums()
}

func TestEnter_StrangeLetters(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, "x")
	l.Path = strings.Repeat("ä", 100_000)
	l.DecisionID, l.Origin.Topic = "a\x00\xff", "b\x00"
	l.Cause.Message, l.Cause.Code = "\x00\xff", "\x00"
	l.RetryOf = "ffffffff-ffff-ffff-ffff-fffffffffff'"
	l.Headers = []ledger.Header{{Key: "\xff\x00", Value: []byte("\x00")}}
	l.DecisionTime = time.Date(-1, 12, 31, 0, 0, 0, 0, time.UTC)
	l.Found.Stamp, l.Origin.Timestamp, l.FirstFailedAt = time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64), time.UnixMilli(-1)
	if n := d.Entered(l); n.New != 1 {
		t.Fatalf("%+v", n)
	}
	if n := d.Entered(l); n.Known != 1 {
		t.Fatalf("%+v", n)
	}
}

func TestRetry_UntilStored(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, `{"a":1}`)
	d.Entered(l)
	s := d.Put(l.ID, 500)
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
	same(t, d.State(l.ID), "RESOLVED 0 stored")
	same(t, d.trail(l.ID), "entered >PENDING, retried PENDING>PROCESSING, stored PROCESSING>RESOLVED")
	same(t, d.Text(`SELECT outcome FROM dead_letter_outbox`), "stored")
	d.Sums()
}

func TestRetry_DeadAgainCountsOnce(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, `{"a":1}`)
	d.Entered(l)
	for i := int64(1); i <= atMost; i++ {
		s := d.Put(l.ID, 500+i)
		dead, twin := home(s, 500+i), home(s, 600+i)
		dead.Cause.Code = fmt.Sprint("4200", i)
		unmarked := dead
		unmarked.RetryOf = ""
		if i == 2 {
			dead.RetryOf = "" // the place says enough
		}
		if n := d.Entered(dead); n.DeadAgain != 1 || n.New != 0 || len(n.Groups) != 1 {
			t.Fatalf("%+v", n)
		}
		if n := d.Entered(dead, twin, unmarked); n.Known != 3 {
			t.Fatalf("%+v", n)
		}
		want := "PENDING"
		if i == atMost {
			want = "FAILED"
		}
		same(t, d.State(l.ID), fmt.Sprintf("%s %d died", want, i))
		same(t, d.Text(`SELECT code FROM dead_letters JOIN dead_letter_groups USING (group_id)`), dead.Cause.Code)
		same(t, d.Text(`SELECT why FROM dead_letters`), "dead again: data "+dead.Cause.Code+" small")
		d.Sums()
	}
	same(t, d.Text(`SELECT string_agg(outcome, ' ') FROM dead_letter_outbox`), "dead dead dead")
}

func TestRetry_TwoDeathsInOneBatch(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := letter(1, `{"a":1}`)
	d.Entered(l)
	first := d.Put(l.ID, 501)
	d.lapse()
	second := d.Put(l.ID, 502)
	if n := d.Entered(home(first, 501), home(second, 502)); n.DeadAgain != 2 {
		t.Fatalf("%+v", n)
	}
	same(t, d.State(l.ID), "PENDING 2 died")
	d.Sums()
}

// lapse ends all leases.
func (d *ledgerDB) lapse() int {
	d.T.Helper()
	d.Exec(d.T, pgtest.Unwatched+`UPDATE dead_letters SET lease_until = now() - interval '1 s' WHERE state = 'PROCESSING'`)
	n, err := d.EndLeases(context.Background(), ledger.Actor{Name: "desk-1"})
	if err != nil {
		d.T.Fatal(err)
	}
	return n
}

func TestDecide_RefusalSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l, m := letter(1, `{"a":1}`), letter(2, `{"a":2}`)
	d.Entered(l, m)
	d.Retried(l.ID)
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
	same(t, d.State(m.ID), "RESOLVED 0 closed")
	if err := d.Edit(t.Context(), m.ID, "", nil, "", 0, ann); !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if err := d.Edit(t.Context(), "none", "", nil, "", 0, ann); !errors.Is(err, ledger.ErrNotFound) {
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
		"edit":   func(a ledger.Actor) error { return d.Edit(t.Context(), m.ID, "", nil, "", 0, a) },
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
