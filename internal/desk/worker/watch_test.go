package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
)

// ends is a ledger.Watch in memory.
type ends struct {
	awaited []*ledger.Awaited
	due     map[int64]time.Time
	looks   map[int64][]time.Duration // pauses
	stored  map[int64]string
	refuse  func(ids []int64) error
	letters map[string]int // that entered before: the index of each
	named   []int          // numbers of possible letters in one question
	unnamed error          // of such a question
	asked   int
	fail    func(asked int) error
}

func (e *ends) Awaited(ctx context.Context, n int) (out []ledger.Awaited, err error) {
	e.asked++
	if e.fail != nil {
		if err := e.fail(e.asked); err != nil {
			return nil, err
		}
	}
	for _, a := range e.awaited {
		if _, ended := e.stored[a.ID]; !ended && !time.Now().Before(e.due[a.ID]) && len(out) < n {
			out = append(out, *a)
		}
	}
	return out, ctx.Err()
}

func (e *ends) Stored(_ context.Context, ids []int64, why []string, _ ledger.Actor) error {
	if e.refuse != nil {
		if err := e.refuse(ids); err != nil {
			return err
		}
	}
	for i, id := range ids {
		e.stored[id] = why[i]
	}
	return nil
}

func (e *ends) Overtaken(_ context.Context, possible []ledger.Possible, most int, by ledger.Actor) (ended int, err error) {
	if most != 7 || by.Name != "desk" {
		return 0, fmt.Errorf("%d attempts, by %s", most, by.Name)
	}
	if e.named = append(e.named, len(possible)); e.unnamed != nil {
		return 0, e.unnamed
	}
	for _, p := range possible {
		if index, there := e.letters[p.LetterID]; there && index == p.Index {
			e.stored[p.SendingID] = fmt.Sprint("overtaken ", index)
			ended++
		}
	}
	return ended, nil
}

func (e *ends) LookAgain(_ context.Context, ids []int64, after time.Duration) error {
	for _, id := range ids {
		e.due[id] = time.Now().Add(after)
		e.looks[id] = append(e.looks[id], after)
		e.awaited[id-1].Looks++
	}
	return nil
}

func (e *ends) await(value string, children ...int) {
	id := int64(len(e.awaited) + 1)
	e.awaited = append(e.awaited, &ledger.Awaited{Sending: ledger.Sending{ID: id, Value: []byte(value)}, Children: children})
}

// rows is a Table in memory: payloads by id.
type rows map[string]string

func (r rows) Lookup(_ context.Context, sought []Sought) (found []Found, err error) {
	if len(sought) > lookupBatch {
		return nil, fmt.Errorf("%d at a time", len(sought))
	}
	for i, s := range sought {
		if raw, ok := r[s.ID]; ok {
			found = append(found, Found{N: i, Topic: "decision-logs", Partition: 3, Offset: 120, Equal: raw == string(s.Raw)})
		}
	}
	return found, nil
}

func newEnds() *ends {
	return &ends{due: map[int64]time.Time{}, looks: map[int64][]time.Duration{}, stored: map[int64]string{}}
}

func watching(t *testing.T, e *ends, table Table, d time.Duration) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), d)
	defer stop()
	w := NewWatcher(WatchConfig{MaxRecordBytes: 1 << 20, MaxAttempts: 7}, e, table, ledger.Actor{Name: "desk"}, zerolog.Nop())
	if err := w.Run(ctx); err != nil {
		t.Error(err)
	}
}

func logged(id string) string {
	return `{"decision_id":"` + id + `","timestamp":"2026-01-02T03:04:05Z"}`
}

func TestWatcher_LettersThatOvertookTheirRetry(t *testing.T) {
	t.Parallel()
	at := func(index int, value string) string {
		return envelope.ID(envelope.Origin{Topic: "decision-logs", Partition: 2, Offset: 500, Index: index}, []byte(value))
	}
	pair := logged("a") + "\n" + logged("b")
	for name, test := range map[string]struct {
		value, letter string
		index         int
		children      []int
		want          string
	}{
		"the decision":             {logged("a"), at(0, logged("a")), envelope.NoIndex, nil, "overtaken -1"},
		"the record":               {logged("a"), at(envelope.NoIndex, logged("a")), envelope.NoIndex, nil, "overtaken -1"},
		"rubbish":                  {"rubbish", at(envelope.NoIndex, "rubbish"), envelope.NoIndex, nil, "overtaken -1"},
		"nothing":                  {"", at(envelope.NoIndex, ""), envelope.NoIndex, nil, "overtaken -1"},
		"one of two":               {pair, at(1, logged("b")), 1, nil, "overtaken 1"},
		"one of two that is known": {pair, at(1, logged("b")), 1, []int{1}, ""},
		"another place":            {logged("a"), envelope.ID(envelope.Origin{Topic: "decision-logs", Partition: 2, Offset: 501, Index: 0}, []byte(logged("a"))), envelope.NoIndex, nil, ""},
		"another value":            {logged("a"), at(0, logged("b")), envelope.NoIndex, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEnds()
				e.letters = map[string]int{test.letter: test.index}
				e.await(test.value, test.children...)
				e.awaited[0].Published = ledger.Found{Topic: "decision-logs", Partition: 2, Offset: 500, Stamp: time.Now()}
				watching(t, e, rows{}, time.Second)
				if e.stored[1] != test.want {
					t.Errorf("%q, want %q", e.stored[1], test.want)
				}
			})
		})
	}
}

// TestWatcher_PossibleLettersInPortions: a record of many decisions has as many possible letters. They are asked for in portions, and
// seldom once every letter that can have overtaken the retry is in the ledger.
func TestWatcher_PossibleLettersInPortions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds()
		e.await("[" + strings.Repeat("1,", 24_998) + "1]")
		e.await(logged("a"))
		for _, a := range e.awaited {
			a.Published = ledger.Found{Topic: "decision-logs", Partition: 2, Offset: 500, Stamp: time.Now()}
		}
		watching(t, e, rows{}, 20*time.Minute)
		var rounds int
		for i := 0; i < len(e.named); i += 3 {
			if !slices.Equal(e.named[i:min(i+3, len(e.named))], []int{10_000, 10_000, 5_002}) {
				t.Fatalf("questions for %v letters", e.named)
			}
			rounds++
		}
		if looks := len(e.looks[1]); rounds < 8 || rounds > looks/2 {
			t.Errorf("asked in %d rounds of %d", rounds, looks)
		}
	})
}

// TestWatcher_LettersCannotBeLookedFor: a failure keeps no other retry from its end, and the letter is found later.
func TestWatcher_LettersCannotBeLookedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds()
		e.unnamed = errors.New("no answer")
		e.await(logged("z"))
		e.await(logged("a"))
		for _, a := range e.awaited {
			a.Published = ledger.Found{Topic: "decision-logs", Partition: 2, Offset: 500, Stamp: time.Now()}
		}
		e.letters = map[string]int{envelope.ID(envelope.Origin{Topic: "decision-logs", Partition: 2, Offset: 500, Index: 0}, []byte(logged("z"))): envelope.NoIndex}
		watching(t, e, rows{"a": logged("a")}, 5*time.Minute)
		if e.stored[2] == "" || e.stored[1] != "" || len(e.looks[1]) < 8 {
			t.Fatalf("ends %v, looks %v", e.stored, e.looks)
		}
		e.unnamed = nil
		watching(t, e, rows{}, 10*time.Minute)
		if e.stored[1] == "" {
			t.Errorf("never found again: %d looks", len(e.looks[1]))
		}
	})
}

func TestWatcher_StoredWithAllDecisions(t *testing.T) {
	t.Parallel()
	table := rows{"a": logged("a"), "b": logged("b"), "c": `{"other":true}`}
	bad := `{"decision_id":"x"}`
	for name, test := range map[string]struct {
		value    string
		children []int
		want     string
	}{
		"its row":                       {logged("a"), nil, "row of decision-logs/3/120"},
		"its row, gzip":                 {zipped(logged("a")), nil, "row of decision-logs/3/120"},
		"no row":                        {logged("z"), nil, ""},
		"a row of another payload":      {logged("c"), nil, ""},
		"not one decision":              {"rubbish", nil, ""},
		"nothing":                       {"", nil, ""},
		"a decision that does not read": {bad, nil, ""},
		"two rows":                      {logged("a") + "\n" + logged("b"), nil, "all of 2 decisions are rows, the first of decision-logs/3/120"},
		"one of two":                    {logged("a") + "\n" + logged("z"), nil, ""},
		"one and a child":               {logged("a") + "\n" + logged("z"), []int{1}, "1 of 2 decisions are rows, 1 is a dead letter of its own"},
		"one and another's child":       {logged("a") + "\n" + logged("z"), []int{0}, ""},
		"one and a bad child":           {logged("a") + "\n" + bad, []int{1}, "1 of 2 decisions are rows, 1 is a dead letter of its own"},
		"one and a bad one to come":     {logged("a") + "\n" + bad, nil, ""},
		"children alone":                {logged("y") + "\n" + logged("z"), []int{0, 1}, "0 of 2 decisions are rows, 2 are dead letters of their own"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				e := newEnds()
				e.await(test.value, test.children...)
				watching(t, e, table, time.Second)
				if e.stored[1] != test.want {
					t.Errorf("stored as %q, want %q", e.stored[1], test.want)
				}
			})
		})
	}
}

func TestWatcher_LookupInPortions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		table := rows{}
		value := ""
		for i := range 2*lookupBatch + 1 {
			id := fmt.Sprint("d", i)
			table[id] = logged(id)
			value += logged(id) + "\n"
		}
		e := newEnds()
		e.await(value)
		last := fmt.Sprint("d", 2*lookupBatch)
		delete(table, last)
		watching(t, e, table, time.Second)
		if len(e.stored) != 0 {
			t.Errorf("stored as %q, and the last has no row", e.stored[1])
		}
		table[last] = logged(last)
		watching(t, e, table, time.Minute)
		if want := "all of 2001 decisions are rows, the first of decision-logs/3/120"; e.stored[1] != want {
			t.Errorf("stored as %q", e.stored[1])
		}
	})
}

// weighed is a Table that notes how many bytes it was asked about at a time.
type weighed struct {
	rows
	most int
}

func (w *weighed) Lookup(ctx context.Context, sought []Sought) ([]Found, error) {
	bytes := 0
	for _, s := range sought {
		bytes += len(s.Raw)
	}
	w.most = max(w.most, bytes)
	return w.rows.Lookup(ctx, sought)
}

func TestWatcher_LargeDecisions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const large, many = 1 << 19, 100 // some 50 MiB in all
		table := &weighed{rows: rows{}}
		e := newEnds()
		for i := range many {
			id := fmt.Sprint("d", i)
			value := `{"decision_id":"` + id + `","timestamp":"2026-01-02T03:04:05Z","input":"` + strings.Repeat("x", large) + `"}`
			table.rows[id] = value
			e.await(value)
		}
		watching(t, e, table, time.Second)
		if len(e.stored) != many {
			t.Errorf("%d of %d are stored", len(e.stored), many)
		}
		if table.most > watchBytes+2*large {
			t.Errorf("%d bytes at a time", table.most)
		}
	})
}

func TestWatcher_PausesDouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds()
		e.await(logged("z"))
		watching(t, e, rows{}, 5*time.Minute)
		got := e.looks[1]
		if len(got) < 10 || !slices.Equal(got[:4], []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second}) ||
			got[len(got)-1] != 30*time.Second {
			t.Errorf("pauses %v", got)
		}
	})
}

func TestWatcher_OneFailureStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds()
		for range 3 {
			e.await(logged("a"))
		}
		e.refuse = func(ids []int64) error {
			if slices.Contains(ids, 2) {
				return sqlError("23514")
			}
			return nil
		}
		watching(t, e, rows{"a": logged("a")}, time.Second)
		if e.stored[1] == "" || e.stored[2] != "" || e.stored[3] == "" {
			t.Errorf("stored %v", e.stored)
		}
	})
}

func TestWatcher_AfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds()
		e.await(logged("a"))
		e.fail = func(asked int) error {
			if asked < 20 {
				return sqlError("57P03")
			}
			return nil
		}
		watching(t, e, rows{"a": logged("a")}, 5*time.Minute)
		if e.asked < 20 || e.stored[1] == "" {
			t.Errorf("asked %d times, stored %v", e.asked, e.stored)
		}
		e = newEnds()
		e.fail = func(int) error { return sqlError("57P03") }
		watching(t, e, rows{}, time.Hour)
		if e.asked > 400 {
			t.Errorf("asked %d times in an hour", e.asked)
		}
	})
}

// places is a table that returns the place of each row, by its number in it. It counts its lookups.
type places struct {
	rows  []string
	asked int
}

func (p *places) Lookup(_ context.Context, sought []Sought) (found []Found, err error) {
	p.asked++
	for i, s := range sought {
		if at := slices.Index(p.rows, s.ID); at >= 0 {
			found = append(found, Found{N: i, Topic: "decision-logs", Offset: int64(at), Equal: true})
		}
	}
	return found, nil
}

func TestWatcher_ManyRetriesTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := newEnds()
		table := &places{}
		for i := range 150 {
			id := fmt.Sprint("d", i)
			value := logged(id)
			if i%10 == 3 {
				value += "\n" + logged(id+"-second")
			}
			e.await(value)
			if i%7 != 0 {
				table.rows = append(table.rows, id)
			}
			if i%20 == 3 {
				table.rows = append(table.rows, id+"-second")
			}
		}
		watching(t, e, table, 100*time.Millisecond)
		if table.asked != 1 {
			t.Errorf("the table was asked %d times", table.asked)
		}
		for i := range 150 {
			id, want := fmt.Sprint("d", i), ""
			switch at := slices.Index(table.rows, id); {
			case i%7 == 0, i%10 == 3 && i%20 != 3:
			case i%10 == 3:
				want = fmt.Sprintf("all of 2 decisions are rows, the first of decision-logs/0/%d", at)
			default:
				want = fmt.Sprintf("row of decision-logs/0/%d", at)
			}
			if got := e.stored[int64(i+1)]; got != want {
				t.Errorf("%s: stored as %q, want %q", id, got, want)
			}
		}
	})
}
