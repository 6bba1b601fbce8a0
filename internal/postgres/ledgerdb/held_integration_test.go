//go:build integration

package ledgerdb_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/envelope"
	"docket/internal/testkit/pgtest"
)

// resting is a dead letter that refused decisions of one upload share.
func resting(offset int64, value string, held ...ledger.Held) ledger.Letter {
	l := letter(offset, value)
	l.Origin.Index, l.Path, l.DecisionID, l.DecisionTime = envelope.NoIndex, "", "", time.Time{}
	l.ID = envelope.ID(l.Origin, l.Value)
	l.Refused, l.Held = 1+bytes.Count(l.Value, []byte(",")), held
	return l
}

func TestHeld_EachIsFoundByItsID(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	at, long := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), strings.Repeat("long", 5000)
	a := resting(1, "[\n1,2,3,4]", ledger.Held{Place: 1, ID: "x", Time: at}, ledger.Held{Place: 3, ID: long}, ledger.Held{Place: 4, ID: "x"})
	b := resting(2, "[\n5,6]", ledger.Held{Place: 2, ID: "nul\x00"})
	alone := letter(3, "7")
	alone.DecisionID, alone.DecisionTime = "x", at
	none := resting(4, "[\n8,9]")
	for range 2 { // entering them again changes nothing
		d.Entered(a, b, alone, none)
	}
	for id, want := range map[string]string{"x": "1 3 4", long: "3", "nul\x00": "2", "none": ""} {
		found, err := d.Claims(t.Context(), id, 10)
		if err != nil {
			t.Fatal(err)
		}
		var places []string
		for _, e := range found {
			if e.DecisionID == "" || e.ID == alone.ID && e.Origin.Index != alone.Origin.Index {
				t.Errorf("%.10s: %+v", id, e)
			}
			place := e.Origin.Index
			if e.ID == alone.ID {
				place = 3
			}
			places = append(places, fmt.Sprint(place))
			if timed := !e.DecisionTime.IsZero(); timed != (id == "x" && (place == 1 || place == 3)) || timed && !e.DecisionTime.Equal(at) {
				t.Errorf("%.10s at %d: time %v", id, place, e.DecisionTime)
			}
		}
		for _, p := range strings.Fields(want) {
			if !strings.Contains(" "+strings.Join(places, " ")+" ", " "+p+" ") {
				t.Errorf("%.10s is at %v, want %s", id, places, want)
			}
		}
		if len(places) != len(strings.Fields(want)) {
			t.Errorf("%.10s is at %v, want %s", id, places, want)
		}
	}
	if found, err := d.Claims(t.Context(), "x", 2); err != nil || len(found) != 2 {
		t.Errorf("at most two are %d, %v", len(found), err)
	}
	same(t, d.Text(`SELECT string_agg(refused::text, ' ' ORDER BY refused DESC) FROM dead_letter_decisions`), "4 2 2")
	d.Sums()
}

// An array that the decoder refuses has several decisions without being a rest. It tells of each as well.
func TestHeld_OfALetterThatIsNoRest(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := resting(1, "[\n1,2,3", ledger.Held{Place: 0, ID: "x"}, ledger.Held{Place: 2, ID: "y"})
	l.Refused = 0
	d.Entered(l)
	for id, place := range map[string]int{"x": 0, "y": 2} {
		if found, err := d.Claims(t.Context(), id, 2); err != nil || len(found) != 1 || found[0].ID != l.ID || found[0].Origin.Index != place {
			t.Errorf("%s: %+v, %v", id, found, err)
		}
	}
	same(t, d.Text(`SELECT refused::text FROM dead_letter_decisions`), "1") // one dead letter, as the record was refused as a whole
	d.Sums()
}

// The decisions of a letter from an earlier release are found once the record is seen again, as after a rebalance.
func TestHeld_OfALetterThatWasThere(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	l := resting(1, "[\n1,2]", ledger.Held{Place: 1, ID: "x"})
	before := l
	before.Refused, before.Held = 0, nil
	d.Entered(before)
	d.Entered(l)
	if found, err := d.Claims(t.Context(), "x", 2); err != nil || len(found) != 1 || found[0].ID != l.ID {
		t.Errorf("%+v, %v", found, err)
	}
}

// A rest that was put back is resolved once each of its decisions has a row or a letter, of which one may hold several.
func TestHeld_OfARetriedRest(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	whole := resting(1, "[\n1,2,3,4]")
	d.Entered(whole)
	s := d.Put(whole.ID, 500)
	alone := part(s, 500, 0, "1")
	rest := part(s, 500, envelope.NoIndex, "[\n2,3,4]")
	rest.Refused = 3
	forged := part(s, 500, envelope.NoIndex, "[\n2,3,5]")
	forged.Refused = 3
	d.Entered(forged)
	same(t, d.Text(`SELECT coalesce(children::text, '') FROM dead_letter_outbox`), "{}")
	d.Entered(alone, rest)
	same(t, d.Text(`SELECT children::text FROM dead_letter_outbox`), "{0,1,2,3}")
	same(t, d.Text(`SELECT string_agg(parent_id, ' ') FROM dead_letters WHERE parent_id IS NOT NULL`), whole.ID+" "+whole.ID)
	d.Sums()
}

// A rest that was edited is retried with its new value. The ids that it came with are still found, as the audit has their decisions.
func TestHeld_OfAnEditedRest(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	whole := resting(1, "[\n1,2,3]", ledger.Held{Place: 2, ID: "x"})
	d.Entered(whole)
	edited := `[{"decision_id":"c","timestamp":"2024-05-01T12:00:00Z"},2]`
	if err := d.Edit(t.Context(), whole.ID, "", []byte(edited), "a diff", time.Minute, ann); err != nil {
		t.Fatal(err)
	}
	sent := d.Claimed("relay", 5)
	if len(sent) != 1 || string(sent[0].Value) != edited {
		t.Fatalf("%+v", sent)
	}
	d.Placed("relay", ledger.Placed{SendingID: sent[0].ID, Partition: 0, Offset: 500})
	d.Entered(part(sent[0], 500, 1, "2"))
	same(t, d.Text(`SELECT children::text FROM dead_letter_outbox`), "{1}")
	if found, err := d.Claims(t.Context(), "x", 2); err != nil || len(found) != 1 || found[0].ID != whole.ID || !found[0].Edited {
		t.Errorf("%+v, %v", found, err)
	}
	same(t, d.Text(`SELECT convert_from(original, 'UTF8') FROM dead_letter_audit WHERE act = 'edited'`), "[\n1,2,3]")
	d.Sums()
}

func TestHeld_ArchivedAndRestored(t *testing.T) {
	t.Parallel()
	d := newLedger(t)
	const text = `SELECT coalesce(string_agg(to_jsonb(h)::text, E'\n' ORDER BY dead_letter_id), '') FROM dead_letter_decisions h`
	l := resting(1, "[\n1,2,3]", ledger.Held{Place: 3, ID: `a"\,{b}`, Time: time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC)}, ledger.Held{Place: 1, ID: "NULL"})
	other := letter(2, `{"a":1}`)
	d.Entered(l, other)
	d.Closed(l, other)
	before := d.Text(text)
	c := d.Carrier(filepath.Join(t.TempDir(), "shelf"))
	if done, err := c.Archive(t.Context(), pgtest.ClosedOn); err != nil || done.Letters != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := d.Removed(); n != 2 || d.Text(text) != "" {
		t.Fatalf("%d were removed, and left %q", n, d.Text(text))
	}
	for range 2 {
		if _, err := c.Restore(t.Context(), pgtest.ClosedOn); err != nil {
			t.Fatal(err)
		}
		same(t, d.Text(text), before)
	}
	if found, err := d.Claims(t.Context(), "NULL", 2); err != nil || len(found) != 1 || found[0].Origin.Index != 1 {
		t.Errorf("%+v, %v", found, err)
	}
}
