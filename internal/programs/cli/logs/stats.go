package logs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"docket/internal/history/complete"
	"docket/internal/history/reader"
	"docket/internal/programs/cli/frame"
	"docket/internal/programs/cli/term"
)

const (
	defaultRates = 30 // lines of a table
	sparks       = 24 // the widest bar chart of a line
)

// stats is docket stats.
type stats struct {
	*printer
	choose   decisionFlags
	by, step string
	limit    int
	steps    bool
}

// Stats makes the command that counts decisions.
func Stats(call frame.Call) *cobra.Command {
	t := &stats{printer: &printer{Call: call.Asking()}}
	c := &cobra.Command{
		Use: "stats [flags]", Short: "Count decisions and deny rates, by path or service", DisableFlagsInUseLine: true,
		Long: "Count decisions by path or service, most denied first.\n\n" +
			"Deny rate = denied / (allowed + denied). Undefined, error and other decisions are counted separately.\n" +
			"A terminal also shows a small chart of the deny rate over time. --path and --service can be repeated.\n" +
			"Up to 200 paths of a service have a line of their own. The line (other) has the others; with --path or\n" +
			"--service it may contain decisions that match. It is always the last line.\n" +
			"--since and --until are extended to whole steps; at most 1,000 steps are counted.",
		Example: "  docket stats --since 7d --step 1d\n  docket stats --by service --since 2h --step 5m --path 'authz/*'\n" +
			"  docket stats --steps --path http/example/authz/allow --since 6h",
		Args: frame.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
	}
	t.choose.declareRange(call, c, "24h")
	c.Flags().StringVar(&t.by, "by", "path", "one line per `KEY`: path or service (default path)")
	c.Flags().Lookup("by").DefValue = "" // the text says it
	c.Flags().StringVar(&t.step, "step", "", "length of one step: `STEP`, whole minutes that divide a day, or whole days: 5m, 1h, 1d (default: 5m up to 2h of range, 1h up to 2d, else 1d; at least 1h if days left the table)")
	c.Flags().IntVarP(&t.limit, "limit", "n", defaultRates, "print at most `N` paths or services, 1 or more; --json prints all")
	c.Flags().BoolVar(&t.steps, "steps", false, "print one line per step of each path or service")
	frame.Usage(c, []string{"DOCKET_DATABASE_URL"}, "counted, also if no decision matches", "")
	frame.Complete(c, map[string]frame.Completion{"by": frame.Fixed([]string{"path", "service"}), "step": frame.Fixed([]string{"5m", "1h", "1d"})})
	c.RunE = t.Run(func([]string) (frame.Work, error) {
		if _, err := frame.Among("value of --by", t.by, []string{"path", "service"}); err != nil {
			return nil, err
		}
		if t.limit < 1 {
			return nil, frame.Misuse("--limit must be 1 or more")
		}
		q, err := t.choose.statsQuery(t.step, t.Now())
		q.ByPath = t.by == "path"
		return func(ctx context.Context) error { return t.count(ctx, q) }, err
	})
	return c
}

// count counts decisions and prints the result.
func (t *stats) count(ctx context.Context, q reader.StatsQuery) error {
	counted, err := reader.CountStats(ctx, t.Sys.Decisions, q, t.step != "", func(q reader.StatsQuery) complete.Begun {
		return begin(ctx, t.Call, complete.Range{Since: q.Since, Until: q.Until, Paths: q.Paths, Services: q.Services})
	})
	if err = t.parts.Pass(err); err != nil {
		return err
	}
	lines, q := counted.Lines, counted.Query
	said := t.ended(counted.Begun, complete.Facts{Found: len(lines) > 0})
	if t.AsJSON {
		out := statsOf(q, t.by, lines)
		out.Completeness = said
		out.jsonPartial = t.partial()
		t.Print(out)
		return nil
	}
	t.rows(q, rated(lines))
	tellComplete(t.Call, said)
	t.tellPartial()
	return nil
}

// statsQuery is what the flags ask for, in whole steps.
func (d *decisionFlags) statsQuery(step string, now time.Time) (reader.StatsQuery, error) {
	q := reader.StatsQuery{Paths: d.paths, Services: d.services}
	for name, values := range map[string][]string{"path": d.paths, "service": d.services} {
		if slices.Contains(values, "") {
			return q, frame.Misuse("--%s is empty", name)
		}
	}
	if err := d.legible(); err != nil {
		return q, err
	}
	since, until, err := frame.Between(d.since, d.until, now)
	if err != nil {
		return q, err
	}
	if since.IsZero() {
		return q, frame.Misuse("--since is empty")
	}
	whole, err := reader.NewStatsQuery(since, until, step, now)
	if err != nil {
		return q, frame.Misuse("--since, --until and --step: %v", err)
	}
	whole.Paths, whole.Services = q.Paths, q.Services
	return whole, nil
}

// rate is what became of the decisions of one path or service.
type rate struct {
	name   string
	counts map[reader.Verdict]int64
	steps  []reader.Stats // the oldest first
}

func (r rate) total() int64 { return total(r.counts) }

func total(counts map[reader.Verdict]int64) int64 {
	var n int64
	for _, c := range counts {
		n += c
	}
	return n
}

// rated brings the steps of each name together, those with the most denied decisions first and those without a name of their own last.
func rated(lines []reader.Stats) []rate {
	index := map[string]int{}
	var all []rate
	for _, l := range lines {
		i, known := index[l.Name]
		if !known {
			i = len(all)
			index[l.Name] = i
			all = append(all, rate{name: l.Name, counts: map[reader.Verdict]int64{}})
		}
		for v, n := range l.Counts {
			all[i].counts[v] += n
		}
		all[i].steps = append(all[i].steps, l)
	}
	for _, r := range all {
		slices.SortFunc(r.steps, func(a, b reader.Stats) int { return a.From.Compare(b.From) })
	}
	slices.SortStableFunc(all, func(a, b rate) int {
		if a.name == reader.OtherPaths || b.name == reader.OtherPaths {
			return reader.CompareNames(a.name, b.name)
		}
		return cmp.Or(cmp.Compare(b.counts[reader.Denied], a.counts[reader.Denied]), cmp.Compare(b.total(), a.total()), strings.Compare(a.name, b.name))
	})
	return all
}

func (t *stats) rows(q reader.StatsQuery, all []rate) {
	if len(all) == 0 {
		t.Tell("no decisions match since %s\n", q.Since.UTC().Format("2006-01-02 15:04Z"))
		if hint := pathHint(q.Paths); hint != "" {
			t.Tell("%s\n", hint)
		}
		return
	}
	columns := []term.Column{{Title: t.by, Least: 16}}
	if t.steps {
		columns = append(columns, term.Column{Title: "from", Rank: 1})
	}
	columns = append(columns, term.Column{Title: "decisions", Right: true, Rank: 2}, term.Column{Title: "denied", Right: true}, term.Column{Title: "deny rate", Right: true},
		term.Column{Title: "allowed", Right: true, Rank: 3})
	for i, v := range []reader.Verdict{reader.Undefined, reader.Error, reader.Other} {
		columns = append(columns, term.Column{Title: string(v), Right: true, Rank: 4 + i})
	}
	chart := t.Terminal.Out && !t.steps
	if chart {
		columns = append(columns, term.Column{Title: "deny rate by time", Rank: 8})
	}
	var rows [][]term.Cell
	var other []rate // is shown whatever the limit
	if last := len(all) - 1; all[last].name == reader.OtherPaths {
		all, other = all[:last], all[last:]
	}
	more := max(len(all)-t.limit, 0)
	for _, r := range slices.Concat(all[:len(all)-more], other) {
		if !t.steps {
			row := countCells(name(r.name), "", r.counts)
			if chart {
				row = append(row, term.Cell{Full: spark(q, r.steps, t.Now())})
			}
			rows = append(rows, row)
			continue
		}
		for _, step := range r.steps {
			rows = append(rows, countCells(name(r.name), step.From.UTC().Format("2006-01-02 15:04Z"), step.Counts))
		}
	}
	t.Table(columns, rows, "")
	span := "since " + q.Since.UTC().Format("2006-01-02 15:04Z")
	if !q.Until.IsZero() {
		span += " and before " + q.Until.UTC().Format("2006-01-02 15:04Z")
	}
	t.Tell("%s, in steps of %s\n", span, stepped(q.Step))
	switch {
	case len(other) == 0:
	case len(q.Paths)+len(q.Services) > 0:
		t.Tell("%s: decisions of paths or services that have no line of their own; some of them may match\n", reader.OtherPaths)
	default:
		t.Tell("%s: decisions of paths or services that have no line of their own\n", reader.OtherPaths)
	}
	if more > 0 {
		t.Tell("%s more; -n %d shows all\n", term.Grouped(int64(more)), len(all))
	}
}

// name of what has none.
func name(text string) string {
	if text == "" {
		return "(none)"
	}
	return term.Brief(text)
}

// stepped is a step as it is given.
func stepped(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

func countCells(name, from string, counts map[reader.Verdict]int64) []term.Cell {
	row := []term.Cell{{Full: name}}
	if from != "" {
		row = append(row, term.Cell{Full: from})
	}
	share := "-"
	if r, known := reader.DenyRate(counts); known {
		share = fmt.Sprintf("%.1f %%", 100*r)
	}
	row = append(row, term.Cell{Full: term.Grouped(total(counts))}, term.Cell{Full: term.Grouped(counts[reader.Denied])}, term.Cell{Full: share})
	for _, v := range []reader.Verdict{reader.Allowed, reader.Undefined, reader.Error, reader.Other} {
		row = append(row, term.Cell{Full: term.Grouped(counts[v])})
	}
	return row
}

// spark draws the deny rate over the whole range, a block for each step, or for several steps where there are many. A dot is a time
// without a decision that was allowed or denied.
func spark(q reader.StatsQuery, steps []reader.Stats, now time.Time) string {
	until := q.Until
	if until.IsZero() {
		until = now
	}
	n := int((until.Sub(q.Since) + q.Step - 1) / q.Step)
	each := max((n+sparks-1)/sparks, 1)
	sums := make([]map[reader.Verdict]int64, max((n+each-1)/each, 1))
	for _, step := range steps {
		i := int(step.From.Sub(q.Since)/q.Step) / each
		if i < 0 || i >= len(sums) {
			continue
		}
		if sums[i] == nil {
			sums[i] = map[reader.Verdict]int64{}
		}
		for v, c := range step.Counts {
			sums[i][v] += c
		}
	}
	blocks := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, counts := range sums {
		if r, known := reader.DenyRate(counts); known {
			b.WriteRune(blocks[min(int(r*float64(len(blocks))), len(blocks)-1)])
		} else {
			b.WriteRune('·')
		}
	}
	return b.String()
}

type jsonStats struct {
	By    string         `json:"by"`
	Since *time.Time     `json:"since"`
	Until *time.Time     `json:"until"` // null: now
	Step  float64        `json:"step_seconds"`
	Lines []jsonStatLine `json:"lines"`
	*reader.Completeness
	jsonPartial
}

type jsonStatLine struct {
	Name     string           `json:"name"` // empty: of decisions that have none; reader.OtherPaths
	From     *time.Time       `json:"from"`
	Counts   map[string]int64 `json:"counts"`
	DenyRate *float64         `json:"deny_rate"` // null: none was allowed or denied
}

func statsOf(q reader.StatsQuery, by string, lines []reader.Stats) jsonStats {
	out := jsonStats{By: by, Since: frame.UTC(q.Since), Until: frame.UTC(q.Until), Step: q.Step.Seconds(), Lines: []jsonStatLine{}}
	for _, l := range lines {
		line := jsonStatLine{Name: l.Name, From: frame.UTC(l.From), Counts: map[string]int64{}}
		for _, v := range reader.Verdicts() {
			line.Counts[string(v)] = l.Counts[v]
		}
		if r, known := reader.DenyRate(l.Counts); known {
			line.DenyRate = &r
		}
		out.Lines = append(out.Lines, line)
	}
	return out
}
