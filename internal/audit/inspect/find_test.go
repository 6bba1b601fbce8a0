package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/history/lookup"
	"docket/internal/history/reader"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
	"docket/internal/service/config"
)

func TestParseQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Query{
		"logs/3/120":   {Place: verify.Place{Topic: "logs", Partition: 3, Offset: 120, Index: envelope.NoIndex}},
		"logs/3/120/2": {Place: verify.Place{Topic: "logs", Partition: 3, Offset: 120, Index: 2}},
		"8f-1":         {ID: "8f-1"}, "a/b": {ID: "a/b"}, "a/b/c": {ID: "a/b/c"}, "a/1/x": {ID: "a/1/x"}, "a/1/2/x": {ID: "a/1/2/x"}, "a/-1/2": {ID: "a/-1/2"},
		"a/1/-2": {ID: "a/1/-2"}, "a/1/2/-1": {ID: "a/1/2/-1"}, "a/1/2/3/4": {ID: "a/1/2/3/4"}, "a/99999999999/1": {ID: "a/99999999999/1"},
	} {
		want.Text = text
		if got := ParseQuery(text); got != want {
			t.Errorf("%s reads as %+v", text, got)
		}
	}
}

// TestArchived_OfARecord: a committed decision of a record that has no other home is searched by its id, and only such a
// one. Another place, another time or another payload says that it is another decision.
func TestArchived_OfARecord(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(index int) verify.Place {
		return verify.Place{Topic: "logs", Partition: 3, Offset: 120, Index: index}
	}
	origin := func(p verify.Place) envelope.Origin {
		return envelope.Origin{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Index: p.Index}
	}
	archived := func(p verify.Place, ts time.Time, raw string) lookup.Answer {
		return lookup.Answer{Archived: []reader.Decision{{Row: reader.Row{Time: ts, Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Index: p.Index, Archived: &reader.ArchivedIn{File: "part-1"}}, Raw: []byte(raw)}}}
	}
	elsewhere := verify.Place{Topic: "logs", Offset: 9}
	unreadable := archived(elsewhere, noon, "")
	unreadable.Archived[0].Unreadable = true
	parked := func(settled bool) []Forwarded {
		return []Forwarded{{Forwarded: verify.Forwarded{Home: home.Parked, Settled: settled}}}
	}
	found := map[string]lookup.Answer{
		"has archived":             archived(at(2), noon, `{"masked":true}`),
		"has archived duplicate":   archived(elsewhere, noon, `{"a": 1}`),
		"has archived letter":      {Found: []lookup.Found{{Where: lookup.Archived, Name: "letters", Origin: origin(at(4))}}},
		"has unreadable duplicate": unreadable,
		"of another time":          archived(elsewhere, noon.Add(time.Hour), `{"a":1}`),
		"of another payload":       archived(elsewhere, noon, `{"a":2}`),
		"unread elsewhere":         {Found: []lookup.Found{{Where: lookup.Unread, Name: "logs", Origin: origin(at(7))}}},
		"letter of the ledger":     {Letters: []ledger.Entry{{Letter: ledger.Letter{ID: "l", Origin: origin(at(8)), Found: ledger.Found{Topic: "dlq"}}, State: ledger.Pending}}},
		"letter of another":        {Letters: []ledger.Entry{{Letter: ledger.Letter{ID: "l", Origin: origin(elsewhere)}}}},
	}
	all := []Decision{
		{ID: "stored", Rows: []Row{{Equal: true}}}, {ID: "parked", Forwarded: parked(false)}, {ID: "has archived"}, {ID: "has archived duplicate"}, {ID: "has archived letter"},
		{ID: "of another time"}, {ID: "of another payload"}, {ID: "unread elsewhere"}, {ID: "letter of the ledger"}, {ID: "letter of another"}, {ID: "parked once", Forwarded: parked(true)}, {},
		{ID: "has unreadable duplicate"},
	}
	for i := range all {
		all[i].Place, all[i].Time, all[i].body = at(i), noon, []byte(`{"a":1}`)
	}
	var sought []string
	s := &System{elsewhere: func(_ context.Context, id string) (lookup.Answer, error) {
		sought = append(sought, id)
		a := found[id]
		a.ID, a.Looked = id, []lookup.Searched{{Name: "there"}}
		return a, nil
	}}
	w := &Whereabouts{Records: []Record{{Place: at(0), Committed: 121, Decisions: all}}}
	if err := s.archived(t.Context(), w, Query{Place: at(0)}); err != nil {
		t.Fatal(err)
	}
	if n := len(all) - 3; len(sought) != n || slices.Contains(sought, "stored") || slices.Contains(sought, "parked") || !slices.Equal(w.Looked, []string{"there"}) || len(w.Found) != 0 {
		t.Errorf("searched for %q in %q, found %v", sought, w.Looked, w.Found)
	}
	for _, d := range w.Records[0].Decisions {
		if has := strings.HasPrefix(d.ID, "has "); len(d.Elsewhere) == 1 != has || has && !w.Tells(&d.Elsewhere[0]) {
			t.Errorf("%s: %+v", d.ID, d.Elsewhere)
		}
		if letter := d.ID == "letter of the ledger"; letter != slices.ContainsFunc(d.Forwarded, func(f Forwarded) bool { return f.Letter != nil && f.Letter.State == ledger.Pending }) {
			t.Errorf("%s: %+v", d.ID, d.Forwarded)
		}
		if conflict := d.ID == "of another payload"; conflict != slices.ContainsFunc(d.Rows, func(r Row) bool { return !r.Equal }) {
			t.Errorf("%s: %+v", d.ID, d.Rows)
		}
	}
}

func TestArchived_Searches(t *testing.T) {
	t.Parallel()
	at := verify.Place{Topic: "logs", Partition: 3, Offset: 120}
	var sought []string
	var fault error
	s := &System{elsewhere: func(_ context.Context, id string) (lookup.Answer, error) {
		sought = append(sought, id)
		return lookup.Answer{}, fault
	}}
	some := func(n int) []Decision {
		var all []Decision
		for i := range n {
			all = append(all, Decision{ID: fmt.Sprint(i), Place: at})
		}
		return all
	}
	for name, r := range map[string]Record{"not read yet": {Place: at, Committed: 120, Decisions: some(1)}, "not written yet": {Place: at, Committed: 121, Ahead: true, Decisions: some(1)}} {
		if err := s.archived(t.Context(), &Whereabouts{Records: []Record{r}}, Query{Place: at}); err != nil || sought != nil {
			t.Errorf("%s: searched for %q, %v", name, sought, err)
		}
	}
	many := &Whereabouts{Records: []Record{{Place: at, Committed: 121, Decisions: some(mostSought + 3)}}}
	if err := s.archived(t.Context(), many, Query{Place: at}); err != nil || len(sought) != mostSought {
		t.Errorf("searched for %q, %v", sought, err)
	}
	for i, d := range many.Records[0].Decisions {
		if d.Unsought != (i >= mostSought) {
			t.Errorf("decision %d: not searched for: %v", i, d.Unsought)
		}
	}
	fault = errors.New("away")
	failed := &Whereabouts{Records: []Record{{Place: at, Committed: 121, Decisions: some(1)}}}
	if err := s.archived(t.Context(), failed, Query{Place: at}); err != nil || len(failed.Unlooked) != 1 || !failed.Records[0].Decisions[0].Unsought {
		t.Errorf("%v, %+v", err, failed)
	}
	// By id everything is known before.
	sought = nil
	byID := &Whereabouts{
		Records: []Record{{Place: at, Committed: 121, Decisions: some(1)}},
		by:      &lookup.Answer{Found: []lookup.Found{{Where: lookup.Archived, Name: "letters", Origin: envelope.Origin{Topic: "logs", Partition: 3, Offset: 120}}}},
	}
	if err := s.archived(t.Context(), byID, Query{ID: "0"}); err != nil || sought != nil || len(byID.Records[0].Decisions[0].Elsewhere) != 1 {
		t.Errorf("searched for %q, %v; %+v", sought, err, byID.Records[0].Decisions)
	}
}

// TestDecisions_OfARecordRefusedAsAWhole: an earlier release refused a record whose first line begins with a bracket. Its one dead
// letter is the home of each line that is read today.
func TestDecisions_OfARecordRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	read := &kgo.Record{Topic: "logs", Partition: 3, Offset: 120, Value: []byte("[2026] starting\n{\"decision_id\":\"a\"}\n{\"decision_id\":\"b\"}")}
	e := envelope.Open(read)
	letter := e.Seal(envelope.Cause{Kind: envelope.Decode, Code: "syntax"}, envelope.Sealed{Topic: "dlq", Index: envelope.NoIndex, Value: read.Value})
	s := &System{settings: config.Settings{MaxRecordBytes: 1 << 20}}
	r := Record{Place: verify.Place{Topic: "logs", Partition: 3, Offset: 120}}
	if err := s.decisions(t.Context(), &r, read, &verify.Evidence{Forwarded: verify.AllForwardedOf(letter, home.DeadLetter, "dlq")}); err != nil {
		t.Fatal(err)
	}
	if len(r.Decisions) != 3 {
		t.Fatalf("%d decisions", len(r.Decisions))
	}
	for i := range r.Decisions {
		if !r.Decisions[i].housed() {
			t.Errorf("decision %d has no home", i)
		}
	}
}

// A decision of an array that is refused as a whole has its id there.
func TestClaimed(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"decision_id":"d-1","path":7}`:                     true,
		`[{"decision_id":"a"},7,{"decision_id":"d-1","p":t}`: true,
		`[{"decision_id":"a"},{"x":{"decision_id":"d-1"}}`:   false,
		`[`: false, ``: false,
	} {
		if claimed([]byte(body), "d-1", 1<<20) != want {
			t.Errorf("%s claims it: %v", body, !want)
		}
	}
}
