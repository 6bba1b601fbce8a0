package letters

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/desk/ledger"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

// audits is docket dlq audit.
type audits struct {
	frame.Call
	actor, since, until, group, before string
	acts                               []string
	groups                             bool
	limit                              int
}

const (
	defaultAudits = 50
	allActs       = "all"
)

// Audit makes the command that lists who did what.
func Audit(call frame.Call) *cobra.Command {
	v := &audits{Call: call}
	c := &cobra.Command{
		Use: "audit [flags]", Short: "List who did what to dead letters, or to groups and their rules", DisableFlagsInUseLine: true,
		Long: "List who did what to dead letters, the newest first. Without --act only acts are listed that people decide, by\n" +
			"hand, by a job or by a rule. No line is ever changed or removed. Payloads are not shown.\n\n" +
			"With --groups the lines are about groups of dead letters and about rules. The author of what a rule does is\n" +
			"like: rule 7 of mara.",
		Example: "  docket dlq audit --since 7d\n  docket dlq audit --actor 'rule 7 of mara'\n  docket dlq audit --groups --group 8d0e3f21\n  docket dlq audit --act all -n 500 -o csv",
		Args:    frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := c.Flags()
	f.StringVar(&v.actor, "actor", "", "only by the person or program with this whole `NAME`")
	f.StringArrayVar(&v.acts, "act", nil, "only this `ACT`, like retried or closed; all: every act (can be given several times)")
	f.StringVar(&v.since, "since", "", "only lines since `TIME`")
	f.StringVar(&v.until, "until", "", "only lines before `TIME`")
	f.BoolVar(&v.groups, "groups", false, "list lines about groups and rules, not about dead letters")
	f.StringVar(&v.group, "group", "", "with --groups: only of this group: its `FINGERPRINT`, or the first 4 or more characters")
	f.StringVar(&v.before, "before", "", "only lines with a lower `NUMBER`: the next of the list before")
	f.IntVarP(&v.limit, "limit", "n", defaultAudits, "list at most `N` lines, 1 to 500")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "listed, also if there is none", "")
	frame.Complete(c, map[string]frame.Completion{"since": frame.Fixed(frame.TimeWords), "until": frame.Fixed(frame.TimeWords), "act": frame.Fixed(actNames(append(ledger.Acts(), ledger.GroupActs()[2:]...)))})
	c.RunE = v.Run(func([]string) (frame.Work, error) {
		q, err := v.query()
		return func(ctx context.Context) error { return v.list(ctx, q) }, err
	})
	return c
}

func actNames(acts []ledger.Act) (names []string) {
	for _, a := range acts {
		names = append(names, string(a))
	}
	return names
}

func (v *audits) query() (q ledger.AuditQuery, err error) {
	q = ledger.AuditQuery{By: v.actor, Groups: v.groups, Limit: v.limit}
	known := ledger.Acts()
	switch {
	case v.limit < 1 || v.limit > ledger.MostAudits:
		return q, frame.Misuse("--limit must be 1 to %d", ledger.MostAudits)
	case v.group != "" && !v.groups:
		return q, frame.Misuse("--group needs --groups")
	case len(v.actor) > 200 || strings.ContainsRune(v.actor, 0) || strings.ToValidUTF8(v.actor, "") != v.actor:
		return q, frame.Misuse("--actor %s is not a name", term.Quoted(v.actor))
	}
	if v.groups {
		known = ledger.GroupActs()
	}
	for _, act := range v.acts {
		switch {
		case act == allActs:
		case !slices.Contains(known, ledger.Act(act)):
			return q, frame.Misuse("--act %s is none of: %s, all", term.Quoted(act), strings.Join(actNames(known), ", "))
		default:
			q.Acts = append(q.Acts, ledger.Act(act))
		}
	}
	if slices.Contains(v.acts, allActs) {
		q.Acts = nil
	}
	if len(v.acts) == 0 && !v.groups {
		q.Acts = ledger.PeopleActs()
	}
	if v.before != "" {
		if q.Before, err = strconv.ParseInt(v.before, 10, 64); err != nil || q.Before < 1 {
			return q, frame.Misuse("--before %s is not the number of a line", term.Quoted(v.before))
		}
	}
	q.Since, q.Until, err = frame.Between(v.since, v.until, v.Now())
	return q, err
}

func (v *audits) list(ctx context.Context, q ledger.AuditQuery) (err error) {
	book, can := v.Sys.Book.(ledger.Auditor)
	if !can {
		return frame.Misuse("%s has no audit to read", v.Source())
	}
	if v.group != "" {
		if q.Fingerprint, err = WholeFingerprint(ctx, v.Call, v.group); err != nil {
			return err
		}
	}
	found, err := book.Audits(ctx, q)
	if err != nil {
		return err // it names the act
	}
	next := ""
	if found.Next > 0 {
		next = strconv.FormatInt(found.Next, 10)
	}
	switch {
	case v.AsJSON:
		v.Print(frame.ListOf(found.Lines, next, auditLineOf))
	case len(found.Lines) == 0:
		v.Tell("no line fits\n")
	default:
		v.rows(found.Lines)
	}
	if !found.Reached.IsZero() {
		v.Tell("the time was over at lines of %s; others that fit can be older\n", term.Stamp(found.Reached))
	}
	if next != "" {
		v.Tell("there may be more: --before %s\n", next)
	}
	return nil
}

func (v *audits) rows(lines []ledger.Audit) {
	columns := []term.Column{
		{Title: "line", Right: true, Rank: 4}, {Title: "time"}, {Title: "by", Least: 10}, {Title: "act"}, {Title: "state", Rank: 5}, {Title: "id", Rank: 1},
		{Title: "job", Right: true, Rank: 6}, {Title: "reason", Rank: 2, Least: 14}, {Title: "login", Rank: 3}, {Title: "application", Rank: 7}, {Title: "client", Rank: 8},
	}
	if v.groups {
		columns[4], columns[5], columns[6] = term.Column{Title: "rule", Right: true, Rank: 5}, term.Column{Title: "fingerprint", Rank: 1}, term.Column{Title: "", Rank: 6}
	}
	var rows [][]term.Cell
	for i := range lines {
		a := &lines[i]
		job := ""
		if a.Job > 0 {
			job = fmt.Sprint(a.Job)
		}
		what, id := stateChange(a.From, a.To), term.Cell{Full: a.LetterID, Brief: term.Cut(a.LetterID, 12)}
		if v.groups {
			what, id, job = "", term.Cell{Full: term.Brief(a.Fingerprint), Brief: term.Cut(a.Fingerprint, 8)}, ""
			if a.Rule > 0 {
				what = fmt.Sprint(a.Rule)
			}
		}
		rows = append(rows, []term.Cell{
			{Full: fmt.Sprint(a.ID)}, {Full: term.Stamp(a.At)}, {Full: term.Brief(a.By)}, {Full: string(a.Act)}, {Full: what}, id,
			{Full: job}, {Full: term.Brief(a.Why)}, {Full: term.Brief(a.Login)}, {Full: term.Brief(a.Application)}, {Full: term.Brief(a.Client)},
		})
	}
	v.Table(columns, rows, "")
}

// stateChange is how an act changed a state.
func stateChange(from, to ledger.State) string {
	if from == to || from == "" || to == "" {
		return string(from) + strings.TrimPrefix(string(to), string(from))
	}
	return string(from) + " → " + string(to)
}

// jsonAuditLine has the names of the API.
type jsonAuditLine struct {
	ID          int64      `json:"audit_id"`
	At          *time.Time `json:"at"`
	Act         string     `json:"act"`
	LetterID    string     `json:"id,omitempty"`
	Fingerprint string     `json:"fingerprint,omitempty"`
	Rule        int64      `json:"rule,omitempty"`
	From        string     `json:"from,omitempty"`
	To          string     `json:"to,omitempty"`
	By          string     `json:"by"`
	Why         string     `json:"why"`
	Attempts    int        `json:"attempts"`
	Job         int64      `json:"job,omitempty"`
	Changed     bool       `json:"changed"`
	Login       string     `json:"login,omitempty"`
	Application string     `json:"application,omitempty"`
	Client      string     `json:"client,omitempty"`
}

func auditLineOf(a ledger.Audit) jsonAuditLine {
	return jsonAuditLine{
		ID: a.ID, At: frame.UTC(a.At), Act: string(a.Act), LetterID: a.LetterID, Fingerprint: a.Fingerprint, Rule: a.Rule, From: string(a.From), To: string(a.To), By: a.By, Why: a.Why,
		Attempts: a.Attempts, Job: a.Job, Changed: a.Withheld, Login: a.Login, Application: a.Application, Client: a.Client,
	}
}
