package fallback_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/fallback"
	"docket/internal/testkit/fstest"
)

// numbered makes lines with the keys key-0, key-1 and so on.
func numbered(n int) []fallback.Line {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key-", i)
	}
	return linesOf(keys...)
}

// TestRecover_RefusedAhead: lines that the brokers refuse for good, however many, keep no lines behind or before them waiting. A round
// that ends without an answer loses no place.
func TestRecover_RefusedAhead(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	const lines = 6500
	mustAppend(t, s, numbered(lines)...)
	good := map[string]bool{"key-0": true, "key-2600": true, "key-6499": true}
	silent := true
	b := &broker{answer: func(r *kgo.Record) error {
		if silent {
			return errAway
		}
		if !good[string(r.Key)] {
			return fmt.Errorf("produce: %w", kerr.InvalidRecord)
		}
		return nil
	}}
	round := func() {
		t.Helper()
		if _, err := s.Recover(t.Context(), b); !errors.As(err, new(*fallback.PublishError)) {
			t.Fatal(err)
		}
	}
	for range 3 {
		round()
	}
	silent = false
	for range lines/1000 + 1 {
		round()
	}
	if got := b.keys(); len(got) != len(good) {
		t.Errorf("%q were published", got)
	}
	calls := b.tries()
	for range 7 {
		round()
	}
	if n := b.tries() - calls; n != 7 || len(b.keys()) != len(good) {
		t.Errorf("%d requests in 7 rounds, and %d records", n, len(b.keys()))
	}
}

// The disk is full, and the oversize line of a file cannot be moved into a file of its own. The others were acknowledged, and are
// not published again.
func TestRecover_OversizeCannotMove(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	batch := linesOf("a", "big", "c")
	batch[1].Record.Value = []byte(strings.Repeat("x", 500))
	mustAppend(t, s, batch...)
	m.Fail(fstest.Fault{Op: fstest.OpCreate, N: 1, Err: fstest.Errnos[0], Forever: true})
	b := &broker{answer: tooLarge(100)}
	for range 5 {
		if _, err := s.Recover(t.Context(), b); err == nil {
			t.Fatal("the disk is full, and the file is done")
		}
	}
	m.Heal()
	drain(t, s, b)
	wantKeys(t, b.keys(), "a", "c")
}

// The brokers refuse some lines for good, by another code than that for large records. The others are published once, also
// beside files that come and go, and in files of several chunks.
func TestRecover_LineRefusedForGood(t *testing.T) {
	t.Parallel()
	m := fstest.New()
	s := open(t, cfg(), m)
	const lines = 2500
	mustAppend(t, s, numbered(lines)...)
	refused := map[string]bool{"key-0": true, "key-63": true, "key-64": true, "key-1700": true, "key-2499": true}
	b := &broker{answer: func(r *kgo.Record) error {
		if refused[string(r.Key)] {
			return fmt.Errorf("produce: %w", kerr.InvalidRecord)
		}
		return nil
	}}
	again := func(rounds int) {
		t.Helper()
		for range rounds {
			if _, err := s.Recover(t.Context(), b); err != nil && !errors.As(err, new(*fallback.PublishError)) {
				t.Fatal(err)
			}
		}
	}
	for i := range 20 {
		mustAppend(t, s, linesOf(fmt.Sprint("other-", i))...)
		again(2)
	}
	again(20)
	if n := len(b.keys()); n != lines-len(refused)+20 {
		t.Errorf("%d records were published, want %d", n, lines-len(refused)+20)
	}
	if st := s.Stats(); st.Files != 1 || st.RecoveredRecords != 20 {
		t.Errorf("%+v", st)
	}
	clear(refused)
	again(1)
	if n := len(b.keys()); n != lines+20 {
		t.Errorf("%d records were published in all, want %d", n, lines+20)
	}
	if st := s.Stats(); st.Files != 0 || st.RecoveredRecords != lines+20 {
		t.Errorf("%+v", st)
	}
}
