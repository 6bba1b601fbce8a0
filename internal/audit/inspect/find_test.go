package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/verify"
	"docket/internal/history/lookup"
	"docket/internal/record/envelope"
	"docket/internal/record/home"
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
// one. Another place or another time says that it is another decision.
func TestArchived_OfARecord(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at := func(index int) verify.Place {
		return verify.Place{Topic: "logs", Partition: 3, Offset: 120, Index: index}
	}
	origin := func(p verify.Place) envelope.Origin {
		return envelope.Origin{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Index: p.Index}
	}
	parked := func(settled bool) []Forwarded {
		return []Forwarded{{Forwarded: verify.Forwarded{Home: home.Parked, Settled: settled}}}
	}
	found := map[string][]lookup.Found{
		"archived":           {{Where: lookup.InArchive, Name: "part-1", Time: noon, Origin: origin(at(2))}},
		"archived duplicate": {{Where: lookup.InArchive, Name: "part-2", Time: noon, Origin: origin(verify.Place{Topic: "logs", Offset: 9})}},
		"archived letter":    {{Where: lookup.Archived, Name: "letters", Origin: origin(at(4))}},
		"of another":         {{Where: lookup.InArchive, Name: "part-3", Time: noon.Add(time.Hour), Origin: origin(verify.Place{Topic: "logs", Offset: 9})}},
		"unread elsewhere":   {{Where: lookup.Unread, Name: "logs", Origin: origin(at(6))}},
	}
	all := []Decision{
		{ID: "stored", Rows: []Row{{Equal: true}}}, {ID: "parked", Forwarded: parked(false)}, {ID: "archived"}, {ID: "archived duplicate"}, {ID: "archived letter"},
		{ID: "of another"}, {ID: "unread elsewhere"}, {ID: "parked once", Forwarded: parked(true)}, {},
	}
	for i := range all {
		all[i].Place, all[i].Time = at(i), noon
	}
	var sought []string
	s := &System{elsewhere: func(_ context.Context, id string) (lookup.Answer, error) {
		sought = append(sought, id)
		return lookup.Answer{ID: id, Found: found[id]}, nil
	}}
	w := &Whereabouts{Records: []Record{{Place: at(0), Committed: 121, Decisions: all}}}
	if err := s.archived(t.Context(), w, Query{Place: at(0)}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"archived", "archived duplicate", "archived letter", "of another", "unread elsewhere", "parked once"}; !slices.Equal(sought, want) {
		t.Errorf("searched for %q", sought)
	}
	for _, d := range w.Records[0].Decisions {
		if has := strings.HasPrefix(d.ID, "archived"); len(d.Elsewhere) == 1 != has || has && !w.Tells(&d.Elsewhere[0]) {
			t.Errorf("%s: %+v", d.ID, d.Elsewhere)
		}
	}
	sought = nil
	for _, r := range []Record{{Place: at(0), Committed: 120, Decisions: all[2:3]}, {Place: at(0), Ahead: true, Decisions: all[2:3]}} {
		if err := s.archived(t.Context(), &Whereabouts{Records: []Record{r}}, Query{Place: at(0)}); err != nil || sought != nil {
			t.Errorf("searched for %q, %v", sought, err)
		}
	}
	many := &Whereabouts{Records: []Record{{Place: at(0), Committed: 121}}}
	for i := range mostSought + 3 {
		many.Records[0].Decisions = append(many.Records[0].Decisions, Decision{ID: fmt.Sprint(i), Place: at(i)})
	}
	if err := s.archived(t.Context(), many, Query{Place: at(0)}); err != nil || len(sought) != mostSought || len(many.Unlooked) != 1 || !strings.Contains(many.Unlooked[0], "for 3 more decisions") {
		t.Errorf("searched for %q, %v; %q", sought, err, many.Unlooked)
	}
	// By id everything is known before.
	sought, all[2].Elsewhere = nil, nil
	byID := &Whereabouts{Records: []Record{{Place: at(0), Committed: 121, Decisions: all[2:3]}}, Found: found["archived"]}
	if err := s.archived(t.Context(), byID, Query{ID: "archived"}); err != nil || sought != nil || len(byID.Records[0].Decisions[0].Elsewhere) != 1 {
		t.Errorf("searched for %q, %v; %+v", sought, err, byID.Records[0].Decisions)
	}
}
