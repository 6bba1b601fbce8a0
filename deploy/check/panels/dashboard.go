// Package panels asks a real Prometheus what the Grafana dashboard asks, and what has become of alerts.
package panels

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Query is what one panel asks of Prometheus.
type Query struct {
	Row   string // its title, "" above the first row
	Panel string // its title
	Ref   string // the letter of the query in its panel
	Expr  string // as the dashboard has it, with Grafana's variables in it
	Point bool   // asked for one moment, not for a range
	Quiet bool   // of something that need not happen, and then there is nothing to show
	Own   bool   // of the dashboard itself: the values of a variable, an annotation
}

// String names the query as a person finds it in the dashboard.
func (q Query) String() string {
	if q.Row == "" {
		return fmt.Sprintf("%s, query %s", q.Panel, q.Ref)
	}
	return fmt.Sprintf("%s / %s, query %s", q.Row, q.Panel, q.Ref)
}

// Dashboard is what is asked, and the values of the dashboard's own variables when nobody chooses any.
type Dashboard struct {
	Queries   []Query
	Variables map[string]string
}

// panel is the part of Grafana's JSON that is needed here. A row that is folded has its panels inside.
type panel struct {
	Type    string
	Title   string
	Panels  []panel
	Targets []struct {
		Expr    string
		RefID   string `json:"refId"`
		Instant bool
		Range   bool
		Hide    bool
	}
}

// Read reads a dashboard of Grafana. It is an error if it asks nothing.
func Read(file string) (Dashboard, error) {
	b, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return Dashboard{}, fmt.Errorf("read the dashboard: %w", err)
	}
	d, err := parse(b)
	if err != nil {
		return Dashboard{}, fmt.Errorf("%s: %w", file, err)
	}
	return d, nil
}

func parse(b []byte) (Dashboard, error) {
	var file struct {
		Panels      []panel
		Annotations struct {
			List []struct{ Name, Expr string }
		}
		Templating struct {
			List []struct {
				Name, Type string
				Query      json.RawMessage
				Definition string
				AllValue   string
				IncludeAll bool
				Current    struct{ Value json.RawMessage }
			}
		}
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return Dashboard{}, err
	}
	d := Dashboard{Variables: map[string]string{}}
	for _, v := range file.Templating.List {
		if v.Type == "datasource" {
			continue
		}
		d.Variables[v.Name] = chosen(v.Current.Value, v.AllValue, v.IncludeAll)
		if v.Type == "query" {
			if expr := values(v.Query, v.Definition); expr != "" {
				d.Queries = append(d.Queries, Query{Panel: "variable " + v.Name, Ref: "A", Expr: expr, Point: true, Own: true})
			}
		}
	}
	for _, a := range file.Annotations.List {
		if a.Expr != "" {
			d.Queries = append(d.Queries, Query{Panel: "annotation " + a.Name, Ref: "A", Expr: a.Expr, Own: true})
		}
	}
	row := ""
	for _, p := range file.Panels {
		if p.Type == "row" {
			row = p.Title
		}
		for _, p := range append([]panel{p}, p.Panels...) {
			d.Queries = append(d.Queries, p.queries(row)...)
		}
	}
	if len(d.Queries) == 0 {
		return Dashboard{}, fmt.Errorf("no panel asks anything")
	}
	return d, nil
}

// MarkQuiet takes over which queries may return nothing from what `go run ./deploy/check/dashboard -queries` prints: panel, ref,
// expression and quiet or nothing, by tabs. The panels' queries have to be the same in number and order.
func (d Dashboard) MarkQuiet(printed string) error {
	var asked []*Query
	for i := range d.Queries {
		if !d.Queries[i].Own {
			asked = append(asked, &d.Queries[i])
		}
	}
	lines := strings.Split(strings.TrimRight(printed, "\n"), "\n")
	if len(lines) != len(asked) {
		return fmt.Errorf("the dashboard's file asks %d queries, its program prints %d", len(asked), len(lines))
	}
	for i, line := range lines {
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[0] != asked[i].Panel || f[1] != asked[i].Ref {
			return fmt.Errorf("the dashboard's file has %v where its program prints %q", asked[i], line)
		}
		asked[i].Quiet = f[3] == "quiet"
	}
	return nil
}

func (p panel) queries(row string) (of []Query) {
	for i, t := range p.Targets {
		if t.Expr == "" || t.Hide {
			continue
		}
		q := Query{Row: row, Panel: p.Title, Ref: t.RefID, Expr: t.Expr, Point: t.Instant && !t.Range}
		if q.Ref == "" {
			q.Ref = string(rune('A' + i))
		}
		of = append(of, q)
	}
	return of
}

// chosen is the value of a variable as the dashboard comes up.
func chosen(current json.RawMessage, all string, includeAll bool) string {
	var one string
	var many []string
	if json.Unmarshal(current, &one) != nil && json.Unmarshal(current, &many) == nil {
		one = strings.Join(many, "|")
	}
	switch {
	case one != "" && one != "$__all":
		return one
	case all != "":
		return all
	case includeAll || one == "$__all":
		return ".+"
	default:
		return ".*"
	}
}

var labelValues = regexp.MustCompile(`(?s)^\s*label_values\((.+),\s*([a-zA-Z_]\w*)\)\s*$`)

// values is a query with data where the variable has values to choose from, "" where it is of another kind.
func values(query json.RawMessage, definition string) string {
	var asked string
	if json.Unmarshal(query, &asked) != nil {
		var object struct{ Query string }
		_ = json.Unmarshal(query, &object) // of another form it stays empty
		asked = object.Query
	}
	if asked == "" {
		asked = definition
	}
	m := labelValues.FindStringSubmatch(asked)
	if m == nil {
		return ""
	}
	return fmt.Sprintf("group by (%s) (%s)", m[2], m[1])
}

// Resolve puts values in the place of variables: Grafana's own for a scrape interval and a range, and the dashboard's.
func (d Dashboard) Resolve(expr string, scrape, over time.Duration) string {
	with := map[string]string{
		"__rate_interval": seconds(4 * scrape), "__interval": seconds(scrape), "__range": seconds(over),
		"__range_s": fmt.Sprint(int(over.Seconds())), "__interval_ms": fmt.Sprint(scrape.Milliseconds()),
	}
	maps.Copy(with, d.Variables)
	names := slices.SortedFunc(maps.Keys(with), func(a, b string) int { return len(b) - len(a) }) // $job is the beginning of $jobs
	for _, name := range names {
		expr = regexp.MustCompile(`\$\{`+name+`(:\w+)?\}|\[\[`+name+`\]\]|\$`+name+`\b`).ReplaceAllLiteralString(expr, with[name])
	}
	return expr
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
