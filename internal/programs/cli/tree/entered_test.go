package tree

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"docket/internal/desk/worker"
)

// TestList_SaysWhatIsMissing: an answer that is empty or short for want of a desk says so, to people and to programs.
func TestList_SaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	holds := func(records, gone int64, err error) func(context.Context) (worker.Backlog, error) {
		return func(context.Context) (worker.Backlog, error) {
			return worker.Backlog{Records: records, Gone: gone}, err
		}
	}
	none, one := []string{}, []string{"desk-1"}
	number := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		desks   []string
		backlog func(context.Context) (worker.Backlog, error)
		filled  bool // the list has entries
		note    string
		missing *int64
	}{
		"no desk, 30 in Kafka":          {none, holds(30, 0, nil), false, "no desk is running; 30 dead letters are not in the ledger yet", number(30)},
		"no desk, 1 in Kafka":           {none, holds(1, 0, nil), false, "no desk is running; 1 dead letter is not in the ledger yet", number(1)},
		"no desk, none":                 {none, holds(0, 0, nil), false, "no desk is running; all dead letters so far are in the ledger", number(0)},
		"no desk, no Kafka":             {none, holds(0, 0, errAway), false, "no desk is running; Kafka did not answer, so ", nil},
		"no desk, half of it":           {none, holds(7, 0, errAway), false, "no desk is running; at least 7 dead letters are not in the ledger yet", nil},
		"a desk, 30 in Kafka":           {one, holds(30, 0, nil), true, "30 dead letters are not in the ledger yet", number(30)},
		"a desk, lost":                  {one, holds(0, 2, nil), true, "2 dead letters lost: deleted from the topic before a desk entered them", number(0)},
		"a desk, no Kafka":              {one, holds(0, 0, errAway), false, "Kafka did not answer, so ", nil},
		"a desk, no Kafka, but entries": {one, holds(0, 0, errAway), true, "", nil},
		"a desk, nothing missing":       {one, holds(0, 0, nil), false, "", number(0)},
	} {
		for _, args := range []string{"dlq list", "dlq groups", "dlq retry --all --operator mara --reason x"} {
			if c.filled && strings.Contains(args, "retry") {
				continue // it would move them
			}
			t.Run(name+" "+args, func(t *testing.T) {
				t.Parallel()
				w := &world{book: newBook(), backlog: c.backlog}
				if c.filled {
					w.book = newBook(deadLetters()...)
				}
				w.book.desks = c.desks
				if r := w.call(strings.Fields(args)...); r.code != 0 || c.note != "" && !strings.Contains(r.err, c.note) || c.note == "" && strings.Contains(r.err, "Kafka") {
					t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
				}
				r := w.call(append(strings.Fields(args), "--json")...)
				var answer struct{ Ledger toldLedger }
				if err := json.Unmarshal([]byte(r.out), &answer); err != nil || r.code != 0 {
					t.Fatalf("exit %d, %v\n%s", r.code, err, r.out)
				}
				l := answer.Ledger
				if l.Desks == nil || *l.Desks != len(c.desks) || !strings.HasPrefix(l.Note, c.note) || (c.note == "") != (l.Note == "") ||
					(l.NotEntered == nil) != (c.missing == nil) || l.NotEntered != nil && *l.NotEntered != *c.missing {
					t.Errorf("%+v\n%s", l, r.out)
				}
			})
		}
	}
}

// TestList_KafkaTooSlow: brokers that do not answer cost seconds, and the list is there.
func TestList_KafkaTooSlow(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{backlog: func(ctx context.Context) (worker.Backlog, error) {
			<-ctx.Done()
			return worker.Backlog{}, ctx.Err()
		}}
		w.book = newBook()
		began := time.Now()
		r := w.call("dlq", "groups")
		if took := time.Since(began); r.code != 0 || took > 3*time.Second || !strings.Contains(r.err, "Kafka did not answer") {
			t.Errorf("exit %d after %v: %s", r.code, took, r.err)
		}
	})
}

// toldLedger is what a list in JSON says of the ledger.
type toldLedger struct {
	Desks      *int
	NotEntered *int64 `json:"not_entered"`
	Surplus    []struct{ Open int64 }
	Note       string
}
