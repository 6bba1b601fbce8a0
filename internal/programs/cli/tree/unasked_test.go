package tree

import (
	"strings"
	"testing"

	"docket/internal/desk/ledger"
)

// TestShow_JSONWithoutPayload holds for the payload before an edit and for what the edit changed, too.
func TestShow_JSONWithoutPayload(t *testing.T) {
	t.Parallel()
	w := &world{book: newBook(deadLetters()...)}
	id := deadLetters()[0].ID
	if err := w.book.Edit(t.Context(), id, "", []byte(`{"user":"bob"}`), "-alice\n+bob\n", 0, ledger.Actor{Name: "mara", Why: "a name"}); err != nil {
		t.Fatal(err)
	}
	for _, how := range [][]string{{"--json"}, {"--json", "--history"}, {"--history"}} {
		r := w.call(append([]string{"dlq", "show", id}, how...)...)
		if r.code != 0 || !strings.Contains(r.out, "edited") || strings.Contains(r.out, "alice") || strings.Contains(r.out, "bob") {
			t.Errorf("%v: exit %d\n%s%s", how, r.code, r.out, r.err)
		}
	}
	if r := w.call("dlq", "show", id, "--json", "--payload"); !strings.Contains(r.out, "alice") || !strings.Contains(r.out, "+bob") {
		t.Errorf("what is asked for is not shown\n%s", r.out)
	}
}
