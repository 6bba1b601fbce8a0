package logs

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/history/state"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// states is docket state.
type states struct {
	*printer
	paths []string
	limit int
}

const defaultStates = 100

// State makes the command that shows the newest answers of a subject.
func State(call frame.Call) *cobra.Command {
	st := &states{printer: &printer{Call: call.Asking()}}
	c := &cobra.Command{
		Use: "state SUBJECT [flags]", Short: "Show the newest answer that a subject gets, by path, and since when", DisableFlagsInUseLine: true,
		Long: "Show the newest answer that a subject gets on each path, and since when it gets it.\n\n" +
			"SUBJECT is the whole value of the field in DOCKET_READER_SUBJECT. A desk keeps the answers where\n" +
			"DOCKET_STATES is true. They follow the timestamps of OPA: a decision that is older than the answer changes\n" +
			"nothing. The last line says how far the desk has come.",
		Example: "  docket state alice\n  docket state 10.0.7.19 --path 'authz/*'\n  docket state alice --json | jq -r '.states[] | select(.verdict == \"denied\") | .path'",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return frame.Misuse("give a subject, as `docket why` prints it")
			case len(args) > 1:
				return frame.Misuse("give one subject; %s is one too many", term.Quoted(args[1]))
			case args[0] == "" || !utf8.ValidString(args[0]):
				return frame.Misuse("the subject %s is empty or not UTF-8", term.Quoted(args[0]))
			}
			return nil
		}, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringArrayVar(&st.paths, "path", nil, "only this `PATH`, or all below it: 'authz/*'")
	f.IntVarP(&st.limit, "limit", "n", defaultStates, "show at most `N` paths, 1 to 999")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "shown", "the subject has no state, no desk keeps states, or the command failed")
	frame.Complete(c, map[string]frame.Completion{"path": lately(call, true)})
	c.RunE = st.Run(func(args []string) (frame.Work, error) {
		if st.limit < 1 || st.limit >= state.MostStates {
			return nil, frame.Misuse("--limit must be 1 to %d", state.MostStates-1)
		}
		return func(ctx context.Context) error { return st.show(ctx, args[0]) }, legiblePaths(st.paths)
	})
	return c
}

func legiblePaths(paths []string) error {
	for _, path := range paths {
		if path == "" || !utf8.ValidString(path) {
			return frame.Misuse("--path %s is empty or not UTF-8", term.Quoted(path))
		}
	}
	return nil
}

func (st *states) show(ctx context.Context, subject string) error {
	begun := begin(ctx, st.Call, complete.Range{Paths: st.paths})
	all, mark, err := st.Sys.States.States(ctx, subject, st.paths, st.limit+1)
	if err = st.parts.Pass(err); err != nil {
		return st.noStates(err)
	}
	more := len(all) > st.limit
	said := st.endedStates(begun, complete.Facts{Found: len(all) > 0, Partly: mark.FullAt != nil}, mark)
	all = all[:min(len(all), st.limit)]
	if st.AsJSON {
		out := jsonStates{States: []jsonState{}, More: more, jsonAsOf: asOf(mark, said, st.partial())}
		for i := range all {
			out.States = append(out.States, jsonStateOf(&all[i]))
		}
		st.Print(out)
	} else if len(all) > 0 {
		st.stateRows(all)
	}
	st.tellMark(mark)
	tellComplete(st.Call, said)
	st.endOfShards()
	if more {
		st.Tell("there are more paths; choose some with --path\n")
	}
	if len(all) == 0 {
		st.Tell("%s: %s has no state; subjects are found by %s\n", st.Program, term.Brief(subject), term.Brief(mark.SubjectsBy))
		return frame.Exit(1)
	}
	return nil
}

// noStates prints what to do where there are no states.
func (p *printer) noStates(err error) error {
	if !errors.Is(err, state.ErrNone) {
		return err
	}
	p.Tell("%s: %v\nset DOCKET_STATES=true in docket desk\n", p.Program, err)
	return frame.Exit(1)
}

func (st *states) stateRows(all []state.State) {
	columns := []term.Column{
		{Title: "path", Least: 14}, {Title: "verdict", Paint: st.paintVerdict}, {Title: "since"}, {Title: "last seen", Rank: 2}, {Title: "decisions", Right: true, Rank: 3},
		{Title: "before", Paint: st.paintVerdict, Rank: 4}, {Title: "revision", Rank: 5, Least: 10}, {Title: "newest decision_id", Rank: 1},
	}
	now := st.Now()
	var rows [][]term.Cell
	for i := range all {
		s := &all[i]
		before := "-"
		if s.Before != nil {
			before = string(s.Before.Verdict)
		}
		since := s.Since.Time.UTC().Format(instant)
		if s.Doubtful() {
			since += " ?"
		}
		verdict, decisions := string(s.Verdict), term.Grouped(s.Decisions)
		if s.Lacks.Has("verdict") {
			verdict += " ?"
		}
		if s.Lacks.Has("decisions") {
			decisions += " ?"
		}
		rows = append(rows, []term.Cell{
			{Full: term.Brief(s.Path)}, {Full: verdict}, {Full: since}, {Full: s.LastSeen.UTC().Format(instant), Brief: term.Ago(s.LastSeen, now)},
			{Full: decisions}, {Full: before}, {Full: term.Brief(s.Revision)}, {Full: s.Version.ID},
		})
	}
	st.Table(columns, rows, "")
	late, early := false, false
	for i := range all {
		late, early = late || all[i].Late > 0, early || all[i].SinceAtLatest
	}
	if late {
		st.Tell("a time with ? is uncertain: decisions that came late had another verdict after that time; docket why finds since when\n")
	}
	st.tellLacks(all)
	if early {
		st.Tell("a time with ? is uncertain: several shards had the verdict, and it may be older; docket why finds since when\n")
	}
}

// tellLacks says of which shards decisions may be missing.
func (st *states) tellLacks(all []state.State) {
	for i := range all {
		l := all[i].Lacks
		switch {
		case l == nil:
			continue
		case l.Before == nil:
			st.Tell("? marks what may be wrong: the shards %s have no state of some subjects, as they had no room (DOCKET_STATES_MAX)\n", strings.Join(l.Shards, ", "))
		default:
			st.Tell("? marks what may be wrong or too low: the shards %s do not have all decisions before %s in their states\n", strings.Join(l.Shards, ", "), l.Before.UTC().Format("2006-01-02 15:04:05Z"))
		}
		return
	}
}

// tellMark says what the states have.
func (p *printer) tellMark(m state.Mark) {
	p.Tell("decisions stored from %s until before %s are in it", m.StoredSince.UTC().Format("2006-01-02 15:04:05Z"), m.StoredBefore.Format("2006-01-02 15:04:05Z"))
	if len(m.Shards) > 0 {
		p.Tell(", of the shards %s", strings.Join(m.Shards, ", "))
	}
	if m.FullAt != nil {
		p.Tell("; some subjects had no room (DOCKET_STATES_MAX), last at %s", m.FullAt.UTC().Format("2006-01-02 15:04:05Z"))
	}
	if m.TrimmedBefore != nil {
		p.Tell("; a state that was last seen before %s may have been removed and begun again", m.TrimmedBefore.UTC().Format("2006-01-02 15:04:05Z"))
	}
	p.Tell("\n")
}

// endOfShards prints at the end of a text which shards are missing. JSON has it in it.
func (p *printer) endOfShards() {
	if !p.AsJSON {
		p.tellPartial()
	}
}

// jsonAsOf says what states and flips have.
type jsonAsOf struct {
	*reader.Completeness
	jsonPartial
	Shards       []string   `json:"shards,omitempty"`
	StoredBefore *time.Time `json:"stored_before"`
	StoredSince  *time.Time `json:"stored_since"`
	SubjectsBy   string     `json:"subjects_by"`
	FullAt       *time.Time `json:"full_at,omitempty"`
	// TrimmedBefore is missing if no state was removed.
	TrimmedBefore *time.Time `json:"trimmed_before,omitempty"`
}

func asOf(m state.Mark, said *reader.Completeness, lacks jsonPartial) jsonAsOf {
	out := jsonAsOf{Completeness: said, jsonPartial: lacks, Shards: m.Shards, StoredBefore: frame.UTC(m.StoredBefore), StoredSince: frame.UTC(m.StoredSince), SubjectsBy: m.SubjectsBy}
	if m.FullAt != nil {
		out.FullAt = frame.UTC(*m.FullAt)
	}
	if m.TrimmedBefore != nil {
		out.TrimmedBefore = frame.UTC(*m.TrimmedBefore)
	}
	return out
}

type jsonStates struct {
	States []jsonState `json:"states"`
	More   bool        `json:"more"`
	jsonAsOf
}

// jsonState has the names of the API.
type jsonState struct {
	Subject   string      `json:"subject"`
	Path      string      `json:"path"`
	Verdict   string      `json:"verdict"`
	Revision  string      `json:"revision"`
	Hash      string      `json:"hash"`
	Since     *time.Time  `json:"since"`
	SinceID   string      `json:"since_decision_id"`
	LastSeen  *time.Time  `json:"last_seen"`
	Decisions int64       `json:"decisions"`
	VersionTS *time.Time  `json:"version_ts"`
	VersionID string      `json:"version_id"`
	Before    *jsonBefore `json:"before,omitempty"`
	Late      int64       `json:"late"`
	// SinceAtLatest and Shards are only in answers of several shards.
	SinceAtLatest bool     `json:"since_at_latest,omitempty"`
	Shards        []string `json:"shards,omitempty"`
	// Lacks says which fields are not exact.
	Lacks *jsonLacks `json:"lacks,omitempty"`
}

type jsonLacks struct {
	Fields []string   `json:"fields"`
	Shards []string   `json:"shards"`
	Before *time.Time `json:"before,omitempty"`
}

type jsonBefore struct {
	Verdict    string     `json:"verdict"`
	Timestamp  *time.Time `json:"timestamp"`
	DecisionID string     `json:"decision_id"`
}

func jsonStateOf(s *state.State) jsonState {
	out := jsonState{
		Subject: s.Subject, Path: s.Path, Verdict: string(s.Verdict), Revision: s.Revision, Hash: hex.EncodeToString(s.Hash[:]), Since: frame.UTC(s.Since.Time), SinceID: s.Since.ID,
		LastSeen: frame.UTC(s.LastSeen), Decisions: s.Decisions, VersionTS: frame.UTC(s.Version.Time), VersionID: s.Version.ID, Late: s.Late,
		SinceAtLatest: s.SinceAtLatest, Shards: s.Shards,
	}
	if l := s.Lacks; l != nil {
		out.Lacks = &jsonLacks{Fields: l.Fields, Shards: l.Shards}
		if l.Before != nil {
			out.Lacks.Before = frame.UTC(*l.Before)
		}
	}
	if b := s.Before; b != nil {
		out.Before = &jsonBefore{string(b.Verdict), frame.UTC(b.Time), b.ID}
	}
	return out
}
