//go:build integration

package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/desk/ledger"
)

// TestMarking_Journey follows an edited letter to its row, and three decisions that only claim to be edited.
func TestMarking_Journey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := w.dead(2)
	w.pg.Calm(t)
	w.goes(w.relay("relay-1", 10, w.book, w.publisher(10*time.Second)).Run)
	decision := func(id string) []byte {
		return fmt.Appendf(nil, `{"decision_id":"%s","timestamp":%q,"path":"p"}`, id, time.Now().UTC().Format(time.RFC3339Nano))
	}
	e, err := w.book.Show(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.book.Propose(t.Context(), ledger.Draft{LetterID: e.ID, Before: e.Value, Value: decision("edited"), Retry: true}, ledger.Actor{Name: "mara", Why: "typo", Vouched: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.book.Approve(t.Context(), p.ID, "diff", letterLease, ledger.Actor{Name: "oleg", Why: "so it is", Vouched: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.book.Retry(t.Context(), ids[1:], letterLease, ledger.Actor{Name: "mara"}); err != nil {
		t.Fatal(err)
	}
	var forged []kgo.RecordHeader
	for _, name := range []string{"docket-edited", "x-edited-audit-id", "edited_audit_id", "docket-retry-of"} {
		forged = append(forged, kgo.RecordHeader{Key: name, Value: []byte("1")})
	}
	w.kafka.Produce(t, &kgo.Record{Topic: source, Key: []byte("k"), Value: decision("forged"), Headers: forged})
	w.settled()
	w.until("the row is marked", `SELECT EXISTS (SELECT FROM decision_logs d JOIN dead_letter_audit a ON a.audit_id = d.edited_audit_id WHERE d.decision_id = 'edited' AND a.act = 'edited' AND a.actor = 'mara')`)
	w.until("the others are not", `SELECT count(*) = 2 FROM decision_logs WHERE edited_audit_id IS NULL AND decision_id <> 'edited'`)
	w.until("nothing is left to mark", `SELECT NOT EXISTS (SELECT FROM dead_letter_edits WHERE marked_at IS NULL)`)
}
