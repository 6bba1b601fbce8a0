package main

import (
	"fmt"
	"io"
	"strings"
)

// concrete replaces the variables of Grafana by values.
func concrete(rate, span string) *strings.Replacer {
	return strings.NewReplacer("$__rate_interval", rate, "$__range", span, "$job", ".+", "$instance", ".+")
}

// printQueries prints a line for each query: panel, ref, expression and, where no answer is a good sign, quiet.
func printQueries(w io.Writer, rows []row, values *strings.Replacer) error {
	for _, r := range rows {
		for _, p := range r.panels {
			for i, q := range p.queries {
				quiet := ""
				if q.quiet {
					quiet = "quiet"
				}
				if _, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", p.title, ref(i), values.Replace(q.expr), quiet); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// printRules prints a file of recording rules, one for each query.
func printRules(w io.Writer, rows []row, values *strings.Replacer) error {
	text := "groups:\n  - name: dashboard\n    rules:\n"
	n := 0
	for _, r := range rows {
		for _, p := range r.panels {
			for i, q := range p.queries {
				n++
				text += fmt.Sprintf("      # %s: %s, %s\n      - record: dashboard:query:%d\n        expr: '%s'\n",
					r.title, p.title, ref(i), n, strings.ReplaceAll(values.Replace(q.expr), "'", "''"))
			}
		}
	}
	_, err := io.WriteString(w, text)
	return err
}

// ref is the name of a panel's nth query.
func ref(n int) string { return string(rune('A' + n)) }
