package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/desk/ledger"
	"docket/internal/history/lookup"
	"docket/internal/record/home"
	"docket/internal/service/config"
)

// TestWhole_ArchivesThatAreNotRead: the settings of the desk name the place of archives. If they are wrong it is not known, and
// that is said.
func TestWhole_ArchivesThatAreNotRead(t *testing.T) {
	t.Parallel()
	environ := []string{"DOCKET_DATABASE_URL=postgres://u@h/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1", "DOCKET_ARCHIVE_TO=/srv/archive"}
	s, warnings, ok := whole(Env{Program: config.Desk, Environ: environ})
	if !ok || s.ArchiveTo != "/srv/archive" || len(warnings) != 0 {
		t.Errorf("%v %q %v", ok, s.ArchiveTo, warnings)
	}
	s, warnings, ok = whole(Env{Program: config.Desk, Environ: append(environ, "DOCKET_STATES=maybe")})
	if !ok || s.ArchiveTo != "" || len(warnings) != 1 || warnings[0].Variable != "DOCKET_ARCHIVE_TO" || !strings.Contains(warnings[0].Text, "DOCKET_STATES") {
		t.Errorf("%v %q %v", ok, s.ArchiveTo, warnings)
	}
	if _, warnings, _ = whole(Env{Program: config.Desk, Environ: append(environ[:2:2], "DOCKET_STATES=maybe")}); len(warnings) != 0 {
		t.Errorf("without archives: %v", warnings)
	}
}

func TestWhereIs_SaysWhatFollows(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	place := verify.Place{Topic: "logs", Partition: 3, Offset: 120}
	parked := func(settled bool, due time.Time) inspect.Decision {
		f := verify.Forwarded{Place: place, Home: home.Parked, Found: "parking", At: verify.Position{Partition: 1, Offset: 9}, Code: "network", Attempt: 2, NotBefore: due, Stamp: now, Settled: settled}
		return inspect.Decision{Place: place, ID: "d", Forwarded: []inspect.Forwarded{{Forwarded: f, Before: 1234}}}
	}
	dead := func(kind string, l *inspect.Letter) inspect.Record {
		f := verify.Forwarded{Place: place, Home: home.DeadLetter, Found: "dlq", At: verify.Position{Partition: 1, Offset: 9}, Kind: kind, Code: "23514", ID: strings.Repeat("a1", 32), Entry: strings.Repeat("a1", 32), Stamp: now}
		return inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, ID: "d", Forwarded: []inspect.Forwarded{{Forwarded: f, Letter: l}}}}}
	}
	left := func(r ledger.Surplus) inspect.Record {
		of := dead("data", nil)
		of.Decisions[0].Forwarded[0].Left = &r
		return of
	}
	unasked := func(of inspect.Record) inspect.Record {
		of.Decisions[0].Forwarded[0].Unasked = true
		return of
	}
	for name, c := range map[string]struct {
		record inspect.Record
		code   int
		says   string
	}{
		"dead, no ledger":    {dead("data", nil), Done, "Nothing happens by itself: fix the cause, then produce the value to the source topic again."},
		"dead, not known":    {unasked(dead("data", nil)), Done, "Whether a desk has it is not known, as its ledger was not read completely. If none has it, fix the cause, then produce the value to the source topic again."},
		"dead and PENDING":   {dead("data", &inspect.Letter{State: ledger.Pending}), Done, "It is PENDING in the ledger: fix the cause, then `docket dlq retry a1a1a1a1a1a1`; `docket dlq show a1a1a1a1a1a1` explains it."},
		"left in Kafka":      {left(ledger.Surplus{State: ledger.SurplusOpen}), Done, "It is not in the ledger, as its client brought too many: a desk enters it later; `docket dlq surplus` lists such."},
		"left, and archived": {left(ledger.Surplus{State: ledger.SurplusArchived, ArchivedIn: "dead_letters-1"}), Done, "It is in archive dead_letters-1 and not in the ledger, as its client brought too many: `docket restore --dead-letters` enters it."},
		"unreadable, FAILED": {dead("decode", &inspect.Letter{State: ledger.Failed}), Done, "It is FAILED in the ledger: `docket dlq edit a1a1a1a1a1a1` changes its payload and retries it;"},
		"dead, under way":    {dead("data", &inspect.Letter{State: ledger.Processing, By: "mara"}), Done, "It is being retried by mara: `docket dlq show a1a1a1a1a1a1 --history` shows the result."},
		"dead, and closed":   {dead("data", &inspect.Letter{State: ledger.Resolved, By: "ma\x1bra", Why: "a test."}), Done, `It is RESOLVED in the ledger by ma\x1bra: a test. Nothing to do.`},
		"due soon":           {inspect.Record{Committed: 200, Replayers: 1, Decisions: []inspect.Decision{parked(false, now.Add(42*time.Second))}}, Done, "parked at parking/1/9, attempt 2, network (network_failure). It is replayed in 42 s."},
		"due too far away":   {inspect.Record{Committed: 200, Replayers: 1, Decisions: []inspect.Decision{parked(false, now.Add(90*time.Hour))}}, Done, "It is replayed in 1h0m."},
		"due":                {inspect.Record{Committed: 200, Replayers: -1, Decisions: []inspect.Decision{parked(false, now)}}, Done, "It is due: the replayer replays it after the 1,234 parked records before it."},
		"nobody replays":     {inspect.Record{Committed: 200, Decisions: []inspect.Decision{parked(false, now)}}, Done, "No member in group replay: start the parking-replayer."},
		"lost in parking":    {inspect.Record{Committed: 200, Replayers: 1, Decisions: []inspect.Decision{parked(true, now)}}, Failed, "This should never happen: run `consumer verify --from logs/3/120`"},
		"not read":           {inspect.Record{Committed: 20, Readers: 2, Decisions: []inspect.Decision{{Place: place}}}, Done, "not read yet: 100 records before it. The consumer will read it"},
		"never read":         {inspect.Record{Committed: -1, Decisions: []inspect.Decision{{Place: place}}}, Done, "has committed nothing in this partition. No member in group docket: start the consumer."},
		"gone":               {inspect.Record{Gone: true, Start: 5000, Committed: 9000}, Failed, "was deleted from the source topic, which starts at 5,000 now"},
		"a conflict, alone":  {inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, Rows: []inspect.Row{{Row: verify.Row{Place: place}}}}}}, Failed, "has another payload"},
		"half of two":        {inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, Rows: []inspect.Row{{Row: verify.Row{Place: place}, Equal: true}}}, {Place: place}}}, Failed, "committed, but not found in here, there"},
		"archived":           {inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, Elsewhere: []lookup.Found{{Where: lookup.InArchive, Name: "part-1", Day: "2026-04-01"}}}}}, Done, "in archive file part-1 of 2026-04-01. Nothing to do."},
		"archived letter":    {inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, Elsewhere: []lookup.Found{{Where: lookup.Archived, Name: "dead_letters-1", Day: "2026-04-01"}}}}}, Done, "in archive dead_letters-1; docket restore --dead-letters --day 2026-04-01\n"},
		"not searched for":   {inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, ID: "d", Unsought: true}}}, Failed, "Archives were not searched for it: run `consumer where-is d`."},
		"an id like a flag":  {inspect.Record{Committed: 200, Decisions: []inspect.Decision{{Place: place, ID: "-o $HOME", Unsought: true}}}, Failed, "run `consumer where-is -- '-o $HOME'`."},
		"a terminal's trick": {inspect.Record{Committed: 20, Decisions: []inspect.Decision{{Place: place, ID: "\x1b[31m"}}}, Done, `[0] \x1b[31m`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.record.Place = place
			var out bytes.Buffer
			s := config.Settings{KafkaTopic: "logs", KafkaGroup: "docket", ParkingGroup: "replay", ParkingMaxBackoff: time.Hour}
			code := showWhere(&out, s, &inspect.Whereabouts{At: now, Records: []inspect.Record{c.record}, Looked: []string{"here", "there"}})
			if code != c.code || !strings.Contains(out.String(), c.says) {
				t.Errorf("exit %d:\n%s", code, out.String())
			}
			var asJSON bytes.Buffer
			var j struct{ Records []jsonRecord }
			as := showWhereJSON(&asJSON, s, &inspect.Whereabouts{At: now, Records: []inspect.Record{c.record}, Looked: []string{"here", "there"}})
			if err := json.Unmarshal(asJSON.Bytes(), &j); err != nil || as != code || len(j.Records) != 1 || len(j.Records[0].Decisions) != len(c.record.Decisions) {
				t.Errorf("as JSON: exit %d, %v:\n%s", as, err, asJSON.String())
			}
		})
	}
}

func TestVerify_FirstBroken(t *testing.T) {
	t.Parallel()
	r := &inspect.Result{Records: 12034, Unread: 3, Summary: &verify.Summary{Homes: map[home.Home]int{home.Row: 1200}, Results: []verify.Result{
		{Invariant: "I1", Name: "no loss", State: verify.Held, Checked: 5},
		{Invariant: "I3", Name: "fidelity", State: verify.Broken, Checked: 5, Findings: 2, Found: []verify.Finding{{Place: verify.Place{Topic: "logs", Offset: 7}, ID: "d", What: "w", History: []string{"line"}}}},
		{Invariant: "I5", Name: "dead letters", State: verify.Warned, Checked: 5, Findings: 1, Found: []verify.Finding{{What: "x"}}, Note: "n"},
		{Invariant: "I16", Name: "ledger", State: verify.Undecided, Note: "no ledger"},
	}}}
	var out bytes.Buffer
	code := showVerify(&out, "logs", r)
	for _, part := range []string{
		"logs: 12,034 records", "I1   ok                  no loss, 5 checked\n", "I3   broken              fidelity: 2 of 5, first logs/0/7/0 (d): w\n",
		"I5   warning             dead letters: 1 of 5, first x; n\n", "I16  not decidable here  ledger: no ledger\n", "first broken, I3: logs/0/7/0 (d): w\n  line\n", "row 1,200,",
	} {
		if code != Failed || !strings.Contains(out.String(), part) {
			t.Errorf("exit %d, %q is not in\n%s", code, part, out.String())
		}
	}
	r.Summary.Results = r.Summary.Results[2:]
	if code := showVerify(&out, "logs", r); code != Done {
		t.Errorf("a warning ends with %d", code)
	}
}

func TestVerify_WrongUse(t *testing.T) {
	t.Parallel()
	env := []string{"DOCKET_DATABASE_URL=postgres://u:" + planted + "@127.0.0.1:1/x", "DOCKET_KAFKA_BROKERS=127.0.0.1:1"}
	for args, want := range map[string]string{
		"verify --from x": `"x" is not TOPIC/PARTITION/OFFSET`, "verify --from other/1/2": "is not in the source topic decision-logs", "verify --spool=": "is empty",
		"where-is": "give one record", "where-is a b": "give one record", "verify --sincee 1h": "did you mean --since?", "where-is --from x": "unknown flag",
	} {
		if r := call(config.Consumer, env, strings.Fields(args)...); r.code != Misuse || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
	if r := call(config.Consumer, nil, "verify"); r.code != Misuse || !strings.Contains(r.err, "DOCKET_DATABASE_URL: is required") {
		t.Errorf("exit %d, %s", r.code, r.err)
	}
	r := call(config.Consumer, env, "verify")
	if r.code != Failed || !strings.Contains(r.err, "check the broker addresses") || strings.Contains(r.err, planted) {
		t.Errorf("nobody is there: exit %d, %s", r.code, r.err)
	}
}

func TestMoment_AgoOrADay(t *testing.T) {
	t.Parallel()
	var m moment
	if at := m.or(time.Hour); time.Since(at) < time.Hour || time.Since(at) > 2*time.Hour {
		t.Errorf("%v", at)
	}
	for text, most := range map[string]time.Duration{"90m": 2 * time.Hour, "3d": 73 * time.Hour, "yesterday": 49 * time.Hour, "monday": 8 * 24 * time.Hour} {
		if err := m.Set(text); err != nil || time.Since(m.or(0)) > most || time.Since(m.or(0)) < 0 {
			t.Errorf("%s: %v, %v", text, m.or(0), err)
		}
	}
	for _, args := range []string{"verify --since lately", "where-is --since lately x"} {
		if r := call(config.Consumer, nil, strings.Fields(args)...); r.code != Misuse || !strings.Contains(r.err, "for flag --since: give a time ago") {
			t.Errorf("%s: exit %d, %s", args, r.code, r.err)
		}
	}
}

func TestShort_Durations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{time.Millisecond: "less than a second", 42 * time.Second: "42 s", 10 * time.Minute: "10m", 90 * time.Minute: "1h30m"} {
		if got := short(d); got != want {
			t.Errorf("%v is %s", d, got)
		}
	}
}
