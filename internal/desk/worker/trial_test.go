package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"docket/internal/consumer/pipeline"
	"docket/internal/desk/ledger"
	"docket/internal/errclass"
	"docket/internal/record/decision"
	"docket/internal/record/envelope"
)

// refusal is an error of the server.
type refusal struct{ code, constraint, column string }

func (r *refusal) Error() string          { return "refused: " + r.code }
func (r *refusal) SQLState() string       { return r.code }
func (r *refusal) ConstraintName() string { return r.constraint }
func (r *refusal) ColumnName() string     { return r.column }

// askedTable is a table in memory that refuses paths.
type askedTable struct {
	probe   func() error
	rows    map[string]string // by decision_id
	refuses map[string]error  // by path; a fault that blames no row ends the request
	asked   []int             // rows of each asking
}

func (a *askedTable) Probe(context.Context, time.Time) error {
	if a.probe == nil {
		return nil
	}
	return a.probe()
}

func (a *askedTable) Compare(_ context.Context, logs []*decision.Log) ([]pipeline.Outcome, error) {
	outcomes := make([]pipeline.Outcome, len(logs))
	for i, l := range logs {
		if raw, ok := a.rows[l.ID]; ok {
			outcomes[i] = pipeline.Conflicting
			if raw == string(l.Raw) {
				outcomes[i] = pipeline.Present
			}
		}
	}
	return outcomes, nil
}

func (a *askedTable) Refusals(ctx context.Context, rows []pipeline.Row, probe time.Time) ([]error, error) {
	a.asked = append(a.asked, len(rows))
	refused := make([]error, len(rows))
	for i, r := range rows {
		why := a.refuses[r.Log.Path.V]
		if why != nil && errclass.Classify(why).Class != errclass.Data {
			return nil, why
		}
		refused[i] = why
	}
	if err := a.Probe(ctx, probe); err != nil {
		return nil, &pipeline.Unwell{Err: err}
	}
	return refused, nil
}

// lettersOf are letters to be read.
type lettersOf []ledger.Entry

func (l lettersOf) Show(_ context.Context, id string) (ledger.Entry, error) {
	for _, e := range l {
		if e.ID == id {
			return e, nil
		}
	}
	return ledger.Entry{}, ledger.ErrNotFound
}

func (l lettersOf) chosen(f ledger.Filter) (chosen []ledger.Entry) {
	for _, e := range l {
		if slices.Contains(f.States, e.State) {
			chosen = append(chosen, e)
		}
	}
	return chosen
}

func (l lettersOf) Counts(_ context.Context, f ledger.Filter) (map[ledger.State]int64, error) {
	return map[ledger.State]int64{ledger.Pending: int64(len(l.chosen(f)))}, nil
}

func (l lettersOf) Values(_ context.Context, f ledger.Filter, n, limit int, each func([]ledger.Entry) error) error {
	chosen := l.chosen(f)
	if limit > 0 {
		chosen = chosen[:min(limit, len(chosen))]
	}
	for some := range slices.Chunk(chosen, n) {
		if err := each(some); err != nil {
			return err
		}
	}
	return nil
}

func decisionText(id, path, more string) string {
	return fmt.Sprintf(`{"decision_id":%q,"timestamp":"2026-03-01T12:00:00Z","path":%q%s}`, id, path, more)
}

func pending(values ...string) (l lettersOf) {
	for i, v := range values {
		l = append(l, ledger.Entry{Letter: ledger.Letter{ID: fmt.Sprint("letter", i), Value: []byte(v)}, State: ledger.Pending})
	}
	return l
}

func trialOf(t *testing.T, l lettersOf, table *askedTable, portion int) TrialResult {
	t.Helper()
	r, err := NewTrial(TrialConfig{Portion: portion}, l, table).Run(t.Context(), ledger.Filter{}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTrial_EachLetter(t *testing.T) {
	t.Parallel()
	check := &refusal{"23514", "small", ""}
	table := &askedTable{
		rows:    map[string]string{"there": decisionText("there", "ok", ""), "other": decisionText("other", "ok", `,"result":true`)},
		refuses: map[string]error{"bad": check, "worse": &refusal{"22001", "", "path"}},
	}
	l := pending(
		decisionText("a", "ok", ""),
		decisionText("b", "bad", ""),
		decisionText("there", "bad", ""), // its row is there with another payload
		decisionText("there", "ok", ""),
		decisionText("other", "ok", ""),
		`{"half`, "",
		decisionText("c", "ok", "")+"\n"+decisionText("d", "ok", ""),
		decisionText("e", "ok", "")+"\n"+decisionText("f", "worse", ""),
		decisionText("j", "worse", "")+"\n"+decisionText("k", "ok", ""),
		decisionText("there", "ok", "")+"\n"+decisionText("g", "ok", ""),
		decisionText("h", "ok", "")+"\n"+decisionText("other", "ok", ""),
		decisionText("i", "ok", "")+"\n{}\n",
	)
	l = append(l, ledger.Entry{State: ledger.Resolved}, ledger.Entry{State: ledger.Processing})
	want := "3 would be stored, 1 has its row already, 2 still fail with 22001 (column path), 1 still fails with 23514 (constraint small), " +
		"3 still fail with id_conflict (stored with another payload), 1 cannot be read (empty), 1 cannot be read (missing_field), 1 cannot be read (syntax)"
	for _, portion := range []int{1, 3, 100} {
		r := trialOf(t, l, table, portion)
		if r.String() != want || r.Total != 13 || r.Fails() != 9 || r.Would+r.There+r.Fails() != r.Total {
			t.Errorf("in portions of %d: %d of %d fail: %s", portion, r.Fails(), r.Total, r)
		}
	}
}

func TestTrial_FirstOfOneIdentityWins(t *testing.T) {
	t.Parallel()
	table := &askedTable{refuses: map[string]error{"bad": &refusal{"23514", "small", ""}}}
	r := trialOf(t, pending(
		decisionText("a", "bad", ""), // is refused, so the next has the row
		decisionText("a", "ok", `,"result":true`),
		decisionText("a", "ok", ` , "result" : true`),
		decisionText("a", "ok", `,"result":false`),
		decisionText("b", "ok", "")+"\n"+decisionText("b", "ok", ""),
	), table, 100)
	if r.Would != 2 || r.There != 1 || r.Conflict != 1 || r.Fails() != 2 {
		t.Errorf("%s", r)
	}
}

func TestTrial_UnwellTable(t *testing.T) {
	t.Parallel()
	table := &askedTable{probe: func() error { return &refusal{"42501", "", ""} }}
	hint := func(err error) string { return "grant INSERT" }
	r, err := NewTrial(TrialConfig{Hint: hint}, pending(decisionText("a", "ok", "")), table).Run(t.Context(), ledger.Filter{}, 0, nil)
	if err != nil || r.Total != 0 || len(table.asked) != 0 || r.String() != "nothing was tested: the table does not accept a known-good row (42501); grant INSERT" {
		t.Errorf("%v, asked %v: %s", err, table.asked, r)
	}
	// It becomes unwell during the trial.
	probes := 0
	table = &askedTable{probe: func() error {
		if probes++; probes > 3 {
			return &refusal{"23502", "", ""}
		}
		return nil
	}}
	values := make([]string, 10)
	for i := range values {
		values[i] = decisionText(fmt.Sprint(i), "ok", "")
	}
	if r := trialOf(t, pending(values...), table, 2); r.Unwell == nil || r.Unwell.Code != "23502" || r.Total+r.Would != 0 || len(table.asked) != 3 {
		t.Errorf("asked %v: %+v", table.asked, r)
	}
}

func TestTrial_TransientErrorEnds(t *testing.T) {
	t.Parallel()
	lost := errclass.As(errors.New("lost"), errclass.CodeNetwork)
	for name, table := range map[string]*askedTable{
		"probe":                   {probe: func() error { return lost }},
		"refusals":                {refuses: map[string]error{"ok": lost}},
		"no descriptor, probe":    {probe: func() error { return syscall.EMFILE }},
		"no descriptor, refusals": {refuses: map[string]error{"ok": syscall.EMFILE}},
		"deadlock":                {refuses: map[string]error{"ok": &refusal{"40P01", "", ""}}},
	} {
		r, err := NewTrial(TrialConfig{}, pending(decisionText("a", "ok", "")), table).Run(t.Context(), ledger.Filter{}, 0, nil)
		if err == nil || r.Total != 0 {
			t.Errorf("%s: %v, %s", name, err, r)
		}
	}
}

func TestTrial_SystemicFaultOfSomeRows(t *testing.T) {
	t.Parallel()
	var values []string
	for i := range 64 {
		path := "ok"
		if i == 17 || i == 40 {
			path = "broken"
		}
		values = append(values, decisionText(fmt.Sprint(i), path, ""))
	}
	table := &askedTable{refuses: map[string]error{"broken": &refusal{"42703", "", ""}}}
	r := trialOf(t, pending(values...), table, 100)
	if r.String() != "62 would be stored, 2 still fail with 42703" || len(table.asked) > 30 {
		t.Errorf("asked %v: %s", table.asked, r)
	}
}

func TestTrial_IDsAndValue(t *testing.T) {
	t.Parallel()
	table := &askedTable{refuses: map[string]error{"bad": &refusal{"23514", "small", ""}}}
	l := pending(decisionText("a", "ok", ""), decisionText("b", "bad", ""), decisionText("c", "ok", ""))
	trial := NewTrial(TrialConfig{Portion: 2}, l, table)
	var told []string
	r, err := trial.RunIDs(t.Context(), []string{"letter0", "letter1", "letter2"}, func(done, total int64) { told = append(told, fmt.Sprint(done, "/", total)) })
	if err != nil || r.String() != "2 would be stored, 1 still fails with 23514 (constraint small)" || strings.Join(told, " ") != "2/3 3/3" {
		t.Errorf("%v, %v: %s", err, told, r)
	}
	if _, err := trial.RunIDs(t.Context(), []string{"nobody"}, nil); !errors.Is(err, ledger.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if r, err := trial.RunValue(t.Context(), []byte(decisionText("d", "ok", ""))); err != nil || r.String() != "1 would be stored" {
		t.Errorf("%v: %s", err, r)
	}
	if r, err := trial.Run(t.Context(), ledger.Filter{States: []ledger.State{ledger.Resolved}}, 0, nil); err != nil || r.Total != 0 {
		t.Errorf("%v: %s", err, r)
	}
	if r, err := trial.Run(t.Context(), ledger.Filter{}, 2, nil); err != nil || r.Total != 2 {
		t.Errorf("%v: %s", err, r)
	}
}

func TestThousands(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 4812: "4,812", 1234567: "1,234,567", -1: "-1", -100: "-100", -1000: "-1,000"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}

// A shared letter is tried as the record that a retry puts back. It counts once, by the worst of its decisions.
func TestTrial_SharedLetter(t *testing.T) {
	t.Parallel()
	check := &refusal{"23514", "small", ""}
	missing, wrong := `{"was":1}`, `{"decision_id":"x","timestamp":"yesterday"}`
	a, b, bad := decisionText("a", "ok", ""), decisionText("b", "ok", ""), decisionText("c", "bad", "")
	for name, c := range map[string]struct {
		onLines bool
		held    []string
		want    string
	}{
		"all refused":             {false, []string{missing, wrong}, "0 would be stored, 1 cannot be read (missing_field)"},
		"all refused, lines":      {true, []string{missing, wrong}, "0 would be stored, 1 cannot be read (missing_field)"},
		"lines, none whole":       {true, []string{`{"was":1`, `{"was":2`}, "0 would be stored, 1 cannot be read (syntax)"},
		"one still refused":       {false, []string{a, wrong, b}, "0 would be stored, 1 cannot be read (wrong_type)"},
		"all stored now":          {false, []string{a, b}, "1 would be stored"},
		"all stored now, lines":   {true, []string{a, b}, "1 would be stored"},
		"one the table refuses":   {false, []string{a, bad}, "0 would be stored, 1 still fails with 23514 (constraint small)"},
		"one has a row":           {true, []string{a, decisionText("there", "ok", "")}, "1 would be stored"},
		"all have rows":           {true, []string{decisionText("there", "ok", "")}, "0 would be stored, 1 has its row already"},
		"one claims another's id": {false, []string{a, decisionText("there", "other", "")}, "0 would be stored, 1 still fails with id_conflict (stored with another payload)"},
	} {
		table := &askedTable{rows: map[string]string{"there": decisionText("there", "ok", "")}, refuses: map[string]error{"bad": check}}
		value := decision.AppendRest(nil, c.onLines, func(yield func(int, []byte) bool) {
			for i, text := range c.held {
				if !yield(3+i*4, []byte(text)) {
					return
				}
			}
		})
		for _, form := range [][]byte{value, decision.Zip(value)} {
			l := pending(string(form))
			l[0].Origin.Index, l[0].Refused = envelope.NoIndex, len(c.held)
			r, err := NewTrial(TrialConfig{}, l, table).RunIDs(t.Context(), []string{"letter0"}, nil)
			if err != nil || r.Total != 1 || r.String() != c.want {
				t.Errorf("%s: %s, want %s, %v", name, r, c.want, err)
			}
		}
	}
}
