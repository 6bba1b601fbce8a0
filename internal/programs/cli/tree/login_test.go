package tree

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
)

// TestShow_Login: the login that the server saw is printed beside the name, and the columns that were changed by hand.
func TestShow_Login(t *testing.T) {
	t.Parallel()
	all := deadLetters()
	id := all[0].ID
	books := func() *book {
		b := newBook(all...)
		b.audits[id][0].Login, b.audits[id][0].Application, b.audits[id][0].Client = "docket_desk", "docket", "10.0.0.7"
		b.audit(id, ledger.Audit{At: now.Add(-time.Hour), Act: ledger.Changed, From: ledger.Pending, To: ledger.Pending, By: "Mara (CISO)", Why: "changed by hand",
			Login: "clerk\x1b[31m", Application: "psql", Client: "10.0.0.9", Columns: []string{"headers", "key"}, Was: []byte(`{"key": "\\x616c696365", "headers": [{"key": "alice"}]}`)})
		return b
	}
	for _, width := range []int{80, 140} {
		r := (&world{book: books(), terminal: person(width)}).call("dlq", "show", id)
		quiet(t, r.out+r.err)
		at := strings.Index(r.out, "History")
		if r.code != 0 || at < 0 {
			t.Fatalf("exit %d, %s", r.code, r.err)
		}
		text := r.out[at:]
		for _, want := range []string{"LOGIN", "docket_desk", "Mara", "clerk", "headers"} {
			if !strings.Contains(text, want) {
				t.Errorf("%d columns: no %q in\n%s", width, want, text)
			}
		}
		if width == 140 && !strings.Contains(text, "docket_desk, docket, 10.0.0.7") {
			t.Errorf("no address and no application in\n%s", text)
		}
		if strings.Contains(r.out, "alice") {
			t.Error("shows what was there before unasked")
		}
	}
	r := (&world{book: books(), terminal: person(140)}).call("dlq", "show", id, "--payload", "--history")
	if !strings.Contains(r.out, `"key": "alice"`) || r.code != 0 {
		t.Errorf("exit %d: what was there before is not shown:\n%s", r.code, r.out)
	}
	for _, payload := range []bool{false, true} {
		args := []string{"dlq", "show", id, "--json"}
		if payload {
			args = append(args, "--payload")
		}
		r := (&world{book: books()}).call(args...)
		var shown struct {
			History []struct {
				By, Login, Application, Client string
				Columns                        []string
				Was                            map[string]any
			}
		}
		if err := json.Unmarshal([]byte(r.out), &shown); err != nil || len(shown.History) != 2 {
			t.Fatalf("%v\n%s", err, r.out)
		}
		h := shown.History[1]
		if h.By != "Mara (CISO)" || h.Login != "clerk\x1b[31m" || h.Application != "psql" || h.Client != "10.0.0.9" || !slices.Equal(h.Columns, []string{"headers", "key"}) || (h.Was != nil) != payload {
			t.Errorf("%+v", h)
		}
	}
}
