package tree

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli"
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

// A payload that somebody changes in SQL has no difference by lines, and its row need not be marked. The audit has what was there.
func TestShow_EditedInSQL(t *testing.T) {
	t.Parallel()
	all := deadLetters()
	id := all[0].ID
	for _, role := range []string{"", "operator"} {
		b := newBook(all...)
		b.audit(id, ledger.Audit{At: now, Act: ledger.Edited, From: ledger.Pending, To: ledger.Pending, By: "clerk (SQL)", Why: "changed by hand", Original: []byte(`{"user":"before"}`)})
		w := &world{book: b, terminal: person(140)}
		if role != "" {
			w.overDesk(t, role)
		}
		w.says(t, cli.Done, []string{"dlq", "show", id}, "yes, the payload was changed by hand", "!before\"")
		w.says(t, cli.Done, []string{"dlq", "show", id, "--payload", "--history"}, "by clerk (SQL), 17 bytes before:\n{\n  \"user\": \"before\"\n}\n")
		w.says(t, cli.Done, []string{"dlq", "show", id, "--payload", "--json"}, `"edited": true`, `"original": {`)
	}
}
