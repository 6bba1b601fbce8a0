package tree

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"docket/internal/desk/ledger"
	"docket/internal/history/cold"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/term"
	"docket/internal/record/envelope"
	"docket/internal/testkit/readertest"
	"docket/sample"
)

// asked is a store in which alice is denied since a bundle's revision, with hostile text in every place.
func asked(t *testing.T) *readertest.Store {
	t.Helper()
	s := &readertest.Store{Now: func() time.Time { return now }}
	add := func(id string, minutes int, rest string) {
		quotedID, err := json.Marshal(id)
		if err != nil {
			t.Fatal(err)
		}
		raw := fmt.Sprintf(`{"decision_id":%s,"timestamp":%q,%s}`, quotedID, now.Add(time.Duration(minutes)*time.Minute).Format(time.RFC3339), rest)
		if err := s.AddRaw([]byte(raw)); err != nil {
			t.Fatal(err)
		}
	}
	const common = `"path":"shop/authz","requested_by":"10.0.0.7:%d","labels":{"id":"opa-1","version":"1.22.0","app":"checkout","odd":"\u001b[31m"},` +
		`"input":{"user":"alice\u001b[2J","method":"GET","path":["finance","%s"],"password":"hunter"},"masked":["/input/token"],"erased":["/input/card"],` +
		`"metrics":{"timer_rego_query_eval_ns":484474,"timer_server_handler_ns":993954},"bundles":{"authz":{"revision":"%s"},"data\u001b[31m":{"revision":""}},"result":%s`
	add("w-0", -180, fmt.Sprintf(common, 1, "salary", "r41", `{"allow":true,"reasons":[]}`))
	add("w-1", -120, fmt.Sprintf(common, 2, "salary", "r41", `{"allow":true,"reasons":[]}`))
	const denied = `{"allow":false,"reasons":[{"msg":"finance is closed \u001b]0;title\u0007 for the night, and so is everything that hangs on it, which is a lot","policy":"hours","rule":"closed","code":"E7"},"no \u202erole"],"policies":{"hours":false,"roles":true}}`
	add("w-2", -90, fmt.Sprintf(common, 3, "salary", "r42", denied))
	add("w-3", -30, fmt.Sprintf(common, 4, "salary", "r42", denied))
	add("w-4", -10, fmt.Sprintf(common, 5, "bonus", "r42", denied))
	add("w-5", -5, fmt.Sprintf(common, 6, "salary", "r43", `{"allow":true,"reasons":[]}`))
	add("twice", -4, `"path":"a/allow","result":true`)
	add("twice", -3, `"path":"a/allow","result":false`)
	add("odd\x1b[31m'", -2, `"path":"flags/\u001b[31m","requested_by":"10.0.0.9:1","result":{"color":"\u001b[31mred"},"nd_builtin_cache":{"rand.intn":{"[\"x\",2]":1}},"trace_id":"t","span_id":"s"`)
	add("failed", -1, `"query":"data.x = y","requested_by":"10.0.0.9:1","error":{"code":"eval_conflict_error","message":"two \u001b[31m values"}`)
	return s
}

// TestWhyAndDiff_Golden holds every view against what it was, at two widths of a terminal, in a pipe and as JSON.
func TestWhyAndDiff_Golden(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"why":        {"why", "w-3"},
		"why_same":   {"why", "w-4", "--same-input", "--subject", "input:/user", "--neighbours", "1"},
		"why_alone":  {"why", "w-0", "--subject", "decision_id"},
		"why_odd":    {"why", "odd\x1b[31m'", "--full"},
		"why_failed": {"why", "failed"},
		"why_at":     {"why", "twice", "--at", now.Add(-4 * time.Minute).Format(time.RFC3339)},
		"diff":       {"diff", "w-1", "w-3"},
		"diff_all":   {"diff", "w-1", "w-4", "--all"},
		"diff_none":  {"diff", "w-2", "w-3"},
		"diff_twice": {"diff", "twice", "twice", "--at-a", now.Add(-4 * time.Minute).Format(time.RFC3339), "--at-b", now.Add(-3 * time.Minute).Format(time.RFC3339)},
	} {
		for how, c := range map[string]struct {
			terminal term.Terminal
			args     []string
			width    int
		}{
			"80": {person(80), nil, 80}, "140": {person(140), nil, 140}, "pipe": {term.Terminal{}, nil, 0}, "json": {term.Terminal{}, []string{"--json"}, 0},
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				t.Parallel()
				w := &world{store: asked(t), terminal: c.terminal}
				r := w.call(append(args, c.args...)...)
				if r.code != 0 {
					t.Fatalf("exit %d, %s", r.code, r.err)
				}
				quiet(t, r.out+r.err)
				if how == "json" && !json.Valid([]byte(r.out)) {
					t.Error("that is no JSON")
				}
				for line := range strings.SplitSeq(r.out, "\n") {
					if n := utf8.RuneCountInString(line); c.width > 0 && n > c.width && !strings.HasPrefix(line, "    docket ") && !strings.Contains(line, `": `) {
						t.Errorf("%d columns: %s", n, line)
					}
				}
				golden(t, name+"_"+how+".txt", r.out+"---\n"+r.err)
			})
		}
	}
}

func TestColours_LogsOnTerminal(t *testing.T) {
	t.Parallel()
	w := &world{store: asked(t), terminal: person(100), environ: []string{"NO_COLOR="}}
	if r := w.call("why", "w-3"); !strings.Contains(r.out, "\x1b[31mdenied\x1b[0m") || strings.Contains(r.out, "\x1b]0") || strings.Contains(r.out, "\x1b[2J") {
		t.Errorf("%q", r.out)
	}
	w.terminal = term.Terminal{}
	if r := w.call("why", "w-3"); strings.Contains(r.out, "\x1b") {
		t.Errorf("%q", r.out)
	}
}

func TestLogs_NotStored(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"why", "no'one\x1b[31m"}, {"diff", "w-1", "no'one\x1b[31m"}, {"why", "w-"}, {"why", "none", "--json"}} {
		r := (&world{store: asked(t)}).call(args...)
		quiet(t, r.out+r.err)
		if asJSON := strings.HasPrefix(r.out, "{"); r.code != 1 || asJSON != (args[len(args)-1] == "--json") || !strings.Contains(r.err, "docket where-is ") || !strings.Contains(r.err, "archives: DOCKET_ARCHIVE_TO is not set") {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
}

// TestWhy_SinceOnlyAsSeen: without one that ended otherwise the first is but the first that is known.
func TestWhy_SinceOnlyAsSeen(t *testing.T) {
	t.Parallel()
	w := &world{store: asked(t)}
	if r := w.call("why", "w-1"); !strings.Contains(r.out, ", w-0, or earlier\n") {
		t.Errorf("%s", r.out)
	}
	if r := w.call("why", "w-3"); !strings.Contains(r.out, ", w-2\n") || strings.Contains(r.out, "earlier") {
		t.Errorf("%s", r.out)
	}
}

// TestWhy_Undefined: a heading without text would be confusing.
func TestWhy_Undefined(t *testing.T) {
	t.Parallel()
	s := asked(t)
	if err := s.AddRaw([]byte(`{"decision_id":"nothing","timestamp":"2026-11-21T20:00:00Z","path":"a","requested_by":"10.0.0.7:1"}`)); err != nil {
		t.Fatal(err)
	}
	if r := (&world{store: s}).call("why", "nothing"); !strings.Contains(r.out, "\nWhy\n  result          none\n") {
		t.Errorf("%s", r.out)
	}
}

func TestWhy_SeveralOfOneID(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"why", "twice"}, {"why", "twice", "--at", "2026-01-01T00:00:00Z"}} {
		r := (&world{store: asked(t)}).call(args...)
		if r.code != 1 || strings.Count(r.err, "  --at 2026-11-21T20:1") != 2 || !strings.Contains(r.err, "denied") {
			t.Errorf("%q: exit %d, %s", args, r.code, r.err)
		}
	}
}

func TestWhy_WrongUse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args, environ []string
		says          string
	}{
		"no id":          {args: []string{"why"}, says: "decision_id"},
		"two":            {args: []string{"why", "a", "b"}, says: "one too many"},
		"an empty id":    {args: []string{"why", ""}, says: "empty"},
		"a subject":      {args: []string{"why", "w-3", "--subject", "user\x1b[31m"}, says: "--subject"},
		"a setting":      {args: []string{"why", "w-3"}, environ: []string{"DOCKET_READER_SUBJECT=user"}, says: "DOCKET_READER_SUBJECT"},
		"an extractor":   {args: []string{"why", "w-3"}, environ: []string{"DOCKET_READER_EXTRACTORS=shop=allow"}, says: "DOCKET_READER_EXTRACTORS"},
		"neighbours":     {args: []string{"why", "w-3", "--neighbours", "51"}, says: "--neighbours"},
		"no neighbours":  {args: []string{"why", "w-3", "--neighbours", "-1"}, says: "--neighbours"},
		"a time":         {args: []string{"why", "twice", "--at", "yesterday"}, says: "--at"},
		"one to compare": {args: []string{"diff", "w-3"}, says: "two decision_ids"},
	} {
		r := (&world{store: asked(t), environ: c.environ, bare: c.environ == nil}).call(c.args...)
		quiet(t, r.out+r.err)
		if r.code != 2 || !strings.Contains(r.err, c.says) || r.out != "" {
			t.Errorf("%s: exit %d, %s%s", name, r.code, r.out, r.err)
		}
	}
}

func TestWhy_ExtractorsOfSettings(t *testing.T) {
	t.Parallel()
	w := &world{store: asked(t), environ: []string{"DOCKET_READER_EXTRACTORS=shop/*=reasons:/reasons/1,shop/authz=subject:/method"}}
	if r := w.call("why", "w-3"); r.code != 0 || strings.Contains(r.out, "reason          finance is closed") || !strings.Contains(r.out, "GET (from input:/method)") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
	}
}

func TestLogs_DatabaseAway(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"why", "w-3"}, {"diff", "w-3", "w-1"}} {
		w := &world{store: asked(t)}
		w.store.Fail(errAway)
		if r := w.call(args...); r.code != 1 || !strings.Contains(r.err, errAway.Error()) {
			t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
		}
	}
}

// TestWhy_DocsMatchSample holds the example of docs/why.md against the sample; -update writes it again.
func TestWhy_DocsMatchSample(t *testing.T) {
	t.Parallel()
	const file = "../../../../docs/why.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	store := &readertest.Store{}
	if err := store.AddRaw(sample.DecisionLogs()...); err != nil {
		t.Fatal(err)
	}
	const fence = "```console\n$ docket why "
	before, rest, ok := strings.Cut(string(text), fence)
	example, after, whole := strings.Cut(rest, "```\n")
	args, _, line := strings.Cut(example, "\n")
	if !ok || !whole || !line {
		t.Fatal("docs/why.md has no example")
	}
	r := (&world{store: store, terminal: person(110), unarchived: true}).call(append([]string{"why"}, strings.Fields(args)...)...)
	if r.code != 0 {
		t.Fatal(r.err)
	}
	if got := before + fence + args + "\n" + r.out + "```\n" + after; got != string(text) {
		if !*update {
			t.Errorf("docs/why.md does not show what is printed (-update writes it again):\n%s", r.out)
		} else if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReader_DocsMatchSample holds each command of the first example of docs/reader.md against the sample.
func TestReader_DocsMatchSample(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/reader.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "```console\n")
	example, _, whole := strings.Cut(rest, "```\n")
	if !ok || !whole {
		t.Fatal("docs/reader.md has no example")
	}
	store := &readertest.Store{}
	if err := store.AddRaw(sample.DecisionLogs()...); err != nil {
		t.Fatal(err)
	}
	var command, printed string
	shown := 0
	for line := range strings.Lines(example) {
		line = strings.TrimSuffix(line, "\n")
		if args, ok := strings.CutPrefix(line, "$ docket "); ok {
			args, counted := strings.CutSuffix(args, " | wc -l")
			command = args
			r := (&world{store: store, terminal: term.Terminal{}}).call(strings.Fields(args)...)
			if r.code != 0 {
				t.Fatalf("%s: %s", command, r.err)
			}
			if printed = r.out + r.err; counted {
				printed = fmt.Sprintf("%d\n", strings.Count(r.out, "\n"))
			}
			continue
		}
		// Three dots stand for what was left out, of a line or of lines.
		if line = strings.TrimSuffix(line, "..."); line == "" || strings.HasPrefix(line, "$ ") {
			continue
		}
		if shown++; !strings.Contains("\n"+printed, "\n"+line) {
			t.Errorf("docs/reader.md has %q, and docket %s prints\n%s", line, command, printed)
		}
	}
	if shown < 8 {
		t.Errorf("%d lines are shown", shown)
	}
}

// A dead letter that claims the id of a stored decision is told of with it, and where there is no decision. The decision's own letter is
// not another.
func TestClaims_AreToldOf(t *testing.T) {
	t.Parallel()
	other := letter(1, envelope.Cause{Kind: envelope.Conflict, Code: "id_conflict", Message: "x"}, ledger.Pending)
	other.DecisionID, other.DecisionTime, other.Origin.Offset, other.Origin.Index = "w-1", time.Time{}, 70, 2
	refused := letter(2, envelope.Cause{Kind: envelope.Decode, Code: "wrong_type", Message: "x"}, ledger.Failed)
	refused.DecisionID, refused.Origin = "alone\x1b[31m", envelope.Origin{Topic: "decision-logs", Partition: envelope.NoPlace, Offset: envelope.NoPlace, Index: envelope.NoIndex}
	own := letter(3, envelope.Cause{Kind: envelope.Data, Code: "23514", Message: "x"}, ledger.Resolved)
	store := asked(t)
	rows, err := store.ByID(t.Context(), "w-2")
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	own.DecisionID, own.Origin = "w-2", envelope.Origin{Topic: rows[0].Topic, Partition: rows[0].Partition, Offset: rows[0].Offset, Index: rows[0].Index}
	w := &world{store: store, book: newBook(other, refused, own)}
	for _, args := range [][]string{{"why", "w-1"}, {"logs", "w-1"}} {
		r := w.call(args...)
		if r.code != 0 || !strings.Contains(r.out, "Other decisions with this id\n  dead letter id_conflict, PENDING, first read at decision-logs/1/70, decision 2 of that record\n    docket dlq show "+other.ID[:12]+"\n") {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.out, r.err)
		}
		r = w.call(append(args, "--json")...)
		var said struct {
			Others []struct {
				ID string `json:"dead_letter_id"`
			} `json:"others"`
		}
		if err := json.Unmarshal([]byte(r.out), &said); err != nil || len(said.Others) != 1 || said.Others[0].ID != other.ID {
			t.Errorf("%q as JSON: %v, %s", args, err, r.out)
		}
		args[1] = "w-2"
		if r := w.call(args...); r.code != 0 || strings.Contains(r.out, "dead letter id_conflict") {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.out, r.err)
		}
		args[1] = "alone\x1b[31m"
		r = w.call(args...)
		quiet(t, r.out+r.err)
		if r.code != 1 || !strings.Contains(r.err, "dead letter wrong_type, FAILED") || !strings.Contains(r.err, "refused by the collector on its way to decision-logs") || !strings.Contains(r.err, refused.ID[:12]) {
			t.Errorf("%q: exit %d, %s%s", args, r.code, r.out, r.err)
		}
	}
	w.book.fails = errors.New("no ledger here")
	if r := w.call("why", "w-1"); r.code != 0 || !strings.Contains(r.out, "the ledger of dead letters: no ledger here") {
		t.Errorf("exit %d, %s%s", r.code, r.out, r.err)
	}
}

// More than so many letters of an id are not counted, and the answer says so.
func TestClaims_AtLeastSoMany(t *testing.T) {
	t.Parallel()
	var all []ledger.Entry
	for i := range 1001 {
		e := letter(i+1, envelope.Cause{Kind: envelope.Conflict, Code: "id_conflict", Message: "x"}, ledger.Pending)
		e.DecisionID, e.DecisionTime, e.Origin.Offset = "alone", time.Time{}, int64(1000+i)
		all = append(all, e)
	}
	r := (&world{store: asked(t), book: newBook(all...)}).call("why", "alone")
	if !strings.Contains(r.err, "at least 1,000 dead letters with the id alone") || !strings.Contains(r.err, "  and at least 990 more dead letters with this id\n") {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
}

// Of many dead letters with an id, the newest are listed, and the others are counted.
func TestClaims_ManyAreCounted(t *testing.T) {
	t.Parallel()
	var all []ledger.Entry
	for i := range 25 {
		for j, id := range []string{"w-1", "alone"} {
			e := letter(2*i+j+1, envelope.Cause{Kind: envelope.Conflict, Code: "id_conflict", Message: "x"}, ledger.Pending)
			e.DecisionID, e.DecisionTime, e.Origin.Offset = id, time.Time{}, int64(1000+i)
			all = append(all, e)
		}
	}
	w := &world{store: asked(t), book: newBook(all...)}
	for _, args := range [][]string{{"why", "w-1"}, {"logs", "w-1"}, {"why", "alone"}, {"logs", "alone"}} {
		r := w.call(args...)
		if n := strings.Count(r.out+r.err, "docket dlq show"); n != 10 || !strings.Contains(r.out+r.err, "  and 15 more dead letters with this id\n") {
			t.Errorf("%q: exit %d, %d are listed\n%s%s", args, r.code, n, r.out, r.err)
		}
		if args[1] == "alone" && !strings.Contains(r.err, "25 dead letters with the id alone") {
			t.Errorf("%q: %s", args, r.err)
		}
		r = w.call(append(args, "--json")...)
		var said struct {
			Others []json.RawMessage `json:"others"`
			More   int               `json:"others_more"`
		}
		if err := json.Unmarshal([]byte(r.out), &said); err != nil || len(said.Others) != 10 || said.More != 15 {
			t.Errorf("%q as JSON: %v, %s", args, err, r.out)
		}
	}
}

// unread is a store that could not read a part of the table.
type unread struct{ *readertest.Store }

func (u unread) ByID(ctx context.Context, id string) ([]reader.Decision, error) {
	all, err := u.Store.ByID(ctx, id)
	if err != nil {
		return nil, err
	}
	return all, &reader.PartialError{Missed: []reader.Missed{{Place: "archived day 2026-03-04", Err: errAway}}}
}

// A difference says that it lacks a part of the table, as text and as JSON.
func TestDiff_SaysWhatItLacks(t *testing.T) {
	t.Parallel()
	w := &world{store: asked(t), both: func(table *readertest.Store, _ *cold.Days) reader.Store { return unread{table} }}
	if r := w.call("diff", "w-1", "w-3"); r.code != 0 || strings.Count(r.err, "PARTIAL: archived day 2026-03-04") != 1 {
		t.Errorf("exit %d\n%s%s", r.code, r.out, r.err)
	}
	r := w.call("diff", "w-1", "w-3", "--json")
	var out struct {
		Freshness reader.Freshness
		NotRead   []string `json:"not_read"`
	}
	if err := json.Unmarshal([]byte(r.out), &out); err != nil || r.code != 0 || out.Freshness != reader.Partial || len(out.NotRead) != 1 {
		t.Errorf("exit %d, %v\n%s%s", r.code, err, r.out, r.err)
	}
}
