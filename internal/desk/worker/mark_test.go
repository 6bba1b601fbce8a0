package worker

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
)

// marks is a ledger.Marker in memory. ends has the result for each retry.
type marks struct {
	due   []ledger.Unmarked
	ends  map[int64]func() (missing int, err error)
	asked map[int64][]ledger.RowName
}

func (m *marks) Unmarked(context.Context, int) ([]ledger.Unmarked, int64, error) {
	return m.due, int64(len(m.due)), nil
}

func (m *marks) MarkEdited(_ context.Context, id int64, rows []ledger.RowName) (int, int, error) {
	m.asked[id] = rows
	missing, err := m.ends[id]()
	return len(rows) - missing, missing, err
}

// left is an observer of the retries that are still to be marked.
type left struct {
	unobserved
	n int64
}

func (l *left) Unmarked(n int64) { l.n = n }

func TestMarking_OneThatFailsKeepsNoOther(t *testing.T) {
	t.Parallel()
	const one, two = `{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z"}`, `{"decision_id":"b","timestamp":"2026-01-01T00:00:00Z"}`
	m := &marks{asked: map[int64][]ledger.RowName{}, due: []ledger.Unmarked{
		{ID: 1, LetterID: "first", AuditID: 7, Value: []byte(one)}, {ID: 2, LetterID: "second", AuditID: 8, Value: []byte("[" + one + " ," + two + "]"), Children: []int{0}}, {ID: 3, LetterID: "third", Value: []byte(one)},
	}}
	refused := errors.New("refused")
	m.ends = map[int64]func() (int, error){
		1: func() (int, error) { return 0, refused }, 2: func() (int, error) { return 0, nil }, 3: func() (int, error) { return 1, nil },
	}
	var log bytes.Buffer
	seen := &left{}
	k := NewMarking(MarkConfig{MaxRecordBytes: 1 << 20, Observer: seen}, m, zerolog.New(&log))
	for range 2 {
		if err := k.round(t.Context()); !errors.Is(err, refused) {
			t.Fatal(err)
		}
	}
	if rows := m.asked[2]; len(rows) != 1 || rows[0].ID != "b" || string(rows[0].Came) != two {
		t.Errorf("asked for %+v: a decision that is a dead letter of its own has no row", rows)
	}
	if seen.n != 2 {
		t.Errorf("%d are left", seen.n)
	}
	if n := strings.Count(log.String(), "edited row not marked"); n != 2 || strings.Contains(log.String(), "decision_id") {
		t.Errorf("told %d times:\n%s", n, log.String())
	}
}

// TestMarking_NoDescriptorLeft: a short lack of file descriptors is not a matter of grants.
func TestMarking_NoDescriptorLeft(t *testing.T) {
	t.Parallel()
	m := &marks{asked: map[int64][]ledger.RowName{}, due: []ledger.Unmarked{{ID: 1, Value: []byte(`{"decision_id":"a","timestamp":"2026-01-01T00:00:00Z"}`)}}}
	m.ends = map[int64]func() (int, error){1: func() (int, error) { return 0, syscall.EMFILE }}
	var log bytes.Buffer
	if err := NewMarking(MarkConfig{MaxRecordBytes: 1 << 20}, m, zerolog.New(&log)).round(t.Context()); !errors.Is(err, syscall.EMFILE) || log.Len() > 0 {
		t.Errorf("%v, told\n%s", err, log.String())
	}
}
