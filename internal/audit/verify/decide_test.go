package verify

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/record/home"
)

func TestDecide_MissingEvidence(t *testing.T) {
	t.Parallel()
	r := Decide(&Evidence{}, nil, nil)
	for _, v := range r.Results {
		if v.State != Undecided || v.Note == "" || !strings.Contains(v.String(), v.Note) {
			t.Errorf("%v", v)
		}
	}
	if len(r.Results) != 19 || r.Err() != nil {
		t.Errorf("%d results, %v", len(r.Results), r.Err())
	}
	w := perfect()
	w.ev.Settled, w.hist = false, nil
	r = w.decide()
	for _, id := range []string{"I6", "I7", "I9", "I11", "I12", "I13", "I14", "I18", "I19"} {
		if v := r.Of(id); v.State != Undecided {
			t.Errorf("%v", v)
		}
	}
}

func TestNoLoss_NotCommitted(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.ev.Settled, w.ev.Committed[in(1)] = false, 3
	w.dropRow(1, 3)
	if v := w.decide().Of("I1"); v.State != Held {
		t.Errorf("%v", v)
	}
	w.ev.Committed[in(1)] = 4
	if v := w.decide().Of("I1"); v.State != Broken {
		t.Errorf("%v", v)
	}
}

// TestNoLoss_ForgottenDay: decisions of a day that was given up on purpose are left out, and the others are not.
func TestNoLoss_ForgottenDay(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.dropRow(1, 3)
	w.ev.Forgotten = []Place{{source, 1, 3, 0}}
	if v := w.decide().Of("I1"); v.State != Held || !strings.Contains(v.Note, "forgotten on purpose") {
		t.Errorf("%v", v)
	}
	w.ev.Forgotten[0].Offset++
	if v := w.decide().Of("I1"); v.State != Broken {
		t.Errorf("%v", v)
	}
}

// TestStandby_LackIsNoProof: the lack of a decision on a standby decides nothing, and a decision that is there does.
func TestStandby_LackIsNoProof(t *testing.T) {
	t.Parallel()
	for invariant, spoil := range map[string]func(*world){
		"I1": func(w *world) { w.dropRow(1, 3) },
		"I5": func(w *world) {
			w.dropRow(1, 3)
			w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "id_conflict")
		},
		"I7": func(w *world) {
			w.dropRow(1, 16)
			w.forward(Place{source, 1, 16, 0}, home.Parked, parking, "network").Settled = true
		},
		"I16": func(w *world) {
			w.entered()
			w.ev.Books.Missing = []Missing{{Topic: dlq, ID: "a"}}
		},
	} {
		w := perfect()
		w.ev.Standby = true
		if v := w.decide().Of(invariant); v.State == Broken || strings.Contains(v.Note, "standby") {
			t.Errorf("nothing lacks: %v", v)
		}
		spoil(w)
		if v := w.decide().Of(invariant); v.State != Undecided || !strings.Contains(v.Note, "1 that the table or the ledger of a standby lacks") {
			t.Errorf("a standby: %v", v)
		}
		w.ev.Standby = false
		if v := w.decide().Of(invariant); v.State != Broken {
			t.Errorf("a primary: %v", v)
		}
	}
	w := perfect()
	w.ev.Standby = true
	w.ev.Rows[w.row(1, 3)].Raw = []byte(`{"other":true}`)
	if v := w.decide().Of("I3"); v.State != Broken {
		t.Errorf("a row that the standby has: %v", v)
	}
}

func TestNoLoss_WaitingHasAHome(t *testing.T) {
	t.Parallel()
	for _, h := range []home.Home{home.Parked, home.Spooled} {
		w := perfect()
		w.ev.Settled = false
		w.dropRow(1, 16)
		w.forward(Place{source, 1, 16, 0}, h, parking, "network").Settled = false
		r := w.decide()
		if r.Err() != nil || r.Homes[h] != 1 {
			t.Errorf("%v: %v, %v", h, r.Homes, r.Err())
		}
	}
}

func TestOneRow_CopiesInOneHome(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.ev.Forwarded = append(w.ev.Forwarded, w.ev.Forwarded...)
	if err := w.decide().Err(); err != nil {
		t.Error(err)
	}
}

func TestHistory_ExcusingFaults(t *testing.T) {
	t.Parallel()
	w := perfect()
	breaches["I13"]["a refused commit"].spoil(w)
	w.hist.Faults = append(w.hist.Faults, Fault{Kind: FaultNetwork})
	if v := w.decide().Of("I13"); v.State != Held || !strings.Contains(v.Note, "network") {
		t.Errorf("%v", v)
	}
	w = perfect()
	breaches["I10"]["parked in another order"].spoil(w)
	w.hist.Faults = append(w.hist.Faults, Fault{Kind: FaultStop})
	if v := w.decide().Of("I10"); v.State != Held || v.Note == "" {
		t.Errorf("%v", v)
	}
}

func TestOrder_SpooledMayBeParkedLate(t *testing.T) {
	t.Parallel()
	w := perfect()
	breaches["I10"]["parked in another order"].spoil(w)
	w.in(home.Parked, 1, 11).Stamp = noon.Add(time.Hour)
	if v := w.decide().Of("I10"); v.State != Held {
		t.Errorf("%v", v)
	}
}

func TestOrder_ParkedAgainMayComeLate(t *testing.T) {
	t.Parallel()
	w := perfect()
	breaches["I10"]["parked in another order"].spoil(w)
	late := *w.in(home.Parked, 1, 11)
	late.At.Partition, late.At.Offset = 1, 99
	late.FailedAt = late.FailedAt.Add(-time.Second)
	late.Stamp = late.FailedAt
	w.ev.Forwarded = append(w.ev.Forwarded, late)
	if v := w.decide().Of("I10"); v.State != Held {
		t.Errorf("%v", v)
	}
}

func TestOrder_StoredBeforeMayBeParkedLate(t *testing.T) {
	t.Parallel()
	w := perfect()
	breaches["I10"]["parked in another order"].spoil(w)
	late := w.in(home.Parked, 1, 11)
	row := &w.ev.Rows[w.row(1, 11)]
	if row.StoredAt = late.FailedAt.Add(time.Second); w.decide().Of("I10").State != Broken {
		t.Error("it was parked first, and out of order")
	}
	if row.StoredAt = late.FailedAt.Add(-time.Second); w.decide().Of("I10").State != Held {
		t.Errorf("%v", w.decide().Of("I10"))
	}
}

func TestCommits_AnotherLogMayBeLower(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.hist.Commits[3].Offset, w.hist.Commits[3].TopicID = 1, "made anew"
	if v := w.decide().Of("I8"); v.State != Held {
		t.Errorf("%v", v)
	}
}

func TestCommits_LostOrRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []Outcome{Unknown, Failed} {
		w := perfect()
		w.hist.Commits[1].Offset, w.hist.Commits[1].Outcome = 15, o
		if v := w.decide().Of("I8"); v.State != Held {
			t.Errorf("%v: %v", o, v)
		}
	}
}

func TestDeadLetters_RepairedTableWarns(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"it would be stored", "a conflict with no row", "the decoder takes it now", "a higher limit takes it"} {
		w := perfect()
		w.ev.Live = true
		breaches["I5"][name].spoil(w)
		r := Decide(w.ev, w.truth, nil)
		if v := r.Of("I5"); v.State != Warned || v.Findings != 1 || len(v.Found[0].History) == 0 {
			t.Errorf("%s: %v", name, v)
		}
		if r.Err() != nil && name == "it would be stored" {
			t.Errorf("a warning ends with %v", r.Err())
		}
	}
}

func TestDeadLetters_NotTried(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.truth.KnowsTable = false
	w.dropRow(1, 3)
	f := w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "23514")
	if v := w.decide().Of("I5"); v.State != Undecided || v.Note != "1 that the table refused were not tried" {
		t.Errorf("%v", v)
	}
	w.ev.Tried = map[string]Trial{f.ID: {Code: "23514", Class: "data"}}
	if v := w.decide().Of("I5"); v.State != Held {
		t.Errorf("%v", v)
	}
	w.ev.Tried = map[string]Trial{f.ID: {Code: "57P01", Class: "transient"}}
	if v := w.decide().Of("I5"); v.State != Undecided {
		t.Errorf("the word of a dying connection: %v", v)
	}
}

// part is the world of one partition.
func (w *world) part(p int32) (*Evidence, *Truth) {
	t := NewTruth()
	t.KnowsTable, t.Spans = true, map[Partition]Span{in(p): {0, 20}}
	for at := range w.truth.byPlace {
		if at.Partition == p && at.Index == 0 {
			var ds []Decision
			for i := range w.truth.many[at] {
				at.Index = i
				ds = append(ds, *w.truth.byPlace[at])
			}
			t.Add(ds...)
		}
	}
	ev := *w.ev
	ev.AllRows = false
	ev.Forwarded = slices.DeleteFunc(slices.Clone(ev.Forwarded), func(f Forwarded) bool { return f.Partition != p })
	ev.Rows = slices.DeleteFunc(slices.Clone(ev.Rows), func(r Row) bool { return r.Partition != p })
	return &ev, t
}

func TestMerge_PartsEqualTheWhole(t *testing.T) {
	t.Parallel()
	for _, b := range []breach{{spoil: func(*world) {}}, breaches["I1"]["a row that is gone"], breaches["I6"]["a bad one with a row"], breaches["I7"]["not read to the end"], breaches["I17"]["half a file"], breaches["I4"]["a record that does not say where it was read"]} {
		w := perfect()
		b.spoil(w)
		w.hist.Reference = nil
		whole := w.decide()
		sum := Decide(w.ev, nil, w.hist)
		for p := range int32(2) {
			ev, truth := w.part(p)
			ev.Forwarded = slices.DeleteFunc(ev.Forwarded, func(f Forwarded) bool { return f.NoOrigin })
			sum.Merge(DecidePart(ev, truth))
		}
		for i, v := range sum.Results {
			if v.State != whole.Results[i].State || v.Findings != whole.Results[i].Findings {
				t.Errorf("%s:\nparts %v\nwhole %v", b.says, v, whole.Results[i])
			}
		}
		if (sum.Err() == nil) != (whole.Err() == nil) || !maps.Equal(sum.Homes, whole.Homes) || sum.Decisions != whole.Decisions {
			t.Errorf("%s: parts %v %v, whole %v %v", b.says, sum.Homes, sum.Err(), whole.Homes, whole.Err())
		}
	}
}

func TestMerge_UndecidedPart(t *testing.T) {
	t.Parallel()
	held := Result{Invariant: "I5", State: Held, Checked: 3}
	open := Result{Invariant: "I5", State: Undecided, Checked: 1, Note: "x"}
	none := Result{Invariant: "I5", State: Undecided, Note: "y"}
	broken := Result{Invariant: "I5", State: Broken, Checked: 1, Findings: 1, Found: []Finding{{What: "w"}}}
	for _, c := range []struct {
		a, b Result
		want State
		note string
	}{{held, open, Undecided, "x"}, {open, held, Undecided, "x"}, {none, held, Held, ""}, {held, none, Held, ""}, {broken, open, Broken, "x"}, {held, broken, Broken, ""}} {
		v := c.a.merge(c.b)
		if v.State != c.want || v.Note != c.note || v.Checked != c.a.Checked+c.b.Checked {
			t.Errorf("%v and %v make %v", c.a, c.b, v)
		}
	}
}

func TestSameJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[1,2]}`, `{ "b":[1.0,2e0],"a":1 }`, true}, {`{"a":1}`, `{"a":2}`, false}, {`[1,2]`, `[2,1]`, false},
		{`{"a":1,"a":2}`, `{"a":2}`, true}, {`{"a":null}`, `{}`, false}, {`"1"`, `1`, false}, {`1e400`, `10e399`, true}, {`{`, `{`, true}, {`{`, `{}`, false},
		{`{"a":1}`, `{"b":1}`, false}, {`true`, `"true"`, false}, {`[]`, `{}`, false}, {`[1]`, `[1,1]`, false},
	} {
		if got := SameJSON([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestParseMetrics(t *testing.T) {
	t.Parallel()
	m := ParseMetrics("# HELP x y\nx{a=\"b c\"} 1.5e3\n\ndocket_unaccounted_records 0\nbroken\n")
	if len(m) != 2 || m[`x{a="b c"}`] != 1500 {
		t.Errorf("%v", m)
	}
}

func TestTruth_RefusesARepeatedRecord(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	w := perfect()
	w.truth.Add(Decision{Place: Place{source, 0, 0, 0}})
}

func TestSummary_ErrorHasTheFirstHistory(t *testing.T) {
	t.Parallel()
	w := perfect()
	w.dropRow(1, 12)
	err := w.decide().Err()
	for _, part := range []string{"parked in parking/0/", "done with by the replayer", "no row has its identity", "logs/1 is committed up to 20"} {
		if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
}
