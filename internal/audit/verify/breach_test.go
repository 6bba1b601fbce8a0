package verify

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"docket/internal/desk/ledger"
	"docket/internal/record/home"
)

func second(s float64) time.Time { return noon.Add(time.Duration(s * float64(time.Second))) }

// breach spoils a perfect world.
type breach struct {
	spoil func(w *world)
	says  string   // of the first finding
	also  []string // invariants that the same breach rightly breaks
}

// breaches has at least one for every invariant.
var breaches = map[string]map[string]breach{
	"I1": {
		"a row that is gone":                           {func(w *world) { w.dropRow(1, 3) }, "logs/1/3/0 (d-1-3): committed and in no home", []string{"I9"}},
		"a row and a dead letter that swap":            {func(w *world) { w.dropRow(1, 3); w.ev.Rows = append(w.ev.Rows, w.ev.Rows[0]) }, "logs/1/3/0", []string{"I2", "I9"}},
		"a dead letter that is gone":                   {func(w *world) { w.drop(home.DeadLetter, 0, 3) }, "logs/0/3/0 (key-0)", []string{"I6", "I9"}},
		"one of three":                                 {func(w *world) { w.drop(home.DeadLetter, 1, 9) }, "logs/1/9/1", []string{"I6", "I9"}},
		"an exhausted one that is gone":                {func(w *world) { w.drop(home.Exhausted, 1, 7) }, "logs/1/7/0", []string{"I6", "I7", "I9"}},
		"a parked one that the replayer has committed": {func(w *world) { w.dropRow(1, 12) }, "logs/1/12/0", []string{"I7", "I9"}},
		"a forwarded one with another value":           {func(w *world) { w.in(home.DeadLetter, 0, 3).Value = Sum{1} }, "logs/0/3/0", []string{"I3", "I6", "I9"}},
		"a conflict in no home":                        {func(w *world) { w.drop(home.DeadLetter, 0, 6) }, "logs/0/6/0 (d-0-1): committed and in no home, belongs with the dead letters as id_conflict", []string{"I6", "I9"}},
	},
	"I2": {
		"two rows of one identity": {func(w *world) { w.ev.Rows = append(w.ev.Rows, w.ev.Rows[5]) }, "two rows of one identity", nil},
		"two rows of one place": {func(w *world) {
			row := w.ev.Rows[5]
			row.ID = "another"
			w.ev.Rows = append(w.ev.Rows, row)
		}, "two rows of one place", []string{"I3"}},
	},
	"I3": {
		"another payload":        {func(w *world) { w.ev.Rows[w.row(1, 3)].Raw = []byte(`{"n":3}`) }, "its row has another payload", []string{"I1"}},
		"the server says so":     {func(w *world) { w.ev.Rows[w.row(1, 3)].Raw = nil; w.ev.Unequal = []Place{{source, 1, 3, 0}} }, "its row has another payload", []string{"I1"}},
		"a row under another id": {func(w *world) { w.ev.Rows[w.row(1, 3)].ID = "x" }, "another decision_id", []string{"I1", "I9"}},
		"null became empty":      {func(w *world) { w.in(home.DeadLetter, 1, 9).Key = SumOf([]byte{}) }, "another key in dlq", []string{"I1"}},
		"another dead-letter id": {func(w *world) { w.in(home.Parked, 1, 12).WrongID = true }, "another dead-letter id in parking", nil},
	},
	"I4": {
		"a row that nobody produced": {func(w *world) {
			w.ev.Rows = append(w.ev.Rows, Row{Place: Place{source, 0, 99, 0}, ID: "x", Time: noon})
		}, "logs/0/99/0 (x): a row that nobody produced", nil},
		"a row of the probe that stayed": {func(w *world) {
			w.ev.Rows = append(w.ev.Rows, Row{Place: Place{"docket-probe", 0, 0, 0}, ID: "docket-probe-x", Time: noon})
		}, "docket-probe", nil},
		"a row of an offset beyond the log end": {func(w *world) {
			w.truth.Spans = map[Partition]Span{in(0): {0, 20}, in(1): {0, 20}}
			w.ev.AllRows = false
			w.ev.Rows = append(w.ev.Rows, Row{Place: Place{source, 1, 20, 0}, ID: "x", Time: noon})
		}, "logs/1/20/0 (x): a row that was read where nothing is: the log ends at 20", nil},
		"a forwarded record that nobody produced":      {func(w *world) { w.in(home.Parked, 1, 12).Offset = 77 }, "logs/1/77/0: a record that nobody produced, in parking/0/", nil},
		"an index that its record has not":             {func(w *world) { w.in(home.Parked, 1, 12).Index = 1 }, "logs/1/12/1", nil},
		"a record that does not say where it was read": {func(w *world) { w.in(home.Parked, 1, 12).NoOrigin = true }, "does not say", nil},
	},
	"I5": {
		"a good one among the dead letters": {func(w *world) { w.dropRow(1, 3); w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "25006") },
			"in dlq as 25006, belongs in the table", []string{"I9"}},
		"a good one given up": {func(w *world) { w.dropRow(1, 3); w.forward(Place{source, 1, 3, 0}, home.Exhausted, pdlq, "network") },
			"in parking-dlq as network", []string{"I9"}},
		"another code":                 {func(w *world) { w.in(home.DeadLetter, 0, 4).Code = "syntax" }, "as syntax, belongs there as 23514", nil},
		"a conflict with an equal row": {func(w *world) { w.forward(Place{source, 0, 5, 0}, home.DeadLetter, dlq, "id_conflict") }, "has its payload", []string{"I9"}},
		"a conflict with no row":       {func(w *world) { w.dropRow(0, 1) }, "no row has its identity", []string{"I1", "I9"}},
		"the decoder takes it": {func(w *world) {
			w.truth.KnowsTable = false
			w.dropRow(1, 3)
			w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "wrong_type")
		},
			"the decoder takes it", []string{"I9"}},
		"the decoder takes it now": {func(w *world) {
			w.dropRow(1, 3)
			w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "out_of_range")
		},
			"the decoder takes it", []string{"I9"}},
		"a higher limit takes it": {func(w *world) {
			w.dropRow(1, 3)
			w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "too_large")
		},
			"the decoder takes it", []string{"I9"}},
		"it would be stored": {func(w *world) {
			w.truth.KnowsTable = false
			w.dropRow(1, 3)
			f := w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "23514")
			w.ev.Tried = map[string]Trial{f.ID: {Stored: true}}
		}, "would be stored today", []string{"I9"}},
	},
	"I6": {
		"a bad one with a row": {func(w *world) {
			at := Place{source, 0, 4, 0}
			w.drop(home.DeadLetter, 0, 4)
			w.ev.Rows = append(w.ev.Rows, Row{Place: at, ID: "d-0-4", Time: noon, Raw: w.value[at]})
		}, "logs/0/4/0 (d-0-4)", []string{"I9"}},
		"a bad one that was parked and left": {func(w *world) {
			w.drop(home.DeadLetter, 0, 4)
			w.forward(Place{source, 0, 4, 0}, home.Parked, parking, "23514").Settled = false
		},
			"is not there", []string{"I7", "I9"}},
	},
	"I7": {
		"not read to the end":       {func(w *world) { w.ev.Committed[in(1)] = 19 }, "logs/1 is committed up to 19 of 20", nil},
		"nothing is committed":      {func(w *world) { delete(w.ev.Committed, in(1)) }, "logs/1 is committed up to 0 of 20", nil},
		"something is in the spool": {func(w *world) { w.forward(Place{source, 1, 3, 0}, home.Spooled, "spool/1_a_1.jsonl.gz", "network") }, "still in the spool", nil},
		"a file that holds nothing": {func(w *world) { w.ev.Spool[0].Files = []SpoolFile{{Name: "1_a_1.jsonl.gz", Mode: 0o600}} }, "spool/1_a_1.jsonl.gz is still in the spool", nil},
		"parked for good":           {func(w *world) { w.dropRow(1, 12); w.in(home.Parked, 1, 12).Settled = false }, "parked, and neither", []string{"I9"}},
		"a row and a dead letter": {func(w *world) {
			at := Place{source, 0, 4, 0}
			w.ev.Rows = append(w.ev.Rows, Row{Place: at, ID: "d-0-4", Time: noon, Raw: w.value[at]})
		}, "has a row and is a dead letter too", []string{"I6", "I9"}},
	},
	"I8": {
		"a commit that goes back":      {func(w *world) { w.hist.Commits[2].Offset = 4 }, "up to 4 by a", nil},
		"a commit beyond the end":      {func(w *world) { w.hist.Commits[3].End = 19 }, "is beyond the log end 19", nil},
		"a commit before a home":       {func(w *world) { w.hist.Commits[2].Lowest = 11 }, "logs/0/11/0 (d-0-11)", nil},
		"one whose answer was lost":    {func(w *world) { w.hist.Commits[2].Lowest = 11; w.hist.Commits[2].Outcome = Unknown }, "passes it", nil},
		"an offset beyond the log end": {func(w *world) { w.ev.Committed[in(0)] = 21; w.hist.Commits = nil }, "its log ends at 20", []string{"I7"}},
	},
	"I9": {
		"a row less":         {func(w *world) { w.dropRow(1, 12); w.in(home.Parked, 1, 12).Settled = false }, "stored in the run without faults and not here", []string{"I7"}},
		"a dead letter more": {func(w *world) { w.forward(Place{source, 1, 3, 0}, home.DeadLetter, dlq, "23514") }, "a dead letter here and not", []string{"I5", "I7"}},
		"a conflict less":    {func(w *world) { w.drop(home.DeadLetter, 0, 6) }, "-1 dead letters of its identity", []string{"I1", "I6"}},
	},
	"I10": {
		"rows that claim another order": {func(w *world) {
			a, b := w.row(1, 0), w.row(1, 3) // both have key-0
			w.ev.Rows[a].Place, w.ev.Rows[b].Place = w.ev.Rows[b].Place, w.ev.Rows[a].Place
		}, "before that of an earlier decision with its key", []string{"I3"}},
		"parked in another order": {func(w *world) {
			b := w.in(home.Parked, 1, 12)
			a := &w.ev.Forwarded[slices.IndexFunc(w.ev.Forwarded, func(f Forwarded) bool { return f.Home == home.Parked && f.Offset == 11 })]
			*a, *b = *b, *a
		}, "parked for the first time behind logs/1/12/0", nil},
	},
	"I11": {
		"a dead letter in a hold":         {func(w *world) { w.hist.Publishes[1].Begun = second(60) }, "published to dead_letter by a", nil},
		"a second batch of unknown begin": {func(w *world) { w.unknownBegin("4") }, "published to dead_letter", nil},
		"parked while the disk is full":   {func(w *world) { w.hist.Publishes[0].At = second(60); w.hist.Publishes[0].Begun = second(55) }, "published to parked", nil},
		"parked while only the set-up is wrong": {func(w *world) {
			w.hist.Faults[0].Code, w.hist.Faults[0].Alone = "42P01", true
			w.hist.Publishes[0].At, w.hist.Publishes[0].Begun = second(60), second(55)
		}, "published to parked", nil},
		"one that never heals": {func(w *world) {
			w.hist.Faults[0].To = time.Time{}
			w.hist.Publishes[1].At, w.hist.Publishes[1].Begun = second(900), second(800)
		}, "never healed", nil},
	},
	"I12": {
		"a fourth try":       {func(w *world) { w.try("1", 9, 10) }, "try 4 of batch 1 by a", nil},
		"a gap too short":    {func(w *world) { w.hist.Attempts[1].Begun = second(2.5) }, "comes 500ms after", nil},
		"a gap too long":     {func(w *world) { w.hist.Attempts[2].Begun = second(6.5) }, "comes 2.5s after", nil},
		"after it succeeded": {func(w *world) { w.hist.Attempts[1].Outcome = Succeeded }, "after one that succeeded", nil},
		"after the cancel":   {func(w *world) { w.try("2", 10, 11) }, "after it was cancelled", nil},
	},
	"I13": {
		"too long":         {func(w *world) { w.hist.Carries[0].Released = second(74) }, "held partition 0 for 1m13s", nil},
		"a refused commit": {func(w *world) { w.hist.Commits[0].Outcome = Failed }, "was refused", nil},
	},
	"I14": {
		"never settled":   {func(w *world) { w.hist.Settled = time.Time{} }, "never settled", nil},
		"too late":        {func(w *world) { w.hist.Settled = second(171) }, "allowed are 1m10s", nil},
		"ended by itself": {func(w *world) { w.hist.Kills = nil }, "b ended by itself", nil},
	},
	"I15": {
		"records that are in no sum": {func(w *world) { w.ev.Metrics["consumer"][unaccounted] = 1 }, "docket_unaccounted_records is 1", nil},
		"no such metric":             {func(w *world) { delete(w.ev.Metrics["consumer"], unaccounted) }, "does not show", nil},
		"a silent fault":             {func(w *world) { w.hist.Faults[0].Raised = nil }, "did not raise docket_hold", nil},
	},
	"I16": {
		"an illegal move":                {func(w *world) { w.line("b", 1).To = ledger.Resolved }, `b: retried from "PENDING" to "RESOLVED" is no legal move`, nil},
		"a line that is gone":            {func(w *world) { w.cutLine("b", 2) }, `b: its audit goes on from "PROCESSING" where it was "PENDING"`, nil},
		"a state without its line":       {func(w *world) { w.letter("a").State = ledger.Failed }, `a is "FAILED", its audit ends with "PENDING"`, nil},
		"a letter without audit":         {func(w *world) { w.cutLine("a", 1) }, "a is PENDING and has no audit", nil},
		"a line without a name":          {func(w *world) { w.line("a", 0).By = "" }, "nobody is named", nil},
		"a removed letter that was open": {func(w *world) { w.cutLine("gone", 2); w.line("gone", 1).From = ledger.Pending }, "no legal move", nil},
		"a line after the removal": {func(w *world) {
			w.ev.Books.Lines = append(w.ev.Books.Lines, ledger.Audit{LetterID: "gone", Act: ledger.Entered, To: ledger.Pending, By: "x"})
		}, `gone is "", its audit ends with "PENDING"`, nil},
		"a retry without a row in the outbox": {func(w *world) { w.ev.Books.Sendings = w.ev.Books.Sendings[:2] }, "b was retried 2 times and has 1 rows in the outbox", nil},
		"an attempt too many":                 {func(w *world) { w.letter("b").Attempts = 2 }, "b has 2 attempts, and 1 of its retries ended dead", nil},
		"a retry of what waits":               {func(w *world) { w.ev.Books.Sendings[2].Outcome, w.ev.Books.Sendings[2].Published = "", ledger.Found{} }, "b is RESOLVED, and a retry of it waits", nil},
		"nothing on its way":                  {func(w *world) { w.ev.Books.Sendings[0].Outcome = ledger.SendingRefused }, "p is PROCESSING, and no retry of it is on its way", nil},
		"two that wait": {func(w *world) {
			w.ev.Books.Sendings = append(w.ev.Books.Sendings, ledger.Sending{LetterID: "p", Mark: "m9"})
			w.ev.Books.Sendings[0].Published = ledger.Found{}
			w.ev.Books.Lines = append(w.ev.Books.Lines,
				ledger.Audit{LetterID: "p", Act: ledger.LeaseEnded, From: ledger.Processing, To: ledger.Pending, By: "desk"},
				ledger.Audit{LetterID: "p", Act: ledger.Retried, From: ledger.Pending, To: ledger.Processing, By: "ada"})
		}, "p has 2 retries that wait", nil},
		"a mark that was given twice":       {func(w *world) { w.ev.Books.Sendings[2].Mark = w.ev.Books.Sendings[1].Mark }, "b has two retries with one mark", nil},
		"counters that are off":             {func(w *world) { w.ev.Books.Counted[ledger.Pending]++ }, "1 letters are PENDING, the counters say 2", nil},
		"a dead letter that nobody entered": {func(w *world) { w.ev.Books.Missing = []Missing{{dlq, Position{1, 7}, "x"}} }, "x in dlq/1/7: the desk has read it and the ledger does not know it", nil},
	},
	"I17": {
		"a foreign name":         {func(w *world) { w.file("notes.txt", 0o600, 0) }, "spool/notes.txt has a name", nil},
		"a readable file":        {func(w *world) { w.file("1_a_2.meta.json", 0o640, 0) }, "has the mode -rw-r-----", nil},
		"an old unfinished file": {func(w *world) { w.file(".1_a_2.jsonl.gz.tmp", 0o600, 6*time.Minute) }, "is unfinished for 6m0s", nil},
		"half a file":            {func(w *world) { w.file("1_a_2.jsonl.gz", 0o600, 0); w.ev.Spool[0].Files[1].Broken = "is not whole" }, "is not whole", []string{"I7"}},
		"an open directory":      {func(w *world) { w.ev.Spool[0].Mode = 0o755 }, "has the mode 0755", nil},
		"goroutines":             {func(w *world) { w.hist.Processes[0].After.Goroutines = 40 }, "40 goroutines, 20 before", nil},
		"memory":                 {func(w *world) { w.hist.Processes[0].After.RSS = 200 << 20 }, "bytes of memory", nil},
	},
	"I18": {
		"a secret in a log":     {func(w *world) { w.hist.Texts[0].Body = "one\nxhunter2x\n" }, "marker 1 is shown in log of a, line 2", nil},
		"a payload in a header": {func(w *world) { w.in(home.Parked, 1, 12).Message = "row hunter2" }, "shown in a header, in parking/0/", nil},
	},
	"I19": {
		"a row from before an answer": {func(w *world) { w.claimed(3, 5) }, "logs/1/3/0 (d-1-3): stored at 12:00:02", nil},
		"one more than was counted": {func(w *world) {
			w.claimed(11, 0)
			f := w.in(home.Parked, 1, 11)
			f.FailedAt, f.Stamp = noon, noon
		}, "logs/1/11/0 (d-1-11): stored at", nil},
		"parked only after the answer": {func(w *world) {
			w.claimed(11, 5)
			f := w.in(home.Parked, 1, 11)
			f.FailedAt, f.Stamp = second(1.5), second(1.5)
		}, "logs/1/11/0 (d-1-11): stored at", nil},
		"sent by a spool before the look": {func(w *world) {
			w.claimed(11, 0)
			f := w.in(home.Parked, 1, 11)
			f.FailedAt, f.Stamp = noon, second(0.3)
			w.hist.Claims[0].Spooled, w.hist.Claims[0].Ends = nil, map[string]map[int32]int64{f.Found: {f.At.Partition: f.At.Offset + 1}}
		}, "logs/1/11/0 (d-1-11): stored at", nil},
		"parked, and its topic was counted before": {func(w *world) {
			w.claimed(11, 0)
			f := w.in(home.Parked, 1, 11)
			f.FailedAt, f.Stamp = noon, noon
			w.hist.Claims[0].Spooled, w.hist.Claims[0].Ends = nil, map[string]map[int32]int64{f.Found: {f.At.Partition: f.At.Offset}}
		}, "logs/1/11/0 (d-1-11): stored at", nil},
		"spooled, and the answer knew of no spool": {func(w *world) {
			w.claimed(11, 5)
			f := w.in(home.Parked, 1, 11)
			f.FailedAt, f.Stamp = noon, second(1.5)
		}, "logs/1/11/0 (d-1-11): stored at", nil},
	},
}

// claimed lets the decision at 1/o reach Kafka at noon, and its row be stored two seconds later. In between an answer
// says to be complete until half a second after noon.
func (w *world) claimed(o int64, counted int64) {
	at := Place{source, 1, o, 0}
	w.truth.At(at).Reached = noon
	w.ev.Rows[w.row(1, o)].StoredAt = second(2)
	w.hist.Claims = []Claim{{By: "the desk", At: second(1), Until: second(0.5), Parked: &counted, DeadLettered: &counted, Spooled: new(int64)}}
}

func (w *world) try(batch string, begun, ended float64) {
	w.hist.Attempts = append(w.hist.Attempts, Attempt{Process: "a", Batch: batch, Begun: second(begun), Ended: second(ended), Outcome: Failed})
}

func (w *world) unknownBegin(second string) {
	w.hist.Publishes[1].Begun = time.Time{}
	other := w.hist.Publishes[1]
	other.Batch = second
	w.hist.Publishes = append(w.hist.Publishes, other)
}

func (w *world) file(name string, mode fs.FileMode, age time.Duration) {
	w.ev.Spool[0].Files = append(w.ev.Spool[0].Files, SpoolFile{Name: name, Mode: mode, Modified: w.ev.At.Add(-age)})
}

func TestDecide_FindsEachBreach(t *testing.T) {
	t.Parallel()
	for id, of := range breaches {
		for name, b := range of {
			t.Run(id+" "+name, func(t *testing.T) {
				t.Parallel()
				w := perfect()
				b.spoil(w)
				r := w.decide()
				v := r.Of(id)
				if v.State != Broken || v.Findings == 0 || !strings.Contains(v.Found[0].String(), b.says) {
					t.Errorf("%v", v)
				}
				for _, other := range r.Results {
					if other.State == Broken && other.Invariant != id && !slices.Contains(b.also, other.Invariant) {
						t.Errorf("it breaks another one too: %v", other)
					}
					if slices.Contains(b.also, other.Invariant) && other.State != Broken {
						t.Errorf("it does not break %v", other)
					}
				}
				if err := r.Err(); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), b.says) || !strings.Contains(err.Error(), "seed 7, build abc") {
					t.Errorf("the error is %v", err)
				}
			})
		}
	}
}

func TestDecide_EachInvariantHasABreach(t *testing.T) {
	t.Parallel()
	for _, inv := range invariants {
		if len(breaches[inv.id]) == 0 {
			t.Errorf("%s was never seen to fail", inv.id)
		}
	}
}
