package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"docket/internal/audit/inspect"
	"docket/internal/audit/verify"
	"docket/internal/history/archive"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/term"
	"docket/internal/record/home"
	"docket/internal/service/config"
)

// verifyFlags are what `verify` is told.
type verifyFlags struct {
	since   moment
	from    list
	settled bool
	spools  list
	metrics list
	try     bool
	asJSON  bool
}

// moment is a flag that names a time, ago or a day.
type moment struct {
	at   time.Time // zero: not given
	text string
}

func (m *moment) String() string { return m.text }

// Set reads it.
func (m *moment) Set(text string) (err error) {
	m.text = text
	m.at, err = reader.ParseTime(text, time.Now())
	return err
}

// given reports whether the flag was given.
func (m *moment) given() bool { return !m.at.IsZero() }

// or is the time that was given, or so long ago.
func (m *moment) or(ago time.Duration) time.Time {
	if m.at.IsZero() {
		return time.Now().Add(-ago)
	}
	return m.at
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds one.
func (l *list) Set(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	*l = append(*l, s)
	return nil
}

// Verify is the command that asks the checker about a live system.
func Verify() Command {
	var o verifyFlags
	return Command{
		Name: "verify", Text: "Check independently that no record was lost (read-only).",
		Example: "  %s verify --since 1h\n" +
			"  %[1]s verify --from decision-logs/3/12034 --metrics http://localhost:8080/metrics\n" +
			"  %[1]s verify --since yesterday --settled      # after all is drained",
		Flags: func(f *flag.FlagSet) {
			f.Var(&o.since, "since", "check records that reached the source topics since `TIME` (default 1h)")
			f.Var(&o.from, "from", "check only this partition, from `RECORD` on; ignores --since; can be repeated")
			f.BoolVar(&o.settled, "settled", false, "fail also if a record is still unread, parked or spooled")
			f.Var(&o.spools, "spool", "check the spool in `DIR` instead of DOCKET_SPOOL_DIR; can be repeated")
			f.Var(&o.metrics, "metrics", "check docket_unaccounted_records at `URL`, too; can be repeated")
			f.BoolVar(&o.try, "try-dead-letters", false, "test with a rolled-back write whether the table still refuses them")
			f.BoolVar(&o.asJSON, "json", false, "print JSON")
		},
		More: "RECORD is TOPIC/PARTITION/OFFSET in a source topic. There is one for each lane of DOCKET_LANES, and all are\n" +
			"checked. Name the spools of all hosts with --spool: a record in a spool that is not named, or on another host,\n" +
			"counts as lost.\n\n" +
			"Prints one line per invariant: ok, broken, warning or not decidable here, and why. If one is broken, it\n" +
			"prints all that is known of the first broken record. Payloads are never shown.\n\n" +
			"Reads the source topics up to the committed offsets, the other topics, the spool, and rows by primary\n" +
			"key. Joins no group, commits and stores nothing. Memory: 2,000 decisions, plus about 0.5 KiB for each\n" +
			"record that was forwarded in that time. A row or copy deleted since, also by retention, counts as lost;\n" +
			"one of an archived day is looked for in the archives (DOCKET_ARCHIVE_TO).",
		Uses: []string{"DOCKET_KAFKA_BROKERS", "DOCKET_DATABASE_URL", "DOCKET_SPOOL_DIR"},
		Exit: [2]string{"no invariant is broken; some may be warning or not decidable here", "an invariant is broken, no record could be checked, or the check itself failed"},
		Run:  func(env Env, _ []string) int { return runVerify(env, o) },
	}
}

func runVerify(env Env, o verifyFlags) int {
	if o.since.at.After(time.Now()) && len(o.from) == 0 {
		return misuse(env, "--since "+quoted(o.since.text)+" is in the future: nothing would be checked", "verify")
	}
	var from []inspect.Query
	for _, text := range o.from {
		q := inspect.ParseQuery(text)
		if q.Topic == "" || strings.Count(text, "/") != 2 {
			return misuse(env, "--from "+quoted(text)+" is not TOPIC/PARTITION/OFFSET, like decision-logs/3/12034", "verify")
		}
		from = append(from, q)
	}
	if env.AskVerify != nil {
		if len(o.spools) > 0 || len(o.metrics) > 0 || o.try {
			return misuse(env, "--spool, --metrics and --try-dead-letters need the database and Kafka: a desk looks into its own spool, and writes nothing", "verify")
		}
		return verifyOfDesk(env, o)
	}
	s, warnings, ok := whole(env)
	if !ok {
		return Misuse
	}
	warn(env, warnings)
	s = s.WithDeskGroup(config.Lookup(config.Desk, env.Environ, "DOCKET_DESK_GROUP"))
	scope := inspect.Scope{Since: o.since.or(time.Hour), Settled: o.settled, Metrics: o.metrics, TryDeadLetters: o.try}
	for i, q := range from {
		if _, ours := s.Source(q.Topic); !ours {
			return misuse(env, "--from "+quoted(o.from[i])+" is not in the source topic "+strings.Join(s.SourceTopics(), " or "), "verify")
		}
		if scope.From == nil {
			scope.From = make(verify.Offsets)
		}
		scope.From[verify.Partition{Topic: q.Topic, Number: q.Partition}] = q.Offset
	}
	return eachShard(env, s, o.asJSON, func(one config.Settings) int { return verifyOne(env, one, o, scope) })
}

// verifyOfDesk prints the answer of a desk, which is that of the command there.
func verifyOfDesk(env Env, o verifyFlags) int {
	ctx, end := UntilSignal(env)
	defer end()
	text, report, broken, err := env.AskVerify(ctx, o.since.at, o.from, o.settled)
	if wrong := (interface{ WrongUse() bool })(nil); errors.As(err, &wrong) && wrong.WrongUse() {
		return misuse(env, err.Error(), "verify")
	}
	if err != nil {
		return unlooked(env, err)
	}
	say(env.Stderr, "%s: the desk has verified with its own settings and logins; a record in a spool that it does not see counts as lost\n", env.Called())
	if o.asJSON {
		printJSON(env.Stdout, json.RawMessage(report))
	} else {
		say(env.Stdout, "%s", term.Lines(text))
	}
	var of struct{ Records, Unread int64 }
	if broken || json.Unmarshal(report, &of) == nil && (&inspect.Result{Records: of.Records, Unread: of.Unread}).Blind() {
		return Failed
	}
	return Done
}

// Verified is the answer of the command verify: for people, for programs, and whether an invariant is broken.
func Verified(s config.Settings, r *inspect.Result) (text string, report []byte, broken bool) {
	var people, programs bytes.Buffer
	broken = r.Summary.Err() != nil
	showVerify(&people, s.KafkaTopic, r)
	verifyJSON(&programs, r)
	return people.String(), programs.Bytes(), broken
}

func verifyOne(env Env, s config.Settings, o verifyFlags, scope inspect.Scope) int {
	opt := inspect.Options{Spools: o.spools, Progress: func(line string) { say(env.Stderr, "%v\n", line) }}
	if env.Shelf != nil {
		opt.Shelf = func(where string) (archive.Shelf, error) { return env.Shelf(where, s) }
	}
	sys, err := inspect.Open(s, opt)
	if err != nil {
		return Unopened(env, err)
	}
	defer sys.Close()
	ctx, end := UntilSignal(env)
	defer end()
	result, err := sys.Verify(ctx, scope)
	if err != nil {
		return unlooked(env, err)
	}
	if o.asJSON {
		return verifyJSON(env.Stdout, result)
	}
	return showVerify(env.Stdout, s.KafkaTopic, result)
}

// words are the states as a person reads them.
var words = map[verify.State]string{
	verify.Held: "ok", verify.Broken: "broken", verify.Warned: "warning", verify.Undecided: "not decidable here",
}

func showVerify(w io.Writer, topic string, r *inspect.Result) int {
	sources := []inspect.Lane{{Topic: topic, Records: r.Records, Decisions: r.Summary.Decisions, Partitions: len(r.Spans), Unread: r.Unread}}
	if len(r.Lanes) > 1 {
		sources = r.Lanes
	}
	for _, l := range sources {
		name := l.Topic
		if l.Name != "" {
			name += " (lane " + l.Name + ")"
		}
		say(w, "%s: %s records, %s decisions in %d partitions, up to the committed offsets; %s records are not read yet\n",
			name, term.Grouped(l.Records), term.Grouped(int64(l.Decisions)), l.Partitions, term.Grouped(l.Unread))
	}
	for _, line := range r.Elsewhere {
		say(w, "%s\n", line)
	}
	var first *verify.Result
	for i, v := range r.Summary.Results {
		if v.State == verify.Broken && first == nil {
			first = &r.Summary.Results[i]
		}
		say(w, "%-3s  %-18s  %s%s\n", v.Invariant, words[v.State], v.Name, detail(v))
	}
	if first != nil {
		say(w, "\nfirst broken, %s: %v\n", first.Invariant, first.Found[0])
		for _, line := range first.Found[0].History {
			say(w, "  %s\n", line)
		}
	}
	say(w, "\nhomes:")
	for _, h := range home.All() {
		say(w, " %v %s,", h, term.Grouped(int64(r.Summary.Homes[h])))
	}
	say(w, " none %s\n", term.Grouped(int64(r.Summary.Homes[home.None])))
	if first != nil || r.Blind() {
		return Failed
	}
	return Done
}

// detail is the text after the name of an invariant.
func detail(v verify.Result) string {
	text := fmt.Sprintf(", %s checked", term.Grouped(int64(v.Checked)))
	switch {
	case v.State == verify.Undecided:
		return ": " + v.Note
	case v.Findings > 0:
		text = fmt.Sprintf(": %s of %s, first %v", term.Grouped(int64(v.Findings)), term.Grouped(int64(v.Checked)), v.Found[0])
	}
	if v.Note != "" {
		text += "; " + v.Note
	}
	return text
}

// jsonInvariant is the result for an invariant as --json shows it.
type jsonInvariant struct {
	Invariant string        `json:"invariant"`
	Name      string        `json:"name"`
	State     verify.State  `json:"state"`
	Note      string        `json:"note,omitempty"`
	Checked   int           `json:"checked"`
	Findings  int           `json:"findings"`
	Found     []jsonFinding `json:"found,omitempty"`
}

// jsonLane is one lane of a check.
type jsonLane struct {
	Lane      string `json:"lane"`
	Topic     string `json:"topic"`
	Records   int64  `json:"records"`
	Decisions int    `json:"decisions"`
	Unread    int64  `json:"unread"`
}

type jsonFinding struct {
	Place   string   `json:"place,omitempty"`
	ID      string   `json:"id,omitempty"`
	What    string   `json:"what"`
	History []string `json:"history,omitempty"`
}

func verifyJSON(w io.Writer, r *inspect.Result) int {
	out := struct {
		Broken    bool            `json:"broken"`
		At        time.Time       `json:"at"`
		Records   int64           `json:"records"`
		Decisions int             `json:"decisions"`
		Unread    int64           `json:"unread"`
		Lanes     []jsonLane      `json:"lanes,omitempty"` // without lanes it is missing
		Elsewhere []string        `json:"elsewhere,omitempty"`
		Homes     map[string]int  `json:"homes"`
		Results   []jsonInvariant `json:"verdicts"`
	}{r.Summary.Err() != nil, r.At.UTC(), r.Records, r.Summary.Decisions, r.Unread, nil, r.Elsewhere, make(map[string]int), nil}
	if len(r.Lanes) > 1 {
		for _, l := range r.Lanes {
			out.Lanes = append(out.Lanes, jsonLane{l.Name, l.Topic, l.Records, l.Decisions, l.Unread})
		}
	}
	for _, h := range append(home.All(), home.None) {
		out.Homes[h.String()] = r.Summary.Homes[h]
	}
	for _, v := range r.Summary.Results {
		j := jsonInvariant{v.Invariant, v.Name, v.State, v.Note, v.Checked, v.Findings, nil}
		for _, f := range v.Found {
			place := ""
			if f.Place != (verify.Place{}) {
				place = f.Place.String()
			}
			j.Found = append(j.Found, jsonFinding{place, f.ID, f.What, f.History})
		}
		out.Results = append(out.Results, j)
	}
	printJSON(w, out)
	if out.Broken || r.Blind() {
		return Failed
	}
	return Done
}
