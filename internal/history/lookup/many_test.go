package lookup

import (
	"fmt"
	"testing"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// Dead letters of an id that are not listed are counted, over all shards.
func TestFind_ManyLetters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 25 {
		e := ledger.Entry{}
		e.ID, e.DecisionID, e.Origin = fmt.Sprint(i), "d-1", envelope.Origin{Topic: "logs", Partition: 3, Offset: int64(i)}
		w.letters = append(w.letters, e)
	}
	a := w.find()
	if len(a.Letters) != mostLetters || a.MoreLetters != 15 || a.Letters[0].ID != "0" {
		t.Errorf("%d letters, and %d more", len(a.Letters), a.MoreLetters)
	}
	joined := Answer{ID: "d-1"}
	for _, name := range []string{"one", "two"} {
		of := a
		joined.add(ShardLook{Name: name, Look: w.look()}, &of)
	}
	if len(joined.Letters) != mostLetters || joined.MoreLetters != 40 {
		t.Errorf("of two shards: %d letters, and %d more", len(joined.Letters), joined.MoreLetters)
	}
}
