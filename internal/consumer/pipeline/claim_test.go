package pipeline

import (
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/record/envelope"
)

// TestDeadLetter_NamesTheDecisionOfAnArray: an upload of OPA is an array, often of one decision. Its dead letter is the
// whole record, and says which decision that is.
func TestDeadLetter_NamesTheDecisionOfAnArray(t *testing.T) {
	t.Parallel()
	const refused = `{"decision_id":"a","timestamp":"2026-03-01T12:00:00Z","path":7}`
	values := []string{refused, "[" + refused + "]", zipped(t, " [ "+refused+" ] "), zipped(t, refused), "[" + logOf("bad") + "]", "[" + refused + ",7]", `[{"decision_id":"a",]`}
	want := []string{"a true", "a true", "a true", "a true", "bad true", "a true", " false", " false"}
	synctest.Test(t, func(t *testing.T) {
		w, p := newWorld(), newPartition(t, recordsOf(0, values...))
		w.db.refuse = func(id string) error {
			if id == "bad" {
				return sqlstate("23514")
			}
			return nil
		}
		w.run(t, p)
		var said []string
		for _, r := range w.kafka.took {
			said = append(said, saysOfItself(r))
		}
		equal(t, "claims", said, want)
	})
}

// saysOfItself returns the decision_id in the headers of a dead letter, and whether there is a time.
func saysOfItself(r *kgo.Record) string {
	id, timed := "", " false"
	for _, h := range r.Headers {
		switch h.Key {
		case envelope.DecisionID:
			id = string(h.Value)
		case envelope.DecisionTime:
			timed = " true"
		}
	}
	return id + timed
}
